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

/**
 * Compares a payload with the chain on the page: a heading, checks as pairs of a result and a sentence, and the entry
 * if there is one.
 */
function comparePayload(payload, hash, entries) {
  const { textContent: entityId, dataset } = document.querySelector("#entity-id");
  const fields = readPayload(payload);
  const entry = entries.find((candidate) => candidate.recordHash === hash);
  if (entry === undefined) return explainMismatch(fields, entityId.trim(), entries);
  const checks = [
    [true, say("Its SHA-256 is the hash of entry {0}.", entry.sequence)],
    [fields?.sequence === entry.sequence, say("Its sequence number is {0}.", entry.sequence)],
    [fields?.previousHash === entry.previousHash, say("Its previous hash is the one in the chain.")],
    [
      fields?.entityType === dataset.entityType && fields?.entityId === entityId.trim(),
      say("It is about this voucher."),
    ],
    [
      fields?.eventType === entry.eventType && fields?.occurredAt === entry.occurredAt,
      say("Its event and time are those in the chain."),
    ],
  ];
  const heading = checks.every(([ok]) => ok)
    ? say("This is entry {0}, “{1}”, exactly as it was sealed", entry.sequence, entry.title)
    : say("This is the text of entry {0}, but the chain on this page differs", entry.sequence);
  return { heading, checks, entry };
}

/** Why a payload matches no entry on the page. */
function explainMismatch(fields, entityId, entries) {
  const no = (heading, sentence, entry) => ({ heading, checks: [[false, sentence]], entry });
  if (fields === null) {
    return no(
      say("This is not the payload of an entry"),
      say(
        "It has the hash of no entry on this page and is not the text of an entry. Copy the whole payload field and nothing else.",
      ),
    );
  }
  if (fields.entityId !== entityId) {
    const sentence = say("It names {0}, but this is the history of {1}.", fields.entityId, entityId);
    return no(say("This payload is about another voucher"), sentence);
  }
  const number = say("Its sequence number is {0}.", fields.sequence);
  const claimed = entries.find((candidate) => candidate.sequence === fields.sequence);
  if (claimed === undefined) {
    const sentence = `${number} ${say("Paste it on the page of the history that shows this entry.")}`;
    return no(say("This entry is not on this page"), sentence);
  }
  if (!claimed.sealed)
    return no(say("This entry is not sealed yet"), `${number} ${say("That entry has no hash yet.")}`);
  return no(
    say("This is not what was sealed as entry {0}", claimed.sequence),
    `${number} ${say("But its hash is not that entry's. One changed character is enough, and so is reformatted JSON: paste the text exactly as the API returned it.")}`,
    claimed,
  );
}

offerCheck("payload", {
  heading: say("This browser cannot compute hashes here"),
  reason: say(
    "Browsers compute hashes on secure connections only, and this page was loaded over plain http. Open its https address.",
  ),
  async check(form, show) {
    const payload = unwrapPayload(form.elements.payload.value);
    if (payload === "") return show("waiting", say("There is nothing to hash. Paste a payload first."));
    const hash = encodeHex(await sha256(encodeUtf8(payload)));
    const { heading, checks, entry } = comparePayload(payload, hash, entries);
    show(
      checks.every(([ok]) => ok) ? "good" : "bad",
      heading,
      make("p", "hash", make("span", "label", say("SHA-256 of what you pasted")), " ", make("code", "", hash)),
      listChecks(checks),
      ...(entry === undefined
        ? []
        : [Object.assign(make("a", "", say("Go to entry {0}", entry.sequence)), { href: `#entry-${entry.sequence}` })]),
    );
  },
});
