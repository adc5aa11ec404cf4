/** A requirement of the code that the servers do not meet. */
export interface UnmetCheck {
  code: string;
  /** Sentences for an operator: the setting, its value and the wanted value, and what to do. */
  message: string;
  effect: Effect;
}

/** `refused`: servers unusable until an operator acts. `waits`: unusable for now. `risk`: work may be lost or slow. */
type Effect = "refused" | "waits" | "risk";

/** One requirement of the code. `query` reads the value from a server's report about itself. */
export interface Check<Found> {
  what: string;
  why: string;
  wanted: string;
  query(found: Found): string;
  /** By default, the value must equal `wanted`. */
  isMet?(value: string, found: Found): boolean;
  sentence(value: string, found: Found): string;
  code: string;
  effect: Effect;
}

/** A check and its result. */
export interface Checked extends Pick<Check<never>, "what" | "why" | "wanted"> {
  /** The values of all servers. */
  actual: string;
  problems: UnmetCheck[];
}

/** Checks the reports of several servers, or several parts of one server's report. */
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
