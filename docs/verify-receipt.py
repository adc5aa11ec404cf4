# Verifies a receipt, offline: python3 verify-receipt.py RECEIPT LOG_VKEY [WITNESS_VKEY...]; needs the package cryptography.
# Exit 0: the payload is in the log of that key, and every given witness has seen the checkpoint. 1: the receipt is refused. 2: the command
# line is wrong, or the file cannot be read. 69: the package cryptography is missing.
import base64, hashlib, json, re, sys

def need(fact, reason, status=1):
    if not fact:
        print(f"{'Refused' if status == 1 else 'Cannot verify'}: {reason}.", file=sys.stderr)
        sys.exit(status)
    return fact
try:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
except ImportError:
    need(False, "Python lacks the package cryptography; run: pip install cryptography", 69)
def decode(text, what="a line is not base64", status=1):
    try:
        data = base64.b64decode(text, validate=True)
    except ValueError:
        data = b""
    return need(base64.b64encode(data).decode() == text and data, what, status)
def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()

file, *keys = need(len(sys.argv) > 2 and sys.argv[1:], "name a receipt and the vkey of its log", 2)
try:
    text = open(file, encoding="utf-8", errors="replace", newline="").read()
except OSError as error:
    need(False, f"the file cannot be read: {error.strerror}", 2)
for sign, reason in (
    (r"^\ufeff|\0", "the file is saved as UTF-16 or with a byte order mark; save it as UTF-8"),
    (r"\r", "the lines end with CR and LF; download the receipt again, or remove each CR"),
    (r"^\s*<", "this is a web page; compare the address and download the receipt again"),
    (r"^\s*[{[]", "this is JSON, such as an error of the service; read it and download the receipt again"),
    (r"[\0-\t\v-\x1f\x7f]", "the text has a control character; download it again"),
    (r"[^\n]\Z", "the last line has no end, so the receipt was cut; download it again"),
):
    need(not re.search(sign, text), reason)
shape = r"c2sp\.org/tlog-proof@v1\nextra (\S+)\nindex (0|[1-9]\d{0,14})\n((?:\S{44}\n)*)\n((\S+)\n(0|[1-9]\d{0,14})\n(\S{44})\n(?:[^\n]+\n)*)\n((?:— [^\s+\ufeff]+ \S+\n){1,100})"
extra, index, proof, signed, origin, size, root, lines = need(re.fullmatch(shape, text), "the text does not have the form of a receipt; download it again").groups()
found = [(line.split(" ")[1], decode(line.split(" ")[2])) for line in lines.split("\n")[:-1]]
need(all(len(signature) > 4 for _, signature in found), "a signature is too short")
need(origin == keys[0].split("+")[0], "the receipt is of another log")
for vkey in keys:
    name, key_id, text = need(vkey.count("+") > 1 and vkey.split("+", 2), f"the vkey {vkey} is not valid", 2)
    key = decode(text, f"the vkey {name} is not valid", 2)
    need(len(key) == 33 and key[0] in (1, 4), f"the vkey {name} is not valid", 2)
    own = need([s for by, s in found if by == name and s[:4].hex() == key_id], f"it has no signature of {name}")
    # If one key has signed twice, both signatures are right.
    for signature in own:
        need(len(signature) == (76 if key[0] == 4 else 68), f"the signature of {name} is wrong")
        time = int.from_bytes(signature[4:12], "big") if key[0] == 4 else 0
        need(time <= 253402300799, f"the signature of {name} is wrong")  # the last second of the year 9999
        stamp = f"cosignature/v1\ntime {time}\n" if key[0] == 4 else ""
        try:
            Ed25519PublicKey.from_public_bytes(key[1:]).verify(signature[-64:], (stamp + signed).encode())
        except InvalidSignature:
            need(False, f"the signature of {name} is wrong")
at, last, node = int(index), int(size) - 1, sha256(b"\0", sha256(decode(extra)))
need(at <= last, "the index is not in the tree")
for sibling in map(decode, proof.split("\n")[:-1]):
    need(last > 0, "the proof is too long")
    right = at % 2 == 1 or at == last
    node = sha256(b"\1", sibling, node) if right else sha256(b"\1", node, sibling)
    while right and at % 2 == 0 and at > 0:
        at, last = at >> 1, last >> 1
    at, last = at >> 1, last >> 1
need(last == 0 and node == decode(root), "the proof does not lead to the root")
def number_of(text):
    need(re.fullmatch(r"-?(0|[1-9][0-9]{0,14})(\.[0-9]{0,4}[1-9])?", text), "the payload is not an object in canonical JSON")
    return float(text) if "." in text else int(text)
try:
    payload = decode(extra).decode()
    said = json.loads(payload, parse_int=number_of, parse_float=number_of, parse_constant=number_of)
    # Canonical JSON (RFC 8785).
    is_event = isinstance(said, dict) and json.dumps(said, sort_keys=True, separators=(",", ":"), ensure_ascii=False) == payload
except (ValueError, RecursionError):
    is_event = False
need(is_event, "the payload is not an object in canonical JSON")
seen_by = f", and each of {len(keys) - 1} given witness keys has signed its checkpoint" if len(keys) > 1 else ""
print(f"Valid: the log {origin} has this event{seen_by}.", file=sys.stderr)
print(payload)
