// The second part of the script of a chain's page, after check-chain.js: compares a pasted payload with the chain.

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

enablePayloadCheck(entries);
