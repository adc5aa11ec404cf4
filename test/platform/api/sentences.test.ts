import { readdirSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { partnerKey } from "../../../src/core/keys/routes/authenticate.ts";
import { signedInUser } from "../../../src/core/keys/routes/authenticate-user.ts";
import { SCRIPT_SENTENCES } from "../../../src/pages/texts/script-texts.ts";
import { SCRIPT_TEXTS, TEXTS } from "../../../src/pages/texts/texts.ts";
import { AppError, ERRORS_OF, type ErrorCode, invalidFields } from "../../../src/platform/api/errors.ts";
import { inAnyLanguage, problem } from "../../../src/platform/api/problems.ts";
import { LANGUAGES, SENTENCES } from "../../../src/platform/api/sentences/languages.ts";

/** The errors that a till or a shop may show. Those of webhooks are for developers. */
const SHOWN: ErrorCode[] = [
  ...(["lookUpVoucher", "reserveVoucher", "redeemVoucher", "releaseReservation", "readRedemption"] as const),
  ...(["buyListing", "buyProduct", "claimProduct", "claimByLink", "readListing", "readPublicEvents"] as const),
].flatMap((operation) => [...ERRORS_OF[operation]]);
const TO_TRY = [
  ...new Set([...SHOWN, ...partnerKey("voucher.read").errors, ...signedInUser.errors]),
  "internal_error",
  "invalid_json",
  "body_too_large",
  "request_timeout",
] as ErrorCode[];

const TECHNICAL = [
  "token|jeton|key|schlüssel|clé|clave|sleutel",
  "body|scope|json|http|header|utf|api|externalref|null|server|code \\d+",
];
const MACHINE = new RegExp(`\\b(${TECHNICAL.join("|")})\\b`, "i");

it.each(LANGUAGES)("the sentences that a till may show have no technical term, in the language %s", (language) => {
  for (const code of TO_TRY) {
    expect(SENTENCES[language].errors[code], code).not.toMatch(MACHINE);
    expect(SENTENCES[language].errors[code], code).toMatch(/^\p{Lu}.+[.]$/u);
  }
  expect(SENTENCES[language].nothingReleased).not.toMatch(MACHINE);
});

/** Every sentence of a language, by its place. Those with contents get numbers and names. */
function flatten(value: unknown, path = ""): [string, string][] {
  if (typeof value === "string") return [[path, value]];
  if (typeof value === "function") return [[path, value(["7"], 9)]];
  return Object.entries(Object(value)).flatMap(([key, part]) => flatten(part, `${path}.${key}`));
}

it.each(LANGUAGES.slice(1))("no sentence is left in English in the language %s", (language) => {
  const english = new Map(flatten({ ...SENTENCES.en, problems: problemsOf("en") }));
  for (const [path, said] of flatten({ ...SENTENCES[language], problems: problemsOf(language) })) {
    expect(said, path).not.toBe(english.get(path));
    expect(said.trim(), path).toBe(said);
  }
});

it.each(LANGUAGES)("the number of each limit comes from its constant in the language %s", (language) => {
  const { errors, inDetail, wholes } = SENTENCES[language];
  const fixed = (value: unknown): string[] =>
    typeof value === "object" ? Object.values(Object(value)).flatMap(fixed) : typeof value === "string" ? [value] : [];
  const sentences = fixed({ errors, inDetail, wholes });
  expect(sentences.length).toBeGreaterThan(50);
  expect(
    sentences.filter((said) => /\d|\b(ten|zehn|dix|diez|tien|twenty|zwanzig|vingt|veinte|twintig)\b/i.test(said)),
  ).toEqual([]);
  expect(inDetail.webhooksFull(23)).toContain("23");
  expect(inDetail.earlierSecretsFull(23)).toContain("23");
  expect(inDetail.sandboxFull(23_456)).toMatch(/23\D456/);
});

function problemsOf(language: (typeof LANGUAGES)[number]) {
  const { tooLong, notWhole, noTime, tooMany, ...others } = SENTENCES[language].problems;
  return { ...others, tooLong: tooLong(5), notWhole: notWhole(1, 5), noTime: noTime("x"), tooMany: tooMany(5) };
}

it("an error for operators stays English, and every other one speaks each language", () => {
  expect(new AppError("unavailable", "Redis does not answer.").isEnglishOnly).toBe(true);
  expect(new AppError("unavailable", "Redis does not answer.").sentenceIn(SENTENCES.de)).toBe("Redis does not answer.");
  const late = new AppError("reservation_ended");
  expect(late.isEnglishOnly).toBe(false);
  expect(late.message).toBe(SENTENCES.en.errors.reservation_ended);
  expect(late.sentenceIn(SENTENCES.fr)).toBe(SENTENCES.fr.errors.reservation_ended);
});

it("invalidFields names at most ten fields, each with its problem in the reader's language", () => {
  const empty = inAnyLanguage(problem("empty"));
  const error = invalidFields(Array.from({ length: 11 }, (_, at) => [`f${at}`, empty] as const));
  expect(error.message.match(/must not be empty\./g)).toHaveLength(10);
  expect(error.sentenceIn(SENTENCES.nl)).toMatch(/^f0 mag niet leeg zijn\. f1 /);
});

const SCRIPTS = new URL("../../../src/pages/static/", import.meta.url);

it("the scripts of pages say exactly the sentences that are translated, with the same values in each language", () => {
  const said = new Set<string>();
  for (const file of readdirSync(SCRIPTS).filter((name) => name.endsWith(".js"))) {
    const text = readFileSync(new URL(file, SCRIPTS), "utf8");
    for (const [, sentence] of text.matchAll(/\bsay\(\s*("(?:[^"\\]|\\.)*")/g)) said.add(JSON.parse(sentence ?? ""));
  }
  expect([...said].toSorted()).toEqual(SCRIPT_SENTENCES.toSorted());
  const valuesOf = (text: string) => text.match(/\{\d\}/g)?.toSorted() ?? [];
  for (const [language, texts] of Object.entries(SCRIPT_TEXTS)) {
    for (const english of SCRIPT_SENTENCES) {
      expect(valuesOf(texts[english]), `${language} ${english}`).toEqual(valuesOf(english));
    }
  }
});

/** Words that a language shares with English, and names. */
const SHARED_WORDS = [
  "Sandbox|Portal|Webhooks?|Status|Payload|Site|Hash|Hashes|Nee|No: |Guide|Order|Product|Note|Sandbox\\.",
  "Partner Voucher API, version .*|Proof|Voucher|Ticket",
];
const SHARED = new RegExp(`^(${SHARED_WORDS.join("|")})$`);

it.each(LANGUAGES.slice(1))("no text of a page is left in English in the language %s", (language) => {
  const texts = (of: (typeof LANGUAGES)[number]) => flatten(JSON.parse(JSON.stringify(TEXTS[of])));
  const english = new Map(texts("en"));
  const same = texts(language).filter(([path, said]) => said === english.get(path) && !SHARED.test(said));
  expect(same).toEqual([]);
  const scripts = Object.entries(SCRIPT_TEXTS[language as "de"]).filter(([key, said]) => key === said);
  expect(scripts.filter(([said]) => !SHARED.test(said))).toEqual([]);
});
