import { readFileSync } from "node:fs";
import { IntlMessageFormat } from "intl-messageformat";
import type { SentenceValues } from "./sentence-values.ts";

/** The languages of sentences and pages, each a file in `src/locales`. The first one is the default. */
export const LANGUAGES = ["en", "de", "fr", "es", "nl"] as const;
export type Language = (typeof LANGUAGES)[number];

export type SentenceKey = keyof SentenceValues;

/** The values of a sentence. `Text` is the type of values that are not numbers. */
export type ValuesOf<Key extends SentenceKey, Text = string | number> = SentenceValues[Key] extends null
  ? []
  : [values: { [Name in keyof SentenceValues[Key]]: SentenceValues[Key][Name] extends number ? number : Text }];

/** Returns the sentence with this key in one language, with these values inserted. */
export type Translate = <Key extends SentenceKey>(key: Key, ...values: ValuesOf<Key>) => string;

/** A sentence in any language. */
export type Sentence = (t: Translate) => string;

type Sentences = Readonly<Record<SentenceKey, string>>;

const readSentences = (language: Language): Sentences =>
  JSON.parse(readFileSync(new URL(`../../locales/${language}.json`, import.meta.url), "utf8"));
const SENTENCES = Object.fromEntries(LANGUAGES.map((language) => [language, readSentences(language)])) as Record<
  Language,
  Sentences
>;

/** The sentences in a language's file, by key. */
export function sentencesOf(language: Language): Sentences {
  return SENTENCES[language];
}

/** Parses a sentence when it is first used, because parsing takes longer than formatting it a hundred times. */
function makeTranslate(language: Language): Translate {
  const sentences = sentencesOf(language);
  const parsed = new Map<SentenceKey, IntlMessageFormat>();
  return (key, ...[values]) => {
    let sentence = parsed.get(key);
    if (sentence === undefined) {
      sentence = new IntlMessageFormat(sentences[key], language, undefined, { ignoreTag: true });
      parsed.set(key, sentence);
    }
    return sentence.format(values) as string;
  };
}

const TRANSLATES = Object.fromEntries(LANGUAGES.map((language) => [language, makeTranslate(language)])) as Record<
  Language,
  Translate
>;

/** Returns the function that formats sentences in this language. */
export function translateInto(language: Language): Translate {
  return TRANSLATES[language];
}
