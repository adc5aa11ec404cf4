// A part of the script of a chain's page, after check-receipt.js and copy.js. Checks the chain in the reader's browser,
// from the text on the page, without a request. While an entry is not sealed or not in the log yet, reloads the page.

/** The number and hash of the entry before the page's first entry. On the first page: number 0 and a hash of zeros. */
function readPreviousEntry() {
  const element = document.querySelector("#before");
  if (element === null) return { sequence: 0, recordHash: "0".repeat(64) };
  return { sequence: Number(element.dataset.sequence), recordHash: textOf(element, ".record-hash") };
}

/**
 * Checks an erasure that the entry claims or has undergone, and a payload that is lost. Returns a sentence about the
 * problem, or null. The entry that erased it may be on a later page.
 */
function findFalseErasure(entry) {
  const isEarlier = (erased) => Number.isInteger(erased) && erased >= 1 && erased < entry.sequence;
  if (!entry.erases.every(isEarlier)) return say("chain.erasesLater");
  if (entry.erasedBy === null) return entry.kept ? null : say("chain.lost");
  const erasing = entries.find(({ sequence }) => sequence === entry.erasedBy);
  const hasMore = document.querySelector('nav.paging a[rel="next"]') !== null;
  const isElsewhere = hasMore && entry.erasedBy > entries.at(-1).sequence;
  const isNamed = erasing?.sealed && erasing.sequence > entry.sequence && erasing.erases.includes(entry.sequence);
  return isElsewhere || isNamed ? null : say("chain.erasedUnsaid");
}

/** A sentence about the problem of an entry that follows `previous`, or null. */
function findFault(entry, previous) {
  if (entry.sequence !== previous.sequence + 1) return say("chain.missingBefore", { entry: previous.sequence + 1 });
  const hasHash = entry.recordHash !== null || entry.previousHash !== null;
  if (!entry.sealed) return hasHash ? say("chain.notSealedButHashed") : null;
  if (!/^[0-9a-f]{64}$/.test(entry.recordHash ?? "")) return say("chain.notAHash");
  if (previous.recordHash === null) return say("chain.sealedAfterUnsealed");
  if (entry.previousHash === previous.recordHash) return findFalseErasure(entry);
  return previous.sequence === 0 ? say("chain.firstNotZeros") : say("chain.notLinked", { entry: previous.sequence });
}

/** Marks an entry's link as valid or faulty, next to its hashes. Opens the hashes of a faulty entry. */
function markLink(entry, previous, fault) {
  if (fault === null && !entry.sealed) return;
  const sentence =
    fault ?? (previous.sequence === 0 ? say("chain.start") : say("chain.linked", { entry: previous.sequence }));
  const mark = make("span", fault === null ? "mark good" : "mark bad", sentence);
  (entry.row.querySelector("summary") ?? entry.row.querySelector(".what")).append(" ", mark);
  if (fault === null) return;
  entry.row.className = "faulty bad";
  entry.row.querySelector("details")?.setAttribute("open", "");
}

/** Adds the result of the check to the verdict at the top of the page. Replaces the verdict if the chain is broken. */
function showVerdict(verdict, faults) {
  const sentence = verdict.querySelector("strong");
  const explain = (text) => sentence.after(make("p", "", text));
  if (faults.length > 0) {
    verdict.className = "verdict bad";
    sentence.textContent = say("chain.broken");
    return explain(say("chain.fault", { entry: faults[0].entry.sequence, fault: faults[0].fault }));
  }
  showLocalTime(sentence.querySelector("time"));
  const sealed = entries.filter((entry) => entry.sealed);
  if (sealed.length === 0) return;
  const whole = verdict.dataset.whole === "true";
  if (sealed.length < entries.length) sentence.append(` ${say("chain.sealedIntact")}`);
  else {
    verdict.className = "verdict good";
    sentence.append(` ${whole ? say("chain.intact") : say("chain.linksValid")}`);
  }
  explain(`${describeLinks(entries[0].sequence, sealed.length)} ${say("chain.checkedNow")}`);
}

