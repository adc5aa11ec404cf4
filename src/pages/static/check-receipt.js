// Verifies a pasted receipt of the transparency log in the reader's browser, without requests. The page and the file
// receipt-verifier.html have this script together with the verifier of packages/tlog, without its types.
import {
  encodeHex,
  explainDamage,
  hasEd25519,
  LogNotNamed,
  NotAccepted,
  PolicyNotRead,
  parseCanonical,
  parsePolicy,
  parseProof,
  verifyProof,
} from "../../../packages/tlog/src/verify.ts";

/**
 * Verifies a receipt against a policy that the reader keeps. A vkey alone is a policy that requires this log and no
 * witness. `findRecordHash` gives the data of a leaf by its index, for a proof without a payload; null when it is
 * unknown. `canVerify` is false when the browser lacks Ed25519: then everything but the signatures holds. @throws
 * NotAccepted with the reason.
 */
async function verifyReceipt(text, given, findRecordHash) {
  const policy = await parsePolicy(/^\S+\n?$/.test(given) ? `log ${given.trim()}\nquorum none\n` : given);
  const { extra, index } = parseProof(text);
  const canVerify = await hasEd25519();
  const proved = await verifyProof(text, policy, extra === null ? findRecordHash(index) : null, canVerify);
  const payload = extra && new TextDecoder().decode(extra);
  return { ...proved, payload, recordHash: encodeHex(proved.recordHash), canVerify };
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
  const fields = parseCanonical(payload);
  return typeof fields?.entityId === "string" ? fields : null;
}

function textOf(parent, selector) {
  return parent.querySelector(selector)?.textContent?.trim() ?? null;
}

/**
 * The entries on a history's page, in order. The hashes of unsealed entries and the leaves of entries outside the log
 * are null.
 */
function readEntries() {
  return [...document.querySelectorAll("table.chain tbody tr")].map((row) => ({
    row,
    sequence: Number(textOf(row, ".number")),
    title: textOf(row, ".what strong"),
    eventType: row.dataset.eventType,
    occurredAt: row.querySelector("time").dateTime,
    sealed: row.dataset.seal !== "Pending",
    recordHash: textOf(row, ".record-hash"),
    previousHash: textOf(row, ".previous-hash"),
    leaf: row.dataset.leaf === undefined ? null : Number(row.dataset.leaf),
    kept: row.dataset.kept === "true",
    erasedBy: row.dataset.erasedBy === undefined ? null : Number(row.dataset.erasedBy),
    erases: (row.dataset.erases ?? "").split(" ").filter(Boolean).map(Number),
  }));
}

/** How a receipt's event relates to the history on the page: a result (null: neither good nor bad) and a sentence. */
function compareWithHistory(entityId, fields, recordHash) {
  const entries = readEntries();
  const entry = entries.find((candidate) => candidate.recordHash === recordHash);
  if (entry !== undefined) return [true, say("It is entry {0} of the history on this page.", entry.sequence)];
  if (fields?.entityId !== entityId)
    return [null, say("It is about another voucher: {0}.", fields?.entityId ?? say("unknown"))];
  const claimed = entries.find(({ sequence }) => sequence === fields.sequence);
  if (claimed?.recordHash == null)
    return [null, say("Its entry {0} is not on this page, or not sealed.", fields.sequence)];
  return [false, say("It is not entry {0} of the history on this page, which has another hash.", fields.sequence)];
}

/** The checks that a receipt has passed: a result and a sentence each. */
function describeProof({ origin, index, size, cosignatures, canVerify }) {
  const seen = cosignatures.map(({ key, time }) => {
    const at = new Date(time * 1_000).toISOString().replace(".000", "");
    return canVerify
      ? [true, say("{0} saw it at {1}.", key.name, at)]
      : [null, say("It says that {0} saw it at {1}.", key.name, at)];
  });
  if (seen.length === 0)
    seen.push([null, say("The policy has no witness that saw it: the operator could show another log to others.")]);
  return [
    [
      true,
      size === 1
        ? say("Leaf {0} is in the checkpoint of {1} with 1 leaf.", index, origin)
        : say("Leaf {0} is in the checkpoint of {1} with {2} leaves.", index, origin, size),
    ],
    canVerify
      ? [true, say("The checkpoint is signed by the key of {0} in the policy.", origin)]
      : [null, say("The signatures were not verified.")],
    ...seen,
  ];
}

/** The event's facts for a reader, from the payload that the log has. */
function describeEvent({ eventType, occurredAt, entityId, sequence, data }) {
  const facts = [
    [say("Event"), eventType],
    [say("When"), occurredAt],
    [say("Voucher"), say("{0}, entry {1}", entityId, sequence)],
    [say("Reference"), data?.externalRef],
    [say("Price in USD"), data?.priceUsd],
    [say("Note"), data?.note],
    [say("Sandbox"), data?.sandbox && say("true: the voucher is for tests and has no value")],
  ].filter(([, value]) => value !== undefined && value !== null);
  const rows = facts.map(([name, value]) => make("div", "", make("dt", "", name), make("dd", "", String(value))));
  return make("dl", "facts", ...rows);
}

