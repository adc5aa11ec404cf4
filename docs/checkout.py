# checkout.py
import json, os, pathlib, sys
from voucher_client import OutcomeUnknown, ReferenceReused, VoucherClient, VoucherRefused

vouchers = VoucherClient(os.environ["API"], os.environ["KEY"])
external_ref = "shop-10003"  # The order's number.

# Replace these: orders in your database, payments that charge an order once however often they are called, and refunds
# that give back what the order was charged, if it was: a crash may have come after the charge.
file = pathlib.Path(f"order-{external_ref}.json")
take_payment = lambda order: True
refund = lambda order: None

def save(order):
    file.write_text(json.dumps(order))

# After a crash or an OutcomeUnknown, run it again: it continues where it stopped.
new = {"externalRef": external_ref, "code": os.environ["CODE"], "paid": False}
order = json.loads(file.read_text()) if file.exists() else new
save(order)  # Before the first call.
try:
    if not order["paid"]:
        reservation = vouchers.reserve(order["code"])
        order["voucherId"] = reservation["voucher"]
        order["paid"] = take_payment(order)
        save(order)
        if not order["paid"]:
            vouchers.release(reservation["ticket"], "not paid")
    if order["paid"]:
        redemption = vouchers.redeem(external_ref, code=order["code"])
        if redemption["voucherInstanceId"] != order["voucherId"]:
            raise ReferenceReused(external_ref, redemption)
        print(f"Thank you! Your code is {redemption['redeemCode']}.")
except VoucherRefused as refusal:
    if refusal.status != 409 and refusal.code != "voucher_not_found":
        sys.exit(str(refusal))  # The setup is wrong.
    refund(order)
    save({**order, "paid": False})
    print(refusal)  # A sentence for people.
except (OutcomeUnknown, ReferenceReused) as stop:
    sys.exit(str(stop))
