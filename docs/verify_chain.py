# Verifies the history of the voucher CODE.
import hashlib, json, os, re, sys
from urllib.request import Request, urlopen

url = f"{os.environ['API']}/partner/vouchers/{os.environ['CODE']}/events"
with urlopen(Request(url, headers={"X-Api-Key": os.environ["KEY"]})) as response:
    events = json.load(response)["events"]
# An event without payload was erased by a later one, which says so.
erased_by = {}
for event in events:
    if event["sealStatus"] == "Sealed" and event["eventType"] == "voucher.instance.erased" and event["payload"]:
        for sequence in json.loads(event["payload"])["data"]["erasedSequences"]:
            erased_by[sequence] = event["sequence"]
previous = "0" * 64
for number, event in enumerate(events, start=1):
    name = f"{number} {event['eventType']}"
    if event["sealStatus"] == "Pending":
        print(name, "pending")
        continue
    erased = event["payload"] is None and erased_by.get(number, 0) > number
    if erased:
        digest, said = event["recordHash"], event
    else:
        digest = hashlib.sha256((event["payload"] or "").encode()).hexdigest()
        said = json.loads(event["payload"] or "{}")
    linked = said.get("sequence") == event["sequence"] == number
    linked = linked and said.get("previousHash") == event["previousHash"] == previous
    erases_later = any(by == number and sequence >= number for sequence, by in erased_by.items())
    is_hash = re.fullmatch("[0-9a-f]{64}", digest or "")
    if not is_hash or digest != event["recordHash"] or not linked or erases_later:
        sys.exit(f"{name} BROKEN")
    print(name, "ok, erased" if erased else "ok")
    previous = digest
