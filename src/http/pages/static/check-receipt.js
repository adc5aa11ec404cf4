// Verifies a pasted receipt of the transparency log in the reader's browser, without requests. docs/receipt-verifier.html has the same
// script. It accepts what src/domain/log/receipt.ts accepts, and refuses the rest for the same reasons.

const HEADER = "c2sp.org/tlog-proof@v1";
const HASH_BYTES = 32;
const PROOF_MAX = 63;
const SIGNATURES_MAX = 100;
const POLICY_LINES_MAX = 1_000;
/** The first byte of an Ed25519 key says what it signs (C2SP signed-note, tlog-cosignature). */
const TYPE_OF = { log: 1, witness: 4 };
/** The base point of Ed25519: a valid public key that shows whether the browser has Ed25519. */
const SOME_KEY = Uint8Array.of(0x58, ...new Array(31).fill(0x66));

/** A receipt or a policy does not parse or does not hold. The message is for the reader. */
export class NotAccepted extends Error {}

/** The policy does not parse, which says nothing about the receipt. */
class PolicyNotRead extends NotAccepted {}

/** The receipt may be valid under another policy. */
class LogNotNamed extends NotAccepted {}

function concat(...parts) {
  const bytes = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

const utf8 = (text) => new TextEncoder().encode(text);
const isEqual = (a, b) => a.length === b.length && a.every((byte, at) => byte === b[at]);
const toHex = (bytes) => [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
const sha256 = async (...parts) => new Uint8Array(await crypto.subtle.digest("SHA-256", concat(...parts)));

/** Decodes base64 with padding; null for any other spelling of the same bytes. */
function decodeBase64(text) {
  try {
    const binary = atob(text);
    return btoa(binary) === text ? Uint8Array.from(binary, (character) => character.charCodeAt(0)) : null;
  } catch {
    return null;
  }
}

/** Reads a decimal number without sign and leading zeros, or null. */
function parseDecimal(text) {
  const number = /^(0|[1-9]\d{0,15})$/.test(text) ? Number(text) : Number.NaN;
  return Number.isSafeInteger(number) ? number : null;
}

const isKeyName = (text) => text !== "" && text.isWellFormed() && !/[\s+\p{Cc}]/u.test(text);

/** Reads a vkey, `<name>+<id>+<base64>`; null when it is none for this use. */
async function parseKey(use, text) {
  const [name = "", id, ...rest] = text.split("+");
  const bytes = decodeBase64(rest.join("+"));
  if (!isKeyName(name) || bytes?.length !== 33 || bytes[0] !== TYPE_OF[use]) return null;
  const idBytes = (await sha256(utf8(`${name}\n`), bytes)).subarray(0, 4);
  return toHex(idBytes) === id ? { use, name, id: idBytes, bytes: bytes.subarray(1) } : null;
}

/** Why a text cannot be read, if a program has changed or replaced the file: a sentence with the cause and the way out. Null otherwise. */
function explainDamage(text, what) {
  const again = `Download the ${what} again, with curl -o`;
  if (/^\uFEFF|\0/.test(text))
    return `The ${what} is saved as UTF-16 or with a byte order mark. ${again}, or save it as UTF-8.`;
  if (text.includes("\r")) return `The lines of the ${what} end with CR and LF. ${again}, or remove each CR.`;
  if (/^\s*</.test(text)) return `This is a web page, not a ${what}. ${again}, and compare the address.`;
  if (/^\s*[{[]/.test(text)) return `This is JSON, such as an error of the service, not a ${what}. Read it. ${again}.`;
  return text === "" || text.endsWith("\n") ? null : `The last line of the ${what} has no end: it was cut. ${again}.`;
}

/** Parses a policy (C2SP tlog-policy). A vkey alone is a policy that requires this log and no witness. */
export async function parsePolicy(given) {
  const text = /^\S+\n?$/.test(given) ? `log ${given.trim()}\nquorum none\n` : given;
  const policy = { logs: [], witnesses: [], groups: [], quorum: null };
  const names = new Set();
  const members = new Set();
  let quorums = 0;
  const damage = explainDamage(text, "policy");
  if (damage !== null) throw new PolicyNotRead(damage);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what a policy must not have.
  if (/[\u0000-\u0008\u000b-\u001f\u007f]/.test(text)) throw new PolicyNotRead("The policy has a control character.");
  const lines = text.split("\n").slice(0, -1);
  if (lines.length > POLICY_LINES_MAX) throw new PolicyNotRead(`The policy has more than ${POLICY_LINES_MAX} lines.`);
  for (const [index, line] of lines.entries()) {
    const [word = "", ...rest] = line.split(/[ \t]+/).filter((item) => item !== "");
    if (word === "" || word.startsWith("#")) continue;
    const refuse = (reason) => new PolicyNotRead(`Line ${index + 1} of the policy ${reason}.`);
    const define = (name) => {
      if (name === undefined || name === "none" || names.has(name)) throw refuse("needs a name of its own");
      names.add(name);
      return name;
    };
    const readKey = async (use, [vkey = "", url, ...more], others) => {
      const key = await parseKey(use, vkey);
      if (key === null) throw refuse(`has no key of a ${use}`);
      if (more.length > 0 || (url !== undefined && !isUrl(url))) throw refuse("has no URL after the key");
      if (others.some((other) => isEqual(other.key.bytes, key.bytes))) throw refuse("repeats a key");
      return key;
    };
    if (word === "log") policy.logs.push({ key: await readKey("log", rest, policy.logs) });
    else if (word === "witness") {
      const [name, ...keyAndUrl] = rest;
      define(name);
      policy.witnesses.push({ name, key: await readKey("witness", keyAndUrl, policy.witnesses) });
    } else if (word === "group") {
      const [name, count = "", ...of] = rest;
      for (const member of of) {
        if (!names.has(member)) throw refuse(`names ${member}, which no earlier line defines`);
        if (members.has(member)) throw refuse(`repeats the member ${member}`);
        members.add(member);
      }
      const threshold = count === "any" ? 1 : count === "all" ? of.length : (parseDecimal(count) ?? 0);
      if (threshold < 1 || threshold > of.length) throw refuse("has no threshold from 1 to the number of members");
      policy.groups.push({ name: define(name), threshold, members: of });
    } else if (word === "quorum") {
      const [name = "", ...more] = rest;
      if (more.length > 0 || (name !== "none" && !names.has(name))) throw refuse("names no witness and no group");
      policy.quorum = name === "none" ? null : name;
      quorums += 1;
    } else throw refuse("begins with an unknown word");
  }
  if (quorums !== 1) throw new PolicyNotRead("The policy must have one line that begins with quorum.");
  return policy;
}

function isUrl(text) {
  try {
    return new URL(text) !== null;
  } catch {
    return false;
  }
}

/** Whether the witnesses with these names meet the quorum. A policy defines a group after its members. */
function meetsQuorum({ groups, quorum }, witnesses) {
  const met = new Set(witnesses);
  for (const { name, threshold, members } of groups) {
    if (members.filter((member) => met.has(member)).length >= threshold) met.add(name);
  }
  return quorum === null || met.has(quorum);
}

/** Parses a note (C2SP signed-note) with a checkpoint (C2SP tlog-checkpoint); null when it is none. */
function parseCheckpoint(text) {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what a note must not have.
  if (!text.isWellFormed() || /[\u0000-\u0009\u000b-\u001f\u007f]/.test(text)) return null;
  const split = text.lastIndexOf("\n\n");
  if (split < 0 || !text.endsWith("\n") || split + 2 === text.length) return null;
  const lines = text.slice(split + 2, -1).split("\n");
  if (lines.length > SIGNATURES_MAX) return null;
  const signatures = lines.map((line) => {
    const [, name = "", encoded = ""] = /^— (\S+) (\S+)$/u.exec(line) ?? [];
    const bytes = decodeBase64(encoded);
    return isKeyName(name) && bytes !== null && bytes.length > 4
      ? { name, id: bytes.subarray(0, 4), bytes: bytes.subarray(4) }
      : null;
  });
  const [origin = "", sizeText = "", rootText = "", ...others] = text.slice(0, split).split("\n");
  const [size, root] = [parseDecimal(sizeText), decodeBase64(rootText)];
  if (signatures.includes(null) || origin === "" || size === null || root?.length !== HASH_BYTES) return null;
  return others.includes("") ? null : { text: text.slice(0, split + 1), signatures, origin, size, root };
}

/** Parses a receipt, or a proof without a payload (C2SP tlog-proof). */
function parseProof(text) {
  const damage = explainDamage(text, "receipt");
  if (damage !== null) throw new NotAccepted(damage);
  const end = text.indexOf("\n\n");
  if (end < 0) throw new NotAccepted("The proof has no empty line before its checkpoint.");
  const lines = text.slice(0, end).split("\n");
  if (lines.shift() !== HEADER) throw new NotAccepted(`The first line is not ${HEADER}.`);
  const encoded = lines[0]?.startsWith("extra ") ? lines.shift().slice("extra ".length) : null;
  const payload = encoded === null ? null : decodeBase64(encoded);
  if (encoded !== null && payload === null) throw new NotAccepted("The line of the payload is not in base64.");
  const [, digits = ""] = /^index (\d+)$/.exec(lines.shift() ?? "") ?? [];
  const index = parseDecimal(digits);
  if (index === null) throw new NotAccepted("The line of the index is missing or not a decimal number.");
  const hashes = lines.map(decodeBase64);
  if (hashes.length > PROOF_MAX || !hashes.every((node) => node?.length === HASH_BYTES)) {
    throw new NotAccepted("A line of the proof is not a hash in base64.");
  }
  const checkpoint = parseCheckpoint(text.slice(end + 2));
  if (checkpoint === null) throw new NotAccepted("The checkpoint is not well formed.");
  return { payload, index, hashes, checkpoint };
}

/** Whether the browser verifies Ed25519: Chrome and Edge since version 137, Firefox since 129, Safari since 17. */
async function hasEd25519() {
  try {
    await crypto.subtle.importKey("raw", SOME_KEY, { name: "Ed25519" }, false, ["verify"]);
    return true;
  } catch {
    return false;
  }
}

async function isSigned({ bytes }, signature, message) {
  try {
    const key = await crypto.subtle.importKey("raw", bytes, { name: "Ed25519" }, false, ["verify"]);
    return await crypto.subtle.verify({ name: "Ed25519" }, key, signature, message);
  } catch {
    return false;
  }
}

/** The signatures of a checkpoint by the given keys, with the times of witnesses. Signatures by other keys are ignored. */
async function verifySignatures({ text, signatures }, keys, canVerify) {
  const verified = new Map();
  for (const { name, id, bytes } of signatures) {
    const key = keys.find((candidate) => candidate.name === name && isEqual(candidate.id, id));
    if (key === undefined) continue;
    const timeBytes = key.use === "witness" ? 8 : 0;
    const signature = bytes.subarray(timeBytes);
    const isWhole = signature.length === 64;
    const time = isWhole && timeBytes > 0 ? new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0) : null;
    const message = utf8(time === null ? text : `cosignature/v1\ntime ${time}\n${text}`);
    if (!isWhole || (canVerify && !(await isSigned(key, signature, message)))) {
      throw new NotAccepted(`In the checkpoint, the signature of ${name} is wrong.`);
    }
    verified.set(key, time === null ? null : Number(time));
  }
  return verified;
}

async function verifyCheckpoint(policy, checkpoint, canVerify) {
  const { origin } = checkpoint;
  const logs = policy.logs.map(({ key }) => key).filter(({ name }) => name === origin);
  if (logs.length === 0) throw new LogNotNamed(`The policy has no log ${origin}.`);
  if ((await verifySignatures(checkpoint, logs, canVerify)).size === 0) {
    throw new NotAccepted(`The checkpoint is not signed by ${origin}.`);
  }
  const keys = policy.witnesses.map(({ key }) => key);
  const cosignatures = await verifySignatures(checkpoint, keys, canVerify);
  const seenBy = policy.witnesses.filter(({ key }) => cosignatures.has(key));
  if (!meetsQuorum(policy, new Set(seenBy.map(({ name }) => name)))) {
    throw new NotAccepted("The checkpoint has too few cosignatures of the policy's witnesses.");
  }
  return seenBy.map(({ key }) => ({ name: key.name, time: cosignatures.get(key) }));
}

/** The root that a proof leads to, or null when it is not one for this leaf of a tree of this size (RFC 6962, section 2.1.1). */
async function rootFrom(index, size, leaf, hashes) {
  if (index >= size) return null;
  /** From the root down: whether the sibling is on the left. */
  const siblingsLeft = [];
  for (let start = 0, end = size; end - start > 1; ) {
    let half = 1;
    while (half * 2 < end - start) half *= 2;
    siblingsLeft.push(index >= start + half);
    if (index < start + half) end = start + half;
    else start += half;
  }
  if (siblingsLeft.length !== hashes.length) return null;
  let node = await sha256(Uint8Array.of(0), leaf);
  for (const [at, isLeft] of siblingsLeft.reverse().entries()) {
    node = await sha256(Uint8Array.of(1), ...(isLeft ? [hashes[at], node] : [node, hashes[at]]));
  }
  return node;
}

/**
 * Verifies a receipt against a policy that the reader keeps.
 * @param findRecordHash gives the data of a leaf by its index, for a proof without a payload; null when it is unknown.
 * @returns what it proves. `canVerify` is false when the browser lacks Ed25519: then everything but the signatures holds.
 * @throws NotAccepted with the reason.
 */
export async function verifyReceipt(text, policyText, findRecordHash = () => null) {
  const policy = await parsePolicy(policyText);
  const { payload, index, hashes, checkpoint } = parseProof(text);
  const recordHash = payload === null ? findRecordHash(index) : await sha256(payload);
  if (recordHash === null) throw new NotAccepted("The proof has no payload, and no recordHash was given.");
  const canVerify = await hasEd25519();
  const witnesses = await verifyCheckpoint(policy, checkpoint, canVerify);
  const { origin, size, root } = checkpoint;
  const found = await rootFrom(index, size, recordHash, hashes);
  if (found === null) throw new NotAccepted("The proof is not one for this index in a tree of this size.");
  if (!isEqual(found, root)) throw new NotAccepted("The proof does not lead to the checkpoint's root.");
  const words = payload === null ? null : new TextDecoder().decode(payload);
  return { payload: words, recordHash: toHex(recordHash), index, origin, size, witnesses, canVerify };
}

/** Creates an element. Its children are text or elements, never markup. */
function make(tag, className, ...children) {
  const element = document.createElement(tag);
  if (className !== "") element.className = className;
  element.append(...children);
  return element;
}

/** The fields of a payload, or null when the text is not an event. */
function readPayload(payload) {
  try {
    const fields = JSON.parse(payload);
    return typeof fields?.entityId === "string" ? fields : null;
  } catch {
    return null;
  }
}

/** What a history's page shows of its voucher; null in the file that works from a disk. */
function readHistory() {
  const entity = document.querySelector("#entity-id");
  if (entity === null) return null;
  const entries = [...document.querySelectorAll("table.chain tbody tr")].map((row) => ({
    sequence: Number(row.querySelector(".number").textContent),
    recordHash: row.querySelector(".record-hash")?.textContent.trim() ?? null,
    leaf: row.dataset.leaf === undefined ? null : Number(row.dataset.leaf),
  }));
  return { entityId: entity.textContent.trim(), entries };
}

/** How a receipt's event relates to the history on the page: a result (null: neither good nor bad) and a sentence. */
function compareWithHistory({ entityId, entries }, fields, recordHash) {
  const entry = entries.find((candidate) => candidate.recordHash === recordHash);
  if (entry !== undefined) return [true, `It is entry ${entry.sequence} of the history on this page.`];
  if (fields?.entityId !== entityId) return [null, `It is about another voucher: ${fields?.entityId ?? "unknown"}.`];
  const claimed = entries.find(({ sequence }) => sequence === fields.sequence);
  if (claimed?.recordHash == null) return [null, `Its entry ${fields.sequence} is not on this page, or not sealed.`];
  return [false, `It is not entry ${fields.sequence} of the history on this page, which has another hash.`];
}

const describeTime = (seconds) => new Date(seconds * 1_000).toISOString().replace(/\.\d+Z$/, "Z");

/** The checks that a receipt has passed: a result and a sentence each. */
function describeProof({ origin, index, size, witnesses, canVerify }) {
  return [
    [true, `Leaf ${index} is in the checkpoint of ${origin} with ${size} ${size === 1 ? "leaf" : "leaves"}.`],
    canVerify
      ? [true, `The checkpoint is signed by the key of ${origin} in the policy.`]
      : [null, "The signatures were not verified."],
    ...witnesses.map(({ name, time }) =>
      canVerify
        ? [true, `${name} saw it at ${describeTime(time)}.`]
        : [null, `It says that ${name} saw it at ${describeTime(time)}.`],
    ),
    ...(witnesses.length > 0
      ? []
      : [[null, "The policy has no witness that saw it: the operator could show another log to others."]]),
  ];
}

/** The event's facts for a reader, from the payload that the log has. */
function describeEvent({ eventType, occurredAt, entityId, sequence, data }) {
  const facts = [
    ["Event", eventType],
    ["When", occurredAt],
    ["Voucher", `${entityId}, entry ${sequence}`],
    ["Reference", data?.externalRef],
    ["Price in USD", data?.priceUsd],
    ["Note", data?.note],
    ["Sandbox", data?.sandbox && "true: the voucher is for tests and has no value"],
  ].filter(([, value]) => value !== undefined && value !== null);
  return make(
    "dl",
    "facts",
    ...facts.map(([name, value]) => make("div", "", make("dt", "", name), make("dd", "", String(value)))),
  );
}

const LOOK_AND_WORD = { true: ["good", "Yes: "], false: ["bad", "No: "], null: ["waiting", "Note: "] };

function showProved(proved, history) {
  const fields = proved.payload === null ? null : readPayload(proved.payload);
  const relation = history === null ? [] : [compareWithHistory(history, fields, proved.recordHash)];
  const checks = [...describeProof(proved), ...relation];
  const contradicts = checks.some(([ok]) => ok === false);
  const isOther = fields !== null && history !== null && fields.entityId !== history.entityId;
  const heading = contradicts
    ? "This receipt contradicts the history on this page. Keep it."
    : proved.canVerify
      ? `This receipt is valid under this policy${isOther ? ", but it is of another voucher" : ""}`
      : "This browser cannot verify signatures. The receipt is not verified";
  const list = make(
    "ul",
    "checks",
    ...checks.map(([ok, sentence]) => {
      const [look, word] = LOOK_AND_WORD[ok];
      return make("li", look, make("span", "hidden", word), sentence);
    }),
  );
  const advice = proved.canVerify
    ? []
    : [
        make(
          "p",
          "",
          "Ed25519 signatures need Chrome or Edge 137, Firefox 129 or Safari 17. Or use a script of the guide.",
        ),
      ];
  const event = fields === null ? [] : [make("p", "label", "What the event says"), describeEvent(fields)];
  const exact =
    proved.payload === null
      ? []
      : [make("details", "", make("summary", "", "The exact text"), make("pre", "", make("code", "", proved.payload)))];
  const look = contradicts ? "bad" : proved.canVerify && !isOther ? "good" : "waiting";
  showResult(look, heading, list, ...advice, ...event, ...exact);
}

function showResult(look, heading, ...details) {
  const result = document.querySelector("#receipt-result");
  result.className = `verdict ${look}`;
  result.replaceChildren(make("strong", "", heading), ...details);
}

/** Reads a text field. Pasted text often lacks its last newline, which both formats need. */
const readPasted = (field) => (field.value.trim() === "" ? "" : `${field.value.trim()}\n`);

async function checkPasted(form) {
  const [receipt, policy] = [readPasted(form.elements.receipt), readPasted(form.elements.policy)];
  if (receipt === "") return showResult("waiting", "There is nothing to verify. Paste a receipt first.");
  if (policy === "") {
    return showResult("waiting", "Whom do you trust? Paste your copy of the policy, or the log's key.");
  }
  if (!receipt.startsWith("c2sp.org/tlog-proof")) {
    const advice =
      explainDamage(receipt, "receipt") ?? `A receipt begins with the line ${HEADER}. Copy its whole text.`;
    return showResult("waiting", "This is not a receipt", make("p", "", advice));
  }
  const history = readHistory();
  const findRecordHash = (index) => {
    const hash = history?.entries.find(({ leaf }) => leaf === index)?.recordHash ?? null;
    return hash === null ? null : Uint8Array.from(hash.match(/../g), (byte) => Number.parseInt(byte, 16));
  };
  try {
    showProved(await verifyReceipt(receipt, policy, findRecordHash), history);
  } catch (error) {
    if (!(error instanceof NotAccepted)) throw error;
    const reason = make("p", "", error.message);
    if (error instanceof PolicyNotRead)
      showResult("waiting", "The policy cannot be read. The receipt is not verified", reason);
    else if (error instanceof LogNotNamed)
      showResult("bad", "This receipt is of a log that the policy does not name. Do not rely on it", reason);
    else showResult("bad", "This receipt is not valid. Do not rely on it", reason);
  }
}

/** Shows the form, or why it cannot work here. */
function offerReceiptCheck(form) {
  document.querySelector("#receipt-check").hidden = false;
  if (globalThis.crypto?.subtle === undefined) {
    const reason =
      "Browsers compute hashes and signatures on secure connections only. Open the https address of this page.";
    showResult("waiting", "This browser cannot verify receipts here", make("p", "", reason));
    for (const control of form.elements) control.disabled = true;
    return;
  }
  // Removes the result when the text changes, because it belongs to the previous text.
  form.addEventListener("input", () => {
    document.querySelector("#receipt-result").className = "";
    document.querySelector("#receipt-result").replaceChildren();
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    checkPasted(form);
  });
}

const receiptForm = globalThis.document?.querySelector("#receipt-form") ?? null;
if (receiptForm !== null) offerReceiptCheck(receiptForm);
