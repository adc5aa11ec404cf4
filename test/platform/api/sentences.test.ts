import { readdirSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { partnerKey } from "../../../src/core/keys/routes/authenticate.ts";
import { signedInUser } from "../../../src/core/keys/routes/authenticate-user.ts";
import { ACQUISITION, MARKETPLACE_ERRORS } from "../../../src/marketplace/declared.ts";
import { html } from "../../../src/pages/html.ts";
import { ENGLISH } from "../../../src/pages/locale.ts";
import { AppError, ERRORS_OF, type ErrorCode, errorsByCode, invalidFields } from "../../../src/platform/api/errors.ts";
import { inAnyLanguage, problem } from "../../../src/platform/api/problems.ts";
import { parametersOf } from "../../../src/platform/api/sentence-parameters.ts";
import { LANGUAGES, sentencesOf, translateInto } from "../../../src/platform/api/sentences.ts";

it("each language has the same sentences in the same order, with the same parameters", () => {
  const shapes = LANGUAGES.map((language) =>
    Object.entries(sentencesOf(language)).map(([key, said]) => [key, [...parametersOf(said).keys()].toSorted()]),
  );
  for (const shape of shapes) expect(shape).toEqual(shapes[0]);
  const files = readdirSync(new URL("../../../src/locales/", import.meta.url));
  expect(files.toSorted()).toEqual(LANGUAGES.map((language) => `${language}.json`).toSorted());
});

it("parametersOf finds parameters inside plural forms, and recognizes numbers by their format", () => {
  const sentence = "{name}: {count, plural, one {the entry {first}} other {# entries, {count}}} of {max, number}";
  expect(Object.fromEntries(parametersOf(sentence))).toEqual({
    name: "string",
    count: "number",
    first: "string",
    max: "number",
  });
});

/** The errors that a till or a shop may show. Errors of webhooks are for developers. */
const SHOWN = [
  ...(["lookUpVoucher", "reserveVoucher", "redeemVoucher", "releaseReservation"] as const),
  ...(["readRedemption", "readPublicEvents"] as const),
].flatMap((operation): readonly string[] => ERRORS_OF[operation]);
const TO_TRY = [
  ...new Set([
    ...SHOWN,
    ...errorsByCode(ACQUISITION).keys(),
    ...Object.keys(MARKETPLACE_ERRORS),
    ...partnerKey("voucher.read").errors,
    ...signedInUser.errors,
  ]),
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

it.each(LANGUAGES)("the error sentences for tills have no technical term in the language %s", (language) => {
  const t = translateInto(language);
  for (const code of TO_TRY) {
    expect(t(`errors.${code}`), code).not.toMatch(MACHINE);
    expect(t(`errors.${code}`), code).toMatch(/^\p{Lu}.+[.]$/u);
  }
  expect(t("nothingReleased")).not.toMatch(MACHINE);
});

/** Words that a language shares with English, and names. */
const SHARED_WORDS = [
  "Sandbox|Portal|Webhooks?|Status|Total|Payload|Site|Hash|Hashes|Nee|No: |Guide|Order|Product|Note|Sandbox\\.",
  "Partner Voucher API, version .*|Proof|Voucher|Ticket",
];
const SHARED = new RegExp(`^(${SHARED_WORDS.join("|")})$`);

it.each(LANGUAGES.slice(1))("every sentence has a translation in the language %s", (language) => {
  const english = new Map(Object.entries(sentencesOf("en")));
  const same = Object.entries(sentencesOf(language)).filter(([key, said]) => said === english.get(key));
  expect(same.filter(([, said]) => !SHARED.test(said))).toEqual([]);
  expect(same.filter(([key]) => /^(errors|inDetail|problems|wholes|nothingReleased)\b/.test(key))).toEqual([]);
});

it.each(LANGUAGES)("sentences about limits have a parameter for each number, in the language %s", (language) => {
  const sentences = Object.entries(sentencesOf(language)).filter(([key]) => /^(errors|inDetail|wholes)\./.test(key));
  expect(sentences.length).toBeGreaterThan(50);
  const numbers = /\d|\b(ten|zehn|dix|diez|tien|twenty|zwanzig|vingt|veinte|twintig)\b/i;
  expect(sentences.filter(([, said]) => numbers.test(said))).toEqual([]);
  expect(translateInto(language)("inDetail.sandboxFull", { max: 23_456 })).toMatch(/23\D456/);
});

it("an error for operators is only in English, and every other error is in every language", () => {
  expect(new AppError("unavailable", "Redis does not answer.").isEnglishOnly).toBe(true);
  expect(new AppError("unavailable", "Redis does not answer.").sentenceIn("de")).toBe("Redis does not answer.");
  const late = new AppError("reservation_ended");
  expect(late.isEnglishOnly).toBe(false);
  expect(late.message).toBe(translateInto("en")("errors.reservation_ended"));
  expect(late.sentenceIn("fr")).toBe(translateInto("fr")("errors.reservation_ended"));
});

it("invalidFields names at most ten fields, each with its problem in the reader's language", () => {
  const empty = inAnyLanguage(problem("empty"));
  const error = invalidFields(Array.from({ length: 11 }, (_, at) => [`f${at}`, empty] as const));
  expect(error.message.match(/must not be empty\./g)).toHaveLength(10);
  expect(error.sentenceIn("nl")).toMatch(/^f0 mag niet leeg zijn\. f1 /);
});

const SCRIPTS = new URL("../../../src/pages/static/", import.meta.url);

it("pages pass exactly the sentences to their scripts that the scripts use", () => {
  const said = new Map<string, string[]>();
  for (const file of readdirSync(SCRIPTS).filter((name) => name.endsWith(".js"))) {
    const text = readFileSync(new URL(file, SCRIPTS), "utf8");
    for (const [, key, values = ""] of text.matchAll(/\bsay\("([\w.]+)"(?=(?:, (\{.*?\})\))?)/gs)) {
      said.set(
        `script.${key}`,
        Array.from(values.matchAll(/[{,]\s*(\w+)(?=: |,|\s*\})/g), ([, name]) => name ?? ""),
      );
    }
  }
  const ofScripts = Object.entries(sentencesOf("en")).filter(([key]) => key.startsWith("script."));
  // The pages' scripts support only `{name}`, not the rest of the message syntax.
  const namesIn = (sentence: string) => Array.from(sentence.matchAll(/\{(\w+)\}/g), ([, name]) => name);
  expect(Object.fromEntries(said)).toEqual(Object.fromEntries(ofScripts.map(([key, text]) => [key, namesIn(text)])));
  for (const [key, text] of ofScripts) expect(namesIn(text), key).toEqual([...parametersOf(text).keys()]);
});

it("a sentence contains its parameters' values unchanged, and a page escapes values that are text", () => {
  const name = "{sequence} '<b>' & {0}";
  expect(translateInto("en")("webhooks.lastDeliveries", { name })).toBe(`Last deliveries to ${name}`);
  const said = ENGLISH.markup("frame.from", { product: name, brand: html`<i>&amp;</i>` });
  expect(said.markup).toBe("{sequence} &#39;&#60;b&#62;&#39; &#38; {0} from <i>&amp;</i>");
});
