import { EN } from "./sentences/en.ts";
import type { Sentence, Sentences } from "./sentences/sentences.ts";

type Problems = Sentences["problems"];

/** The values that the sentence of a problem contains. */
type Contents<Key extends keyof Problems> = Problems[Key] extends (...contents: infer Given) => string ? Given : [];

/** Sentences by their English text, because the message of a schema can only be text. Filled while schemas are made. */
const SAID = new Map<string, Sentence>();

function remember(say: Sentence): string {
  const message = say(EN);
  SAID.set(message, say);
  return message;
}

/** What is wrong with a field, in any language. */
export function problemIn<Key extends keyof Problems>(key: Key, ...contents: Contents<Key>): Sentence {
  return ({ problems }) => {
    const said = problems[key] as string | ((...given: unknown[]) => string);
    return typeof said === "string" ? said : said(...contents);
  };
}

/** The message of a schema for what is wrong with a field: English, which {@link inAnyLanguage} translates. */
export function problem<Key extends keyof Problems>(key: Key, ...contents: Contents<Key>): string {
  return remember(problemIn(key, ...contents));
}

/** The message of a schema for what is wrong with a request as a whole. */
export function wholeProblem(key: keyof Sentences["wholes"]): string {
  return remember(({ wholes }) => wholes[key]);
}

/** What a schema's message says, in any language. */
export function inAnyLanguage(message: string): Sentence {
  return SAID.get(message) ?? (() => message);
}

/** Makes a check of the whole request run even if a field is wrong, so that one response names all problems. */
export const always = (): boolean => true;
