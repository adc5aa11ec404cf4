# Verifies a receipt, offline: python3 verify-receipt.py RECEIPT LOG_VKEY [WITNESS_VKEY...]; needs the package cryptography.
# Exit 0 when the payload is in the log of that key and every given witness has seen the checkpoint.
import base64, hashlib, re, sys
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

def need(fact, reason):
    return fact or sys.exit(f"Refused: {reason}.")
def decode(text):
    try:
        data = base64.b64decode(text, validate=True)
    except ValueError:
        data = b""
    return need(base64.b64encode(data).decode() == text and data, "base64")
def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()

file, *keys = need(len(sys.argv) > 2 and sys.argv[1:], "name a receipt and the vkey of its log")
text = open(file, encoding="utf-8", errors="replace", newline="").read()
shape = r"c2sp\.org/tlog-proof@v1\nextra (\S+)\nindex (0|[1-9]\d{0,14})\n((?:\S{44}\n)*)\n((\S+)\n(0|[1-9]\d{0,14})\n(\S{44})\n)\n((?:— \S+ \S+\n)+)"
extra, index, proof, signed, origin, size, root, lines = need(re.fullmatch(shape, text), "the form").groups()
need(origin == keys[0].split("+")[0], "another log")
for vkey in keys:
    name, key_id, text = need(vkey.count("+") > 1 and vkey.split("+", 2), f"the vkey {vkey}")
    key = decode(text)
    need(len(key) == 33 and key[0] in (1, 4), f"the vkey of {name}")
    found = [decode(line.split(" ")[2]) for line in lines.splitlines() if line.startswith(f"— {name} ")]
    signature = need(next((s for s in found if s[:4].hex() == key_id), None), f"no signature of {name}")
    skip = 12 if key[0] == 4 else 4
    stamp = f"cosignature/v1\ntime {int.from_bytes(signature[4:12], 'big')}\n" if skip == 12 else ""
    try:
        Ed25519PublicKey.from_public_bytes(key[1:]).verify(signature[skip:], (stamp + signed).encode())
    except InvalidSignature:
        need(False, f"the signature of {name}")
at, last, node = int(index), int(size) - 1, sha256(b"\0", sha256(decode(extra)))
need(at <= last, "the index is not in the tree")
for sibling in map(decode, proof.splitlines()):
    need(last > 0, "the proof is too long")
    right = at % 2 == 1 or at == last
    node = sha256(b"\1", sibling, node) if right else sha256(b"\1", node, sibling)
    while right and at % 2 == 0 and at > 0:
        at, last = at >> 1, last >> 1
    at, last = at >> 1, last >> 1
need(last == 0 and node == decode(root), "the proof does not lead to the root")
print(decode(extra).decode())
