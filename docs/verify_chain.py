# Verifies the history of the voucher CODE.
import hashlib, json, os, re, sys
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, Request, build_opener

ERASING = "voucher.instance.erased"


class NoRedirect(HTTPRedirectHandler):
    """A redirect would send the key to another address."""

    redirect_request = lambda *_: None


def number_of(text):
    if not re.fullmatch(r"-?(0|[1-9][0-9]{0,14})(\.[0-9]{0,4}[1-9])?", text):
        raise ValueError("not a number as payloads have them")
    return float(text) if "." in text else int(text)


def canonical(value):
    """Writes canonical JSON (RFC 8785)."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def parse(text):
    """The object in a payload; an empty one for a text that is not canonical."""
    try:
        said = json.loads(text, parse_int=number_of, parse_float=number_of, parse_constant=number_of)
        return said if isinstance(said, dict) and canonical(said) == text else {}
    except (TypeError, ValueError, RecursionError):
        return {}


def is_whole(value, low, high):
    return type(value) is int and low <= value <= high


url = f"{os.environ['API']}/partner/vouchers/{os.environ['CODE']}/events"
# Firewalls refuse calls without Accept, and those of the name that Python gives itself.
headers = {"X-Api-Key": os.environ["KEY"], "Accept": "application/json", "User-Agent": "verify-chain"}
try:
    with build_opener(NoRedirect).open(Request(url, headers=headers)) as response:
        chain = json.load(response)
except HTTPError as refused:
    sys.exit(f"Not verified, status {refused.code}: {refused.read().decode()}")
events = [event if isinstance(event, dict) else {} for event in chain["events"]]
# An event without payload was erased by a later one, which says so.
named = {}
for number, event in enumerate(events, start=1):
    said = parse(event.get("payload"))
    if event.get("sealStatus") != "Pending" and event.get("eventType") == said.get("eventType") == ERASING:
        data = said.get("data")
        named[number] = data.get("erasedSequences") if isinstance(data, dict) else None
previous, after_pending = "0" * 64, False
for number, event in enumerate(events, start=1):
    payload, record_hash, previous_hash = (event.get(part) for part in ("payload", "recordHash", "previousHash"))
    beside = ("sequence", "eventType", "code", "occurredAt", "previousHash", "actorConnectedId", "actorIsEmployee")
    known = {"v": 1, "entityType": "VoucherInstance", "entityId": chain.get("entityId")}
    known.update({member: event.get(member) for member in beside})
    is_true, word = is_whole(event.get("sequence"), number, number), "ok"
    if event.get("sealStatus") == "Pending":
        is_true, word = is_true and payload is record_hash is previous_hash is None, "pending"
        after_pending = True
    else:
        is_true = is_true and not after_pending and previous_hash == previous and isinstance(record_hash, str)
        if payload is None:
            word, by = "ok, erased", event.get("erasedBy")
            lists = [one for at, one in named.items() if at > number and (by is None or is_whole(by, at, at))]
            is_erased = any(is_whole(erased, number, number) for one in lists if isinstance(one, list) for erased in one)
            is_true = is_true and is_erased and re.fullmatch("[0-9a-f]{64}", record_hash)
        elif is_true:
            digest = hashlib.sha256(str(payload).encode(errors="replace")).hexdigest()
            is_true = digest == record_hash and canonical({**parse(payload), **known}) == payload
            if event.get("eventType") == ERASING:
                erased = named.get(number)
                is_true = is_true and isinstance(erased, list) and all(is_whole(one, 1, number - 1) for one in erased)
        previous = record_hash
    name = f"{number} {event.get('eventType')}"
    if not is_true:
        sys.exit(f"{name} BROKEN")
    print(name, word)
