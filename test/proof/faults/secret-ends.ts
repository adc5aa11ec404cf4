import type { Exchange, History, SecretEnd, Violation } from "./history.ts";

/** How long a process may trust a secret after its end: docs/design/limits.md, "Keys and guessing". Milliseconds. */
export const TRUSTED_MS = 500;
const LATE = "an ended secret works no longer than it may be trusted";
const EARLY = "a secret works until it is ended";
/** Maximum number of reported violations. One fault may cause thousands. */
const REPORTED_MAX = 6;

/**
 * Checks that a secret works until an operator's act ends it, and that every call is refused once processes may no
 * longer trust the secret. A refusal for another reason shows that the service accepted the secret.
 */
export function checkSecretEnds({ exchanges, secretEnds }: History): Violation[] {
  const endsOf = Map.groupBy(secretEnds, ({ secret }) => secret);
  const broken = exchanges.flatMap((exchange): Violation[] => {
    const { ask } = exchange;
    // Claims, purchases and reads of the public history send no key.
    if (ask.operation === "acquire" || ask.operation === "publicEvents") return [];
    const ends = endsOf.get(ask.key.secret) ?? [];
    const found = { detail: `${ask.operation} with ${ask.key.id}`, exchanges: [exchange] };
    if (isAccepted(exchange) && ends.some((end) => isLate(exchange, end))) return [{ rule: LATE, ...found }];
    const isUntrue = exchange.status === 401 && !ends.some((end) => mayBeRefused(exchange, end));
    return isUntrue ? [{ rule: EARLY, ...found }] : [];
  });
  return broken.slice(0, REPORTED_MAX);
}

/** Whether an answer shows that the service accepted the secret: any status except 401, 429 and 5xx. */
const isAccepted = ({ status }: Exchange) => status !== null && status < 500 && status !== 401 && status !== 429;

/**
 * A process that read the key before the act may still trust the secret for `TRUSTED_MS`. A process that read it
 * afterwards knows when the grace period ends.
 */
const isLate = ({ invokedMs }: Exchange, { returnedMs, graceMs }: SecretEnd) =>
  invokedMs > returnedMs + Math.max(graceMs, TRUSTED_MS);

const mayBeRefused = ({ returnedMs }: Exchange, { invokedMs, graceMs }: SecretEnd) => returnedMs >= invokedMs + graceMs;
