// Checks a voucher's chain in the reader's browser, from the text on the page. The check sends no request to the server.
// The script reloads the page while an entry is not sealed or not in the log yet.

const FIRST_PREVIOUS_HASH = "0".repeat(64);

/** Creates an element. Its children are text or elements, never markup. */
function make(tag, className, ...children) {
  const element = document.createElement(tag);
  if (className !== "") element.className = className;
  element.append(...children);
  return element;
}

function textOf(parent, selector) {
  return parent.querySelector(selector)?.textContent?.trim() ?? null;
}

/** The entries on the page, in order. The hashes of unsealed entries are null. */
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

/** The number and hash of the entry before the page's first entry. On the first page: number 0 and a hash of zeros. */
function readPreviousEntry() {
  const element = document.querySelector("#before");
  if (element === null) return { sequence: 0, recordHash: FIRST_PREVIOUS_HASH };
  return { sequence: Number(element.dataset.sequence), recordHash: textOf(element, ".record-hash") };
}

/** A sentence that says what is wrong with an entry after `previous`, or null. */
function findFault(entry, previous) {
  if (entry.sequence !== previous.sequence + 1) return `Entry ${previous.sequence + 1} is missing before it.`;
  if (!entry.sealed) return null;
  if (!/^[0-9a-f]{64}$/.test(entry.recordHash ?? "")) return "Its hash is not a SHA-256 hash.";
  if (previous.recordHash === null) return "It is sealed, but the previous entry is not.";
  if (entry.previousHash === previous.recordHash) return null;
  return previous.sequence === 0
    ? "It is the first entry, but its previous hash is not 64 zeros."
    : `Its previous hash is not the hash of entry ${previous.sequence}.`;
}

/** Checks and marks the link of each entry. Returns the faulty entries, each with a sentence. */
function checkLinks(entries, entryBefore) {
  let previous = entryBefore;
  const faults = [];
  for (const entry of entries) {
    const fault = findFault(entry, previous);
    markLink(entry, previous, fault);
    if (fault !== null) faults.push({ entry, fault });
    previous = entry;
  }
  return faults;
}

/** Marks an entry's link as valid or faulty, next to its hashes. Opens the hashes of a faulty entry. */
function markLink(entry, previous, fault) {
  if (fault === null && !entry.sealed) return;
  const sentence =
    fault ?? (previous.sequence === 0 ? "The start of the chain" : `Linked to entry ${previous.sequence}`);
  const mark = make("span", fault === null ? "mark good" : "mark bad", sentence);
  (entry.row.querySelector("summary") ?? entry.row.querySelector(".what")).append(" ", mark);
  if (fault === null) return;
  entry.row.classList.add("faulty");
  entry.row.querySelector("details")?.setAttribute("open", "");
}

/** Adds the result of the check to the verdict at the top of the page. Replaces the verdict if the chain is broken. */
function showVerdict(entries, faults) {
  const verdict = document.querySelector("#verdict");
  if (verdict === null) return;
  const sentence = verdict.querySelector("strong");
  const pending = entries.some((entry) => !entry.sealed);
  const [first] = faults;
  if (first !== undefined) {
    verdict.className = "verdict bad";
    sentence.textContent = "This history is broken. Do not rely on it.";
    sentence.after(make("p", "", `Entry ${first.entry.sequence}: ${first.fault}`));
    return;
  }
  showLocalTime(sentence.querySelector("time"));
  const sealed = entries.filter((entry) => entry.sealed);
  if (sealed.length === 0) return;
  const whole = verdict.dataset.whole === "true";
  if (!pending) verdict.className = "verdict good";
  const intact = whole ? " The history is intact." : " Every link on this page is valid.";
  sentence.append(pending ? " The sealed entries are intact." : intact);
  sentence.after(
    make("p", "", `${describeLinks(entries[0].sequence, sealed.length)} Your browser checked this just now.`),
  );
}

/** Describes the links of `sealedCount` consecutive entries. `first` is the number of the first one. */
function describeLinks(first, sealedCount) {
  if (first === 1)
    return `Entry 1 starts the chain${sealedCount > 1 ? ", and each later entry contains the hash of the previous one" : ""}.`;
  if (sealedCount === 1) return `Entry ${first} contains the hash of the previous entry.`;
  return `Entries ${first} to ${first + sealedCount - 1} each contain the hash of the previous entry.`;
}

