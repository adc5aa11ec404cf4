// Checks a voucher's chain in the reader's browser, from the very text that the reader sees: it asks the server for nothing.

const FIRST_PREVIOUS_HASH = "0".repeat(64);

/** Makes an element; what is put into it is text, never markup. */
function make(tag, className, ...children) {
  const element = document.createElement(tag);
  if (className !== "") element.className = className;
  element.append(...children);
  return element;
}

function textOf(parent, selector) {
  return parent.querySelector(selector)?.textContent?.trim() ?? null;
}

/** The entries on the page, in order. Hashes are null where an entry is not sealed. */
function readEntries() {
  return [...document.querySelectorAll("table.chain tbody tr")].map((row) => ({
    row,
    sequence: Number(textOf(row, ".number")),
    title: textOf(row, ".what strong"),
    eventType: row.dataset.eventType,
    occurredAt: row.querySelector("time").dateTime,
    sealed: row.dataset.seal === "Sealed",
    recordHash: textOf(row, ".record-hash"),
    previousHash: textOf(row, ".previous-hash"),
  }));
}

/** The entry before the page's first one: its number and hash, or the beginning of every chain. */
function readBefore() {
  const element = document.querySelector("#before");
  if (element === null) return { sequence: 0, recordHash: FIRST_PREVIOUS_HASH };
  return { sequence: Number(element.dataset.sequence), recordHash: textOf(element, ".record-hash") };
}

/** What is wrong with an entry behind another one, in words, or null. */
function findFault(entry, previous) {
  if (entry.sequence !== previous.sequence + 1) return `Entry ${previous.sequence + 1} is missing before it.`;
  if (!entry.sealed) return null;
  if (!/^[0-9a-f]{64}$/.test(entry.recordHash ?? "")) return "Its hash is not a SHA-256 hash.";
  if (previous.recordHash === null) return "It is sealed although the entry before it is not.";
  if (entry.previousHash === previous.recordHash) return null;
  return previous.sequence === 0
    ? "It is the first entry and does not begin with 64 zeros."
    : `The hash before that it names is not the hash of entry ${previous.sequence}.`;
}

function checkLinks(entries, before) {
  let previous = before;
  const faults = [];
  for (const entry of entries) {
    const fault = findFault(entry, previous);
    markLink(entry, previous, fault);
    if (fault !== null) faults.push({ entry, fault });
    previous = entry;
  }
  return faults;
}

/** Writes beside an entry's link whether it holds. */
function markLink(entry, previous, fault) {
  if (fault === null && !entry.sealed) return;
  const sentence =
    fault ?? (previous.sequence === 0 ? "The start of the chain" : `The hash of entry ${previous.sequence}`);
  const mark = make("span", fault === null ? "mark good" : "mark bad", sentence);
  (entry.row.querySelector(".previous-hash")?.parentElement ?? entry.row.querySelector(".what")).append(" ", mark);
  if (fault !== null) entry.row.classList.add("faulty");
}

function count(number, noun, plural) {
  return `${number} ${number === 1 ? noun : plural}`;
}

function showVerdict(entries, faults) {
  const verdict = document.querySelector("#verdict");
  const pending = entries.filter((entry) => !entry.sealed).length;
  const sealed = entries.length - pending;
  if (entries.length === 0) return;
  const waiting =
    pending === 0 ? "" : ` ${count(pending, "entry is", "entries are")} not sealed yet; that takes seconds as a rule.`;
  if (faults.length > 0) {
    verdict.className = "verdict bad";
    const [first] = faults;
    verdict.append(
      make("strong", "", "The chain is broken"),
      make(
        "p",
        "",
        `Entry ${first.entry.sequence}: ${first.fault} Do not trust what this page says about the voucher.`,
      ),
    );
  } else if (sealed === 0) {
    verdict.className = "verdict waiting";
    verdict.append(make("strong", "", "Nothing here is sealed yet"), make("p", "", waiting.trim()));
  } else {
    verdict.className = "verdict good";
    verdict.append(
      make("strong", "", "Every link holds"),
      make("p", "", `${describeLinks(entries[0].sequence, sealed)} Your browser checked this just now.${waiting}`),
    );
  }
}

/** What holds of this many sealed entries, the first of which is number `first`. */
function describeLinks(first, sealed) {
  if (first === 1)
    return `Entry 1 starts the chain${sealed > 1 ? ", and each entry after it names the hash of the one before" : ""}.`;
  if (sealed === 1) return `Entry ${first} names the hash of the entry before.`;
  return `Entries ${first} to ${first + sealed - 1} each name the hash of the entry before.`;
}

/** Adds the reader's own time behind each UTC time, unless that is the same. */
function showLocalTimes() {
  const format = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });
  for (const time of document.querySelectorAll("table.chain time")) {
    const moment = new Date(time.dateTime);
    if (moment.getTimezoneOffset() !== 0)
      time.after(" ", make("span", "local", `${format.format(moment)} where you are`));
  }
}

