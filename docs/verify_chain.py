# Verifies the history of the voucher CODE.
import hashlib, json, os, re, sys
from urllib.request import HTTPRedirectHandler, Request, build_opener


class NoRedirect(HTTPRedirectHandler):
    """A redirect would send the key to another address."""

    redirect_request = lambda *_: None


url = f"{os.environ['API']}/partner/vouchers/{os.environ['CODE']}/events"
with build_opener(NoRedirect).open(Request(url, headers={"X-Api-Key": os.environ["KEY"]})) as response:
    chain = json.load(response)
events = chain["events"]
# An event without payload was erased by a later one, which says so.
erasures = []
for event in events:
    if event["sealStatus"] == "Sealed" and event["eventType"] == "voucher.instance.erased" and event["payload"]:
        said = json.loads(event["payload"])
        if said["eventType"] == event["eventType"]:
            erasures += [(event["sequence"], sequence) for sequence in said["data"]["erasedSequences"]]
previous, after_pending = "0" * 64, False
for number, event in enumerate(events, start=1):
    name = f"{number} {event['eventType']}"
    if event["sealStatus"] == "Pending":
        has_seal = any(event[part] is not None for part in ("payload", "recordHash", "previousHash"))
        if has_seal or event["sequence"] != number:
            sys.exit(f"{name} BROKEN")
        print(name, "pending")
        after_pending = True
        continue
    erased = event["payload"] is None and any(sequence == number < by for by, sequence in erasures)
    if erased:
        digest, said = event["recordHash"], event
    else:
        digest = hashlib.sha256((event["payload"] or "").encode()).hexdigest()
        said = json.loads(event["payload"] or "{}")
    linked = said.get("sequence") == event["sequence"] == number
    linked = linked and said.get("previousHash") == event["previousHash"] == previous
    same_type = said.get("eventType") == event["eventType"]
    same_voucher = erased or said.get("entityId") == chain["entityId"]
    erases_later = any(by == number and sequence >= number for by, sequence in erasures)
    is_hash = re.fullmatch("[0-9a-f]{64}", digest or "")
    is_true = is_hash and digest == event["recordHash"] and linked and same_type and same_voucher
    if after_pending or not is_true or erases_later:
        sys.exit(f"{name} BROKEN")
    print(name, "ok, erased" if erased else "ok")
    previous = digest
