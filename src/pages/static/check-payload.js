// The last part of the script of a chain's page. Compares a pasted payload with the chain.

/** The payload in pasted text, without surrounding spaces, and without the quotes of a JSON string. */
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
 * Compares a payload with the chain on the page. Returns a heading, checks (pairs of a result and a sentence), and the
 * entry if there is one.
 */
function comparePayload(payload, hash, entries) {
  const { textContent: entityId, dataset } = document.querySelector("#entity-id");
  const entry = entries.find((candidate) => candidate.recordHash === hash);
  if (entry === undefined) return explainMismatch(readPayload(payload), entityId.trim(), entries);
  const fields = parseCanonical(payload);
  const checks = [
    [true, say("payload.hash", { entry: entry.sequence })],
    [fields?.sequence === entry.sequence, say("payload.sequence", { entry: entry.sequence })],
    [fields?.previousHash === entry.previousHash, say("payload.previousHash")],
    [fields?.entityType === dataset.entityType && fields?.entityId === entityId.trim(), say("payload.thisVoucher")],
    [fields?.eventType === entry.eventType && fields?.occurredAt === entry.occurredAt, say("payload.eventAndTime")],
  ];
  const heading = checks.every(([ok]) => ok)
    ? say("payload.sealed", { entry: entry.sequence, title: entry.title })
    : say("payload.chainDiffers", { entry: entry.sequence });
  return { heading, checks, entry };
}

/** Why a payload matches no entry on the page. */
function explainMismatch(fields, entityId, entries) {
  const no = (heading, sentence, entry) => ({ heading, checks: [[false, sentence]], entry });
  if (fields === null) {
    return no(say("payload.noPayload"), say("payload.copyWhole"));
  }
  if (fields.entityId !== entityId) {
    const sentence = say("payload.namesOther", { named: fields.entityId, shown: entityId });
    return no(say("payload.otherVoucher"), sentence);
  }
  const number = say("payload.sequence", { entry: fields.sequence });
  const claimed = entries.find((candidate) => candidate.sequence === fields.sequence);
  if (claimed === undefined) {
    const sentence = `${number} ${say("payload.otherPage")}`;
    return no(say("payload.notOnPage"), sentence);
  }
  if (!claimed.sealed) return no(say("payload.notSealed"), `${number} ${say("payload.noHash")}`);
  return no(
    say("payload.notWhatWasSealed", { entry: claimed.sequence }),
    `${number} ${say("payload.otherHash")}`,
    claimed,
  );
}

offerCheck("payload", {
  heading: say("payload.cannotHash"),
  reason: say("payload.needsHttps"),
  async check(form, show) {
    const payload = unwrapPayload(form.elements.payload.value);
    if (payload === "") return show("waiting", say("payload.empty"));
    const hash = encodeHex(await sha256(encodeUtf8(payload)));
    const { heading, checks, entry } = comparePayload(payload, hash, entries);
    show(
      checks.every(([ok]) => ok) ? "good" : "bad",
      heading,
      make("p", "hash", make("span", "label", say("payload.hashOfPasted")), " ", make("code", "", hash)),
      listChecks(checks),
      ...(entry === undefined
        ? []
        : [
            Object.assign(make("a", "", say("payload.goTo", { entry: entry.sequence })), {
              href: `#entry-${entry.sequence}`,
            }),
          ]),
    );
  },
});
