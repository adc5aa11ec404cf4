// Verifies a pasted receipt of the transparency log in the reader's browser, without requests. The page and the file
// receipt-verifier.html contain this script together with the verifier of packages/tlog, without its types.
import {
  encodeHex,
  explainDamage,
  hasEd25519,
  LogNotNamed,
  NotAccepted,
  PolicyNotRead,
  parsePolicy,
  parseProof,
  verifyProof,
} from "../../../packages/tlog/src/verify.ts";

/**
 * Verifies a receipt against a policy that the reader has kept. A vkey alone is a policy that requires this log and no
 * witness. `findRecordHash` returns the data of a leaf by its index, for a proof without a payload. It returns null if
 * the data is unknown. `canVerify` is false if the browser lacks Ed25519. Then everything except the signatures is
 * verified.
 * @throws NotAccepted with the reason.
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

/** The fields of a payload. Null if the text is not an event. */
function readPayload(payload) {
  try {
    const fields = JSON.parse(payload);
    return typeof fields?.entityId === "string" ? fields : null;
  } catch {
    return null;
  }
}

function textOf(parent, selector) {
  return parent.querySelector(selector)?.textContent?.trim() ?? null;
}

/**
 * The entries on a history's page, in order. Unsealed entries have null as their hash, and entries outside the log have
 * null as their leaf.
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

/**
 * How a receipt's event relates to the history on the page: a result (null means neither good nor bad) and a sentence.
 */
function compareWithHistory(entityId, fields, recordHash) {
  const entries = readEntries();
  const entry = entries.find((candidate) => candidate.recordHash === recordHash);
  if (entry !== undefined) return [true, say("receipt.isEntry", { entry: entry.sequence })];
  if (fields?.entityId !== entityId)
    return [null, say("receipt.isOther", { voucher: fields?.entityId ?? say("receipt.unknown") })];
  const claimed = entries.find(({ sequence }) => sequence === fields.sequence);
  if (claimed?.recordHash == null) return [null, say("receipt.entryNotHere", { entry: fields.sequence })];
  return [false, say("receipt.otherHash", { entry: fields.sequence })];
}

/** The checks that a receipt has passed, each a result and a sentence. */
function describeProof({ origin, index, size, cosignatures, canVerify }) {
  const seen = cosignatures.map(({ key, time }) => {
    const at = new Date(time * 1_000).toISOString().replace(".000", "");
    return canVerify
      ? [true, say("receipt.witnessed", { witness: key.name, time: at })]
      : [null, say("receipt.saysWitnessed", { witness: key.name, time: at })];
  });
  if (seen.length === 0) seen.push([null, say("receipt.noWitness")]);
  return [
    [
      true,
      size === 1
        ? say("receipt.onlyLeaf", { leaf: index, log: origin })
        : say("receipt.leafOf", { leaf: index, log: origin, leaves: size }),
    ],
    canVerify ? [true, say("receipt.signed", { log: origin })] : [null, say("receipt.notVerified")],
    ...seen,
  ];
}

/** The facts about the event for a reader, from the payload in the log. */
function describeEvent({ eventType, occurredAt, entityId, sequence, data }) {
  const facts = [
    [say("receipt.event"), eventType],
    [say("receipt.when"), occurredAt],
    [say("receipt.voucher"), say("receipt.entryOf", { voucher: entityId, entry: sequence })],
    [say("receipt.reference"), data?.externalRef],
    [say("receipt.price"), data?.priceUsd],
    [say("receipt.note"), data?.note],
    [say("receipt.sandbox"), data?.sandbox && say("receipt.isSandbox")],
  ].filter(([, value]) => value !== undefined && value !== null);
  const rows = facts.map(([name, value]) => make("div", "", make("dt", "", name), make("dd", "", String(value))));
  return make("dl", "facts", ...rows);
}

const LOOK_AND_WORD = {
  true: ["good", say("receipt.yes")],
  false: ["bad", say("receipt.no")],
  null: ["waiting", say("receipt.hint")],
};

/** The checks as a list. Each check is a result and a sentence. */
function listChecks(checks) {
  const items = checks.map(([ok, sentence]) => {
    const [look, word] = LOOK_AND_WORD[ok];
    return make("li", look, make("span", "hidden", word), sentence);
  });
  return make("ul", "checks", ...items);
}

function showProved(proved, show) {
  // Null in the file that is opened from a disk.
  const entityId = textOf(document, "#entity-id");
  const fields = proved.payload === null ? null : readPayload(proved.payload);
  const checks = describeProof(proved);
  if (entityId !== null) checks.push(compareWithHistory(entityId, fields, proved.recordHash));
  const contradicts = checks.some(([ok]) => ok === false);
  const isOther = fields !== null && entityId !== null && fields.entityId !== entityId;
  const heading = contradicts
    ? say("receipt.contradicts")
    : !proved.canVerify
      ? say("receipt.cannotVerify")
      : isOther
        ? say("receipt.validOther")
        : say("receipt.valid");
  const details = [listChecks(checks)];
  if (!proved.canVerify) {
    const advice = say("receipt.needsEd25519");
    details.push(make("p", "", advice));
  }
  if (fields !== null) details.push(make("p", "label", say("receipt.eventSays")), describeEvent(fields));
  if (proved.payload !== null) {
    const exact = make("pre", "", make("code", "", proved.payload));
    details.push(make("details", "", make("summary", "", say("receipt.exactText")), exact));
  }
  show(contradicts ? "bad" : proved.canVerify && !isOther ? "good" : "waiting", heading, ...details);
}

/** Reads a text field. Pasted text often lacks its last newline, which both formats need. */
const readPasted = (field) => (field.value.trim() === "" ? "" : `${field.value.trim()}\n`);

async function checkPasted(form, show) {
  const [receipt, policy] = [readPasted(form.elements.receipt), readPasted(form.elements.policy)];
  if (receipt === "") return show("waiting", say("receipt.empty"));
  if (policy === "") {
    return show("waiting", say("receipt.noPolicy"));
  }
  if (!receipt.startsWith("c2sp.org/tlog-proof")) {
    const advice = explainDamage(receipt, "receipt") ?? say("receipt.beginsWith");
    return show("waiting", say("receipt.notAReceipt"), make("p", "", advice));
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
    if (error instanceof PolicyNotRead) show("waiting", say("receipt.policyUnread"), reason);
    else if (error instanceof LogNotNamed) show("bad", say("receipt.logNotNamed"), reason);
    else show("bad", say("receipt.notValid"), reason);
  }
}

/**
 * Shows the section `NAME-check`, if the page has it, with its form and the result below the form. On an insecure
 * connection, shows why the form cannot work.
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
  heading: say("receipt.cannotVerifyHere"),
  reason: say("receipt.needsHttps"),
  check: checkPasted,
});