const LOOK_AND_WORD = {
  true: ["good", say("Yes: ")],
  false: ["bad", say("No: ")],
  null: ["waiting", say("Note: ")],
};

/** Checks as a list. Each one is a result and a sentence. */
function listChecks(checks) {
  const items = checks.map(([ok, sentence]) => {
    const [look, word] = LOOK_AND_WORD[ok];
    return make("li", look, make("span", "hidden", word), sentence);
  });
  return make("ul", "checks", ...items);
}

function showProved(proved, show) {
  // Null in the file that works from a disk.
  const entityId = textOf(document, "#entity-id");
  const fields = proved.payload === null ? null : readPayload(proved.payload);
  const checks = describeProof(proved);
  if (entityId !== null) checks.push(compareWithHistory(entityId, fields, proved.recordHash));
  const contradicts = checks.some(([ok]) => ok === false);
  const isOther = fields !== null && entityId !== null && fields.entityId !== entityId;
  const heading = contradicts
    ? say("This receipt contradicts the history on this page. Keep it.")
    : !proved.canVerify
      ? say("This browser cannot verify signatures. The receipt is not verified")
      : isOther
        ? say("This receipt is valid under this policy, but it is of another voucher")
        : say("This receipt is valid under this policy");
  const details = [listChecks(checks)];
  if (!proved.canVerify) {
    const advice = say(
      "Ed25519 signatures need Chrome or Edge 137, Firefox 129 or Safari 17. Or use a script of the guide.",
    );
    details.push(make("p", "", advice));
  }
  if (fields !== null) details.push(make("p", "label", say("What the event says")), describeEvent(fields));
  if (proved.payload !== null) {
    const exact = make("pre", "", make("code", "", proved.payload));
    details.push(make("details", "", make("summary", "", say("The exact text")), exact));
  }
  show(contradicts ? "bad" : proved.canVerify && !isOther ? "good" : "waiting", heading, ...details);
}

/** Reads a text field. Pasted text often lacks its last newline, which both formats need. */
const readPasted = (field) => (field.value.trim() === "" ? "" : `${field.value.trim()}\n`);

async function checkPasted(form, show) {
  const [receipt, policy] = [readPasted(form.elements.receipt), readPasted(form.elements.policy)];
  if (receipt === "") return show("waiting", say("There is nothing to verify. Paste a receipt first."));
  if (policy === "") {
    return show("waiting", say("Whom do you trust? Paste your copy of the policy, or the log's key."));
  }
  if (!receipt.startsWith("c2sp.org/tlog-proof")) {
    const advice =
      explainDamage(receipt, "receipt") ??
      say("A receipt begins with the line c2sp.org/tlog-proof@v1. Copy its whole text.");
    return show("waiting", say("This is not a receipt"), make("p", "", advice));
  }
  const findRecordHash = (index) => {
    const hash = readEntries().find(({ leaf }) => leaf === index)?.recordHash ?? null;
    return hash === null ? null : Uint8Array.from(hash.match(/../g), (byte) => Number.parseInt(byte, 16));
  };
  try {
    showProved(await verifyReceipt(receipt, policy, findRecordHash), show);
  } catch (error) {
    if (!(error instanceof NotAccepted)) throw error;
    const reason = make("p", "", error.message);
    if (error instanceof PolicyNotRead)
      show("waiting", say("The policy cannot be read. The receipt is not verified"), reason);
    else if (error instanceof LogNotNamed)
      show("bad", say("This receipt is of a log that the policy does not name. Do not rely on it"), reason);
    else show("bad", say("This receipt is not valid. Do not rely on it"), reason);
  }
}

/**
 * Shows the section `NAME-check`, if the page has it, with the result of its form below it. On a connection that is not
 * secure, shows why the form cannot work.
 */
function offerCheck(name, { heading, reason, check }) {
  const [section, form, result] = ["check", "form", "result"].map((part) => document.querySelector(`#${name}-${part}`));
  if (form === null) return;
  section.hidden = false;
  const show = (look, title, ...details) => {
    result.className = `verdict ${look}`;
    result.replaceChildren(make("strong", "", title), ...details);
  };
  if (globalThis.crypto?.subtle === undefined) {
    show("waiting", heading, make("p", "", reason));
    for (const control of form.elements) control.disabled = true;
    return;
  }
  // Removes the result when the text changes, because it belongs to the previous text.
  form.addEventListener("input", () => {
    result.className = "";
    result.replaceChildren();
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    check(form, show);
  });
}

offerCheck("receipt", {
  heading: say("This browser cannot verify receipts here"),
  reason: say(
    "Browsers compute hashes and signatures on secure connections only. Open the https address of this page.",
  ),
  check: checkPasted,
});
