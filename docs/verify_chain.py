# Verifies the history of the voucher CODE.
import hashlib, json, os, sys
from urllib.request import Request, urlopen

url = f"{os.environ['API']}/partner/vouchers/{os.environ['CODE']}/events"
with urlopen(Request(url, headers={"X-Api-Key": os.environ["KEY"]})) as response:
    events = json.load(response)["events"]
previous = "0" * 64
for number, event in enumerate(events, start=1):
    name = f"{number} {event['eventType']}"
    if event["sealStatus"] == "Pending":
        print(name, "pending")
        continue
    digest = hashlib.sha256(event["payload"].encode()).hexdigest()
    said = json.loads(event["payload"])
    linked = said["sequence"] == number and said["previousHash"] == event["previousHash"] == previous
    if digest != event["recordHash"] or not linked:
        sys.exit(f"{name} BROKEN")
    print(name, "ok")
    previous = digest
