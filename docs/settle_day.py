# Adds up the redemptions from FROM to TO. Needs voucher_client.py in the same folder.
import os, sys
from decimal import Decimal
from voucher_client import VoucherClient

sys.excepthook = lambda _, error, __: print(error, file=sys.stderr)  # A sentence instead of a stack.
vouchers = VoucherClient(os.environ["API"], os.environ["KEY"])
query = {"from": os.environ["FROM"], "to": os.environ["TO"], "limit": 1000}
count, usd = 0, Decimal(0)
while True:
    page = vouchers.redemptions(**query)
    for redemption in page["redemptions"]:
        # Here, compare with your order of redemption["externalRef"].
        count += 1
        usd += redemption["discountPriceUsd"]
    if page["nextCursor"] is None:
        break
    if not page["redemptions"]:
        sys.exit(f"Not complete: the list is final until {page['completeUntil']}. Try again later.")
    query = {"cursor": page["nextCursor"], "limit": 1000}
print(f"{count} redemptions, {usd:.2f} USD")