function isLocalTimeUtc(moment) {
  return moment.getTimezoneOffset() === 0;
}

/** Replaces a time in UTC by the reader's local time. */
function showLocalTime(time) {
  if (time === null) return;
  const moment = new Date(time.dateTime);
  if (isLocalTimeUtc(moment)) return;
  const date = new Intl.DateTimeFormat(undefined, { dateStyle: "long" });
  const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "short" });
  time.textContent = `${date.format(moment)}, ${clock.format(moment)} your time`;
}

/** Adds the reader's local time to each UTC time of the table, unless they are equal. */
function showLocalTimes() {
  const format = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });
  for (const time of document.querySelectorAll("table.chain time")) {
    const moment = new Date(time.dateTime);
    if (!isLocalTimeUtc(moment)) time.after(" ", make("span", "local", `${format.format(moment)} local time`));
  }
}

/** The waits before each reload of a page with an entry that is not sealed or not in the log yet. The last one repeats. Seconds. */
const RELOAD_AFTER_SECONDS = [3, 5, 10, 20, 40];

/** Reloads an intact page until all its entries are sealed and in the log. Waits while the page is hidden, has pasted text or has an open section. */
function reloadWhilePending(faults) {
  const notices = document.querySelectorAll("#verdict .pending, #log.pending");
  if (faults.length > 0 || notices.length === 0) return;
  const round = history.state?.round ?? 0;
  const seconds = RELOAD_AFTER_SECONDS[round] ?? RELOAD_AFTER_SECONDS.at(-1);
  for (const notice of notices) notice.append(" This page looks again by itself.");
  const reload = () => {
    const pasteFields = [...document.querySelectorAll("#payload, #receipt")];
    const inUse = document.hidden || pasteFields.some((field) => field.value !== "");
    if (inUse || document.querySelector("details[open]") !== null) return void setTimeout(reload, 1_000);
    history.replaceState({ round: round + 1 }, "");
    location.reload();
  };
  setTimeout(reload, seconds * 1_000);
}

/** Adds a copy button after each id and hash. */
function addCopyButtons() {
  for (const code of document.querySelectorAll("code.copied")) {
    const button = make("button", "copy", "Copy");
    button.type = "button";
    const name = code.closest("dd")?.previousElementSibling.textContent.toLowerCase() ?? "voucher id";
    const entry = code.closest("tr")?.querySelector(".number").textContent;
    button.setAttribute("aria-label", `Copy ${name}${entry === undefined ? "" : ` of entry ${entry}`}`);
    button.addEventListener("click", async () => {
      button.textContent = (await copy(code)) ? "Copied" : "Press Ctrl+C";
      setTimeout(() => {
        button.textContent = "Copy";
      }, 2_000);
    });
    code.after(" ", button);
  }
}

/** Copies an element's text and returns true. If the browser does not allow that, selects the text and returns false. */
async function copy(element) {
  try {
    await navigator.clipboard.writeText(element.textContent);
    return true;
  } catch {
    getSelection().selectAllChildren(element);
    return false;
  }
}