/** Describes the links of `sealedCount` consecutive entries. `first` is the number of the first entry. */
function describeLinks(first, sealedCount) {
  if (first === 1) return sealedCount === 1 ? say("chain.startsAlone") : say("chain.startsAndLinks");
  if (sealedCount === 1) return say("chain.linksOne", { entry: first });
  return say("chain.linksRange", { first, last: first + sealedCount - 1 });
}

/** Whether the reader's clock shows the same time as the page, which uses the time zone of the organization. */
function isPageTime(moment) {
  const { timeZone } = document.querySelector("#entity-id").dataset;
  const [shown, local] = [timeZone, undefined].map((zone) => moment.toLocaleString("en", { timeZone: zone }));
  return shown === local;
}

/** A moment in the reader's time zone, with the page's formats of dates. */
function formatLocal(moment, options) {
  const { lang } = document.documentElement;
  return new Intl.DateTimeFormat(lang === "en" ? "en-GB" : lang, options).format(moment);
}

/** Replaces a time by the reader's local time. */
function showLocalTime(time) {
  if (time === null) return;
  const moment = new Date(time.dateTime);
  if (isPageTime(moment)) return;
  const [date, clock] = [{ dateStyle: "long" }, { timeStyle: "short" }].map((form) => formatLocal(moment, form));
  time.textContent = say("chain.yourTime", { date, clock });
}

/** Adds the reader's local time to each time of the table, unless they are equal. */
function showLocalTimes() {
  for (const time of document.querySelectorAll("table.chain time")) {
    const moment = new Date(time.dateTime);
    if (isPageTime(moment)) continue;
    const local = [{ dateStyle: "long" }, { timeStyle: "long" }].map((form) => formatLocal(moment, form)).join(", ");
    time.after(" · ", make("span", "local", say("chain.localTime", { time: local })));
  }
}

/**
 * The waits before each reload of a page with an entry that is not sealed or not in the log yet. The last wait is used
 * again for further reloads. Seconds.
 */
const RELOAD_AFTER_SECONDS = [3, 5, 10, 20, 40];

/**
 * Reloads an intact page until all its entries are sealed and in the log. Does not reload while the page is hidden, has
 * pasted text or has an open section.
 */
function reloadWhilePending(faults) {
  const notices = document.querySelectorAll("#verdict .pending, #log.pending");
  if (faults.length > 0 || notices.length === 0) return;
  const round = history.state?.round ?? 0;
  for (const notice of notices) notice.append(` ${say("chain.looksAgain")}`);
  const reload = () => {
    const hasPasted = [...document.querySelectorAll("#payload, #receipt")].some(({ value }) => value !== "");
    const inUse = document.hidden || hasPasted || document.querySelector("details[open]") !== null;
    if (inUse) return void setTimeout(reload, 1_000);
    history.replaceState({ round: round + 1 }, "");
    location.reload();
  };
  setTimeout(reload, (RELOAD_AFTER_SECONDS[round] ?? RELOAD_AFTER_SECONDS.at(-1)) * 1_000);
}

/** A label as part of a sentence: in lower case, except in German, where nouns have a capital letter. */
function inSentence(label) {
  return document.documentElement.lang === "de" ? label : label?.toLowerCase();
}

/** Adds a copy button after each id and hash. */
function addCopyButtons() {
  for (const code of document.querySelectorAll("code.copied")) {
    const name = inSentence(code.closest("dd")?.previousElementSibling.textContent) ?? say("chain.voucherId");
    const entry = code.closest("tr")?.querySelector(".number").textContent;
    code.after(
      " ",
      makeCopyButton(
        code,
        entry === undefined ? say("copy.copyNamed", { name }) : say("copy.copyOfEntry", { name, entry }),
      ),
    );
  }
}

const entries = readEntries();
const faults = [];
let previous = readPreviousEntry();
for (const entry of entries) {
  const fault = findFault(entry, previous);
  markLink(entry, previous, fault);
  if (fault !== null) faults.push({ entry, fault });
  previous = entry;
}
if (entries.length > 0) showVerdict(document.querySelector("#verdict"), faults);
showLocalTimes();
addCopyButtons();
reloadWhilePending(faults);
