/** Something that the servers do not have as the code needs it. */
export interface UnmetCheck {
  code: string;
  /** What is wrong: the setting, its value and the wanted value; and what to do. Sentences for an operator. */
  message: string;
  effect: Effect;
}

/**
 * `refused`: no process can use the servers, and waiting does not help. `waits`: no process can use them now. `risk`:
 * work can get lost or slow.
 */
type Effect = "refused" | "waits" | "risk";

/** One thing that the code needs. `query` reads it from what a server said about itself. */
export interface Check<Found> {
  what: string;
  /** What needs it, as a sentence. */
  why: string;
  wanted: string;
  query(found: Found): string;
  /** By default, the value must be the wanted one. */
  isMet?(value: string, found: Found): boolean;
  sentence(value: string, found: Found): string;
  code: string;
  effect: Effect;
}

/** A check, and what was found. */
export interface Checked extends Pick<Check<never>, "what" | "why" | "wanted"> {
  /** Each different value among the servers. */
  actual: string;
  problems: UnmetCheck[];
}

/** Checks what several servers said, or parts of one. */
export function runCheck<Found>(check: Check<Found>, all: readonly Found[]): Checked {
  const { what, why, wanted, code, effect, query, sentence, isMet = (value) => value === wanted } = check;
  const values = all.map((found) => ({ found, value: query(found) }));
  const unmet = values.filter(({ found, value }) => !isMet(value, found));
  const messages = new Set(unmet.map(({ found, value }) => sentence(value, found)));
  return {
    what,
    why,
    wanted,
    actual: [...new Set(values.map(({ value }) => value))].join(", ") || "unknown",
    problems: [...messages].map((message) => ({ code, message, effect })),
  };
}

export const problemsOf = (checked: readonly Checked[]): UnmetCheck[] => checked.flatMap(({ problems }) => problems);
