// The last part of the script of a chain's page: compares a pasted payload with the chain.

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

/** Compares a payload with the chain on the page: a heading, checks as pairs of a result and a sentence, and the entry if there is one. */
function comparePayload(payload, hash, entries) {
  const { textContent: entityId, dataset } = document.querySelector("#entity-id");
  const fields = readPayload(payload);
  const entry = entries.find((candidate) => candidate.recordHash === hash);
  if (entry === undefined) return explainMismatch(fields, entityId.trim(), entries);
  const checks = [
    [true, `Its SHA-256 is the hash of entry ${entry.sequence}.`],
    [fields?.sequence === entry.sequence, `Its sequence number is ${entry.sequence}.`],
    [fields?.previousHash === entry.previousHash, "Its previous hash is the one in the chain."],
    [fields?.entityType === dataset.entityType && fields?.entityId === entityId.trim(), "It is about this voucher."],
    [
      fields?.eventType === entry.eventType && fields?.occurredAt === entry.occurredAt,
      "Its event and time are those in the chain.",
    ],
  ];
  const heading = checks.every(([ok]) => ok)
    ? `This is entry ${entry.sequence}, “${entry.title}”, exactly as it was sealed`
    : `This is the text of entry ${entry.sequence}, but the chain on this page differs`;
  return { heading, checks, entry };
}

/** Why a payload matches no entry on the page. */
function explainMismatch(fields, entityId, entries) {
  const no = (heading, sentence, entry) => ({ heading, checks: [[false, sentence]], entry });
  if (fields === null) {
    return no(
      "This is not the payload of an entry",
      "It has the hash of no entry on this page and is not the text of an entry. Copy the whole payload field and nothing else.",
    );
  }
  if (fields.entityId !== entityId) {
    const sentence = `It names ${fields.entityId}, but this is the history of ${entityId}.`;
    return no("This payload is about another voucher", sentence);
  }
  const number = `Its sequence number is ${fields.sequence}`;
  const claimed = entries.find((candidate) => candidate.sequence === fields.sequence);
  if (claimed === undefined) {
    const sentence = `${number}. Paste it on the page of the history that shows this entry.`;
    return no("This entry is not on this page", sentence);
  }
  if (!claimed.sealed) return no("This entry is not sealed yet", `${number}. That entry has no hash yet.`);
  return no(
    `This is not what was sealed as entry ${claimed.sequence}`,
    `${number}, but its hash is not that entry's. One changed character is enough, and so is reformatted JSON: paste the text exactly as the API returned it.`,
    claimed,
  );
}

offerCheck("payload", {
  heading: "This browser cannot compute hashes here",
  reason:
    "Browsers compute hashes on secure connections only, and this page was loaded over plain http. Open its https address.",
  async check(form, show) {
    const payload = unwrapPayload(form.elements.payload.value);
    if (payload === "") return show("waiting", "There is nothing to hash. Paste a payload first.");
    const hash = encodeHex(await sha256(encodeUtf8(payload)));
    const { heading, checks, entry } = comparePayload(payload, hash, entries);
    show(
      checks.every(([ok]) => ok) ? "good" : "bad",
      heading,
      make("p", "hash", make("span", "label", "SHA-256 of what you pasted"), " ", make("code", "", hash)),
      listChecks(checks),
      ...(entry === undefined
        ? []
        : [Object.assign(make("a", "", `Go to entry ${entry.sequence}`), { href: `#entry-${entry.sequence}` })]),
    );
  },
});
