import { type Sentence, type SentenceKey, translateInto, type ValuesOf } from "./sentences.ts";

type KeyAfter<Prefix extends string> = SentenceKey extends infer Key
  ? Key extends `${Prefix}.${infer Rest}`
    ? Rest
    : never
  : never;

/** The keys of the sentences about problems with a field. */
export type ProblemKey = KeyAfter<"problems">;

/** A sentence about a problem with a field, in any language. */
export function problemIn<Key extends ProblemKey>(key: Key, ...values: ValuesOf<`problems.${Key}`>): Sentence {
  return (t) => t(`problems.${key}`, ...values);
}

/**
 * A schema's message for a problem with a field. A message must be text, so it has a sentence's key and values as JSON
 * for {@link inAnyLanguage}.
 */
export function problem<Key extends ProblemKey>(key: Key, ...values: ValuesOf<`problems.${Key}`>): string {
  return JSON.stringify([`problems.${key}`, ...values]);
}

/** A schema's message for a problem with a request as a whole. */
export function wholeProblem(key: KeyAfter<"wholes">): string {
  return JSON.stringify([`wholes.${key}`]);
}

/** The sentence of a schema's message, in any language. Messages of Zod itself are English. */
export function inAnyLanguage(message: string): Sentence {
  if (!message.startsWith("[")) return () => message;
  const [key, ...values] = JSON.parse(message) as [SentenceKey, ...ValuesOf<SentenceKey>];
  return (t) => t(key, ...values);
}

/** The sentence of a schema's message in English, for operators. */
export function inEnglish(message: string): string {
  return inAnyLanguage(message)(translateInto("en"));
}

/** Makes a check of the whole request run even if a field is invalid, so that one response lists all problems. */
export const always = (): boolean => true;