async function sha256Hex(text) {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The payload in what was pasted: blanks around it are nobody's, and a quoted one is taken out of its quotes. */
function unwrapPayload(pasted) {
  const text = pasted.trim();
  if (!text.startsWith('"')) return text;
  try {
    const inside = JSON.parse(text);
    return typeof inside === "string" ? inside : text;
  } catch {
    return text;
  }
}

/** The fields of a payload, or null when it is none. */
function readPayload(payload) {
  try {
    const said = JSON.parse(payload);
    return typeof said === "object" && said !== null && typeof said.entityId === "string" ? said : null;
  } catch {
    return null;
  }
}

/** Judges a payload against the chain on the page. Each check is a sentence and whether it holds. */
function judgePayload(payload, hash, entries) {
  const entityId = textOf(document, "#entity-id");
  const { entityType } = document.querySelector("#entity-id").dataset;
  const said = readPayload(payload);
  const entry = entries.find((candidate) => candidate.recordHash === hash);
  if (entry !== undefined) {
    const checks = [
      [true, `Its SHA-256 is the hash of entry ${entry.sequence}.`],
      [said?.sequence === entry.sequence, `It says that it is entry ${said?.sequence}.`],
      [said?.previousHash === entry.previousHash, "It names the same hash before as the chain does."],
      [said?.entityType === entityType && said?.entityId === entityId, "It is about this voucher."],
      [
        said?.eventType === entry.eventType && said?.occurredAt === entry.occurredAt,
        "It says the same event at the same time as the chain does.",
      ],
    ];
    const holds = checks.every(([ok]) => ok);
    return {
      holds,
      heading: holds
        ? `This is entry ${entry.sequence}, “${entry.title}”, exactly as it was sealed`
        : `This is the text of entry ${entry.sequence}, and the chain here does not say the same`,
      checks,
      entry,
    };
  }
  return { holds: false, ...explainMismatch(said, entityId, entries) };
}

/** Why a payload is none of the entries on the page. */
function explainMismatch(said, entityId, entries) {
  if (said === null) {
    return {
      heading: "This is not the payload of an entry",
      checks: [
        [
          false,
          "No entry on this page has its hash, and it is not the text of one. Copy the payload field alone, whole.",
        ],
      ],
    };
  }
  if (said.entityId !== entityId) {
    return {
      heading: "This is about another voucher",
      checks: [[false, `It names ${said.entityId}, while this is the history of ${entityId}.`]],
    };
  }
  const claimed = entries.find((candidate) => candidate.sequence === said.sequence);
  if (claimed === undefined) {
    return {
      heading: "This entry is not on this page",
      checks: [
        [
          false,
          `It says that it is entry ${said.sequence}. Paste it on the page of the history that shows that entry.`,
        ],
      ],
    };
  }
  if (!claimed.sealed) {
    return {
      heading: "This entry is not sealed yet",
      checks: [[false, `It says that it is entry ${said.sequence}, which has no hash to compare with yet.`]],
    };
  }
  return {
    heading: `This is not what was sealed as entry ${claimed.sequence}`,
    checks: [
      [
        false,
        `It says that it is entry ${claimed.sequence}, but its hash is not that entry's. One changed character is enough, and so is writing its JSON anew: it must be the text as the API gave it.`,
      ],
    ],
    entry: claimed,
  };
}

function showJudgement(hash, { holds, heading, checks, entry }) {
  const list = make(
    "ul",
    "checks",
    ...checks.map(([ok, sentence]) =>
      make("li", ok ? "good" : "bad", make("span", "hidden", ok ? "Yes: " : "No: "), sentence),
    ),
  );
  const place =
    entry === undefined
      ? []
      : [Object.assign(make("a", "", `Go to entry ${entry.sequence}`), { href: `#entry-${entry.sequence}` })];
  const result = document.querySelector("#payload-result");
  result.className = holds ? "verdict good" : "verdict bad";
  result.replaceChildren(
    make("strong", "", heading),
    make("p", "hash", make("span", "label", "SHA-256 of what you pasted"), " ", make("code", "", hash)),
    list,
    ...place,
  );
}

function offerPayloadCheck(entries) {
  document.querySelector("#payload-check").hidden = false;
  const form = document.querySelector("#payload-form");
  const result = document.querySelector("#payload-result");
  if (globalThis.crypto?.subtle === undefined) {
    result.className = "verdict waiting";
    result.append(
      make("strong", "", "This browser cannot hash here"),
      make(
        "p",
        "",
        "Browsers hash on secure connections only, and this page came over plain http. Open it by its https address.",
      ),
    );
    for (const control of form.elements) control.disabled = true;
    return;
  }
  // What was said of another text would mislead.
  form.addEventListener("input", () => {
    result.className = "";
    result.replaceChildren();
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const payload = unwrapPayload(form.elements.payload.value);
    if (payload === "") {
      result.className = "verdict waiting";
      result.replaceChildren(make("strong", "", "There is nothing to hash: paste a payload first"));
      return;
    }
    const hash = await sha256Hex(payload);
    showJudgement(hash, judgePayload(payload, hash, entries));
  });
}

const entries = readEntries();
showVerdict(entries, checkLinks(entries, readBefore()));
showLocalTimes();
offerPayloadCheck(entries);
