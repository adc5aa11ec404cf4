// Verifies a receipt, offline: node verify-receipt.mjs RECEIPT LOG_VKEY [WITNESS_VKEY...]
// Exit 0: the payload is in the log of that key, and every given witness has seen the checkpoint. 1: the receipt is refused. 2: the command
// line is wrong, or the file cannot be read.
import { createHash, createPublicKey, verify } from "node:crypto";
import { readFileSync } from "node:fs";

const [file, logKey, ...witnessKeys] = process.argv.slice(2);
const need = (fact, reason, status = 1) => {
  if (fact) return fact;
  console.error(`${status === 1 ? "Refused" : "Cannot verify"}: ${reason}.`);
  process.exit(status);
};
const sha256 = (...parts) => createHash("sha256").update(Buffer.concat(parts)).digest();
const base64 = (text, what = "a line is not base64", status = 1) => {
  const bytes = Buffer.from(text ?? "", "base64");
  need(bytes.length > 0 && bytes.toString("base64") === text, what, status);
  return bytes;
};
need(logKey && file, "name a receipt and the vkey of its log", 2);
let text = "";
try {
  text = readFileSync(file, "utf8");
} catch (error) {
  need(false, `the file cannot be read: ${error.message}`, 2);
}
for (const [sign, reason] of [
  [/^\uFEFF|\0/, "the file is saved as UTF-16 or with a byte order mark; save it as UTF-8"],
  [/\r/, "the lines end with CR and LF; download the receipt again, or remove each CR"],
  [/^\s*</, "this is a web page; compare the address and download the receipt again"],
  [/^\s*[{[]/, "this is JSON, such as an error of the service; read it and download the receipt again"],
  [/[^\n\x20-\x7e\x80-\u{10ffff}]/u, "the text has a control character; download it again"],
  [/[^\n]$/, "the last line has no end, so the receipt was cut; download it again"],
])
  need(!sign.test(text), reason);
const shape =
  /^c2sp\.org\/tlog-proof@v1\nextra (\S+)\nindex (0|[1-9]\d{0,14})\n((?:\S{44}\n)*)\n((\S+)\n(0|[1-9]\d{0,14})\n(\S{44})\n(?:[^\n]+\n)*)\n((?:— [^\s+]+ \S+\n){1,100})$/;
const [, extra, index, proof, signed, origin, size, root, signatures] =
  text.match(shape) ?? need(false, "the text does not have the form of a receipt; download it again");
const lines = signatures.split("\n").slice(0, -1);
const found = lines.map((line) => ({ by: line.split(" ")[1], bytes: base64(line.split(" ")[2]) }));
need(
  found.every(({ bytes }) => bytes.length > 4),
  "a signature is too short",
);
need(origin === logKey.split("+")[0], "the receipt is of another log");
for (const vkey of [logKey, ...witnessKeys]) {
  const [name, id, ...rest] = vkey.split("+");
  const key = base64(rest.join("+"), `the vkey ${name} is not valid`, 2);
  const isWitness = key[0] === 4;
  need(key.length === 33 && (isWitness || key[0] === 1), `the vkey ${name} is not valid`, 2);
  const own = found.filter(({ by, bytes }) => by === name && bytes.toString("hex", 0, 4) === id);
  need(own.length > 0, `it has no signature of ${name}`);
  const spki = Buffer.concat([Buffer.from("302a300506032b6570032100", "hex"), key.subarray(1)]);
  const publicKey = createPublicKey({ key: spki, format: "der", type: "spki" });
  // If one key has signed twice, both signatures are right.
  for (const { bytes } of own) {
    need(bytes.length === (isWitness ? 76 : 68), `the signature of ${name} is wrong`);
    const time = isWitness ? bytes.readBigUInt64BE(4) : 0n;
    const message = isWitness ? `cosignature/v1\ntime ${time}\n${signed}` : signed;
    const isRight = verify(null, Buffer.from(message), publicKey, bytes.subarray(-64));
    // The last second of the year 9999.
    need(isRight && time <= 253402300799n, `the signature of ${name} is wrong`);
  }
}
let [at, last, node] = [Number(index), Number(size) - 1, sha256(Buffer.of(0), sha256(base64(extra)))];
need(at <= last, "the index is not in the tree");
for (const sibling of proof
  .split("\n")
  .slice(0, -1)
  .map((line) => base64(line))) {
  need(last > 0, "the proof is too long");
  const isRight = at % 2 === 1 || at === last;
  node = isRight ? sha256(Buffer.of(1), sibling, node) : sha256(Buffer.of(1), node, sibling);
  while (isRight && at % 2 === 0 && at > 0) [at, last] = [at / 2, Math.floor(last / 2)];
  [at, last] = [Math.floor(at / 2), Math.floor(last / 2)];
}
need(last === 0 && node.equals(base64(root)), "the proof does not lead to the root");
/** Writes canonical JSON (RFC 8785). */
const canonical = (value) => {
  if (typeof value === "string" && !value.isWellFormed()) throw new Error("a lone surrogate");
  if (Array.isArray(value)) return `[${value.map(canonical)}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const names = Object.keys(value).sort();
  return `{${names.map((name) => `${canonical(name)}:${canonical(value[name])}`)}}`;
};
let isEvent = false;
try {
  const payload = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(base64(extra));
  isEvent = payload.startsWith("{") && canonical(JSON.parse(payload)) === payload;
} catch {}
need(isEvent, "the payload is not an object in canonical JSON");
const seenBy =
  witnessKeys.length === 0 ? "" : `, and each of ${witnessKeys.length} given witness keys has signed its checkpoint`;
console.error(`Valid: the log ${origin} has this event${seenBy}.`);
process.stdout.write(`${base64(extra)}\n`);