async function sha256Hex(text) {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The payload in pasted text: without surrounding spaces, and without the quotes of a JSON string. */
function unwrapPayload(pasted) {
  const text = pasted.trim();
  if (!text.startsWith('"')) return text;
  try {
    const unquoted = JSON.parse(text);
    return typeof unquoted === "string" ? unquoted : text;
  } catch {
    return text;
  }
}

/** The fields of a payload, or null when the text is not a payload. */
function readPayload(payload) {
  try {
    const fields = JSON.parse(payload);
    return typeof fields?.entityId === "string" ? fields : null;
  } catch {
    return null;
  }
}

/** Compares a payload with the chain on the page. Each check is a pair: whether it passed, and a sentence. */
function comparePayload(payload, hash, entries) {
  const entityId = textOf(document, "#entity-id");
  const { entityType } = document.querySelector("#entity-id").dataset;
  const fields = readPayload(payload);
  const entry = entries.find((candidate) => candidate.recordHash === hash);
  if (entry !== undefined) {
    const checks = [
      [true, `Its SHA-256 is the hash of entry ${entry.sequence}.`],
      [fields?.sequence === entry.sequence, `Its sequence number is ${entry.sequence}.`],
      [fields?.previousHash === entry.previousHash, "Its previous hash is the one in the chain."],
      [fields?.entityType === entityType && fields?.entityId === entityId, "It is about this voucher."],
      [
        fields?.eventType === entry.eventType && fields?.occurredAt === entry.occurredAt,
        "Its event and time are those in the chain.",
      ],
    ];
    const matches = checks.every(([ok]) => ok);
    return {
      matches,
      heading: matches
        ? `This is entry ${entry.sequence}, “${entry.title}”, exactly as it was sealed`
        : `This is the text of entry ${entry.sequence}, but the chain on this page differs`,
      checks,
      entry,
    };
  }
  return { matches: false, ...explainMismatch(fields, entityId, entries) };
}

/** Why a payload matches no entry on the page. */
function explainMismatch(fields, entityId, entries) {
  if (fields === null) {
    return {
      heading: "This is not the payload of an entry",
      checks: [
        [
          false,
          "It has the hash of no entry on this page and is not the text of an entry. Copy the whole payload field and nothing else.",
        ],
      ],
    };
  }
  if (fields.entityId !== entityId) {
    return {
      heading: "This payload is about another voucher",
      checks: [[false, `It names ${fields.entityId}, but this is the history of ${entityId}.`]],
    };
  }
  const claimed = entries.find((candidate) => candidate.sequence === fields.sequence);
  if (claimed === undefined) {
    return {
      heading: "This entry is not on this page",
      checks: [
        [
          false,
          `Its sequence number is ${fields.sequence}. Paste it on the page of the history that shows this entry.`,
        ],
      ],
    };
  }
  if (!claimed.sealed) {
    return {
      heading: "This entry is not sealed yet",
      checks: [[false, `Its sequence number is ${fields.sequence}. That entry has no hash yet.`]],
    };
  }
  return {
    heading: `This is not what was sealed as entry ${claimed.sequence}`,
    checks: [
      [
        false,
        `Its sequence number is ${claimed.sequence}, but its hash is not that entry's. One changed character is enough, and so is reformatted JSON: paste the text exactly as the API returned it.`,
      ],
    ],
    entry: claimed,
  };
}

function showComparison(hash, { matches, heading, checks, entry }) {
  const list = make(
    "ul",
    "checks",
    ...checks.map(([ok, sentence]) =>
      make("li", ok ? "good" : "bad", make("span", "hidden", ok ? "Yes: " : "No: "), sentence),
    ),
  );
  const link =
    entry === undefined
      ? []
      : [Object.assign(make("a", "", `Go to entry ${entry.sequence}`), { href: `#entry-${entry.sequence}` })];
  const result = document.querySelector("#payload-result");
  result.className = matches ? "verdict good" : "verdict bad";
  result.replaceChildren(
    make("strong", "", heading),
    make("p", "hash", make("span", "label", "SHA-256 of what you pasted"), " ", make("code", "", hash)),
    list,
    ...link,
  );
}

/** Shows the form that compares a pasted payload with the chain. */
function enablePayloadCheck(entries) {
  document.querySelector("#payload-check").hidden = false;
  const form = document.querySelector("#payload-form");
  const result = document.querySelector("#payload-result");
  if (globalThis.crypto?.subtle === undefined) {
    result.className = "verdict waiting";
    result.append(
      make("strong", "", "This browser cannot compute hashes here"),
      make(
        "p",
        "",
        "Browsers compute hashes on secure connections only, and this page was loaded over plain http. Open its https address.",
      ),
    );
    for (const control of form.elements) control.disabled = true;
    return;
  }
  // Removes the result when the text changes, because it belongs to the previous text.
  form.addEventListener("input", () => {
    result.className = "";
    result.replaceChildren();
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const payload = unwrapPayload(form.elements.payload.value);
    if (payload === "") {
      result.className = "verdict waiting";
      result.replaceChildren(make("strong", "", "There is nothing to hash. Paste a payload first."));
      return;
    }
    const hash = await sha256Hex(payload);
    showComparison(hash, comparePayload(payload, hash, entries));
  });
}

const entries = readEntries();
const faults = checkLinks(entries, readPreviousEntry());
showVerdict(entries, faults);
showLocalTimes();
addCopyButtons();
enablePayloadCheck(entries);
reloadWhilePending(faults);
