/** The limit of a wait: several times what any step needs on a slow and busy machine. Milliseconds. */
export const PATIENT_MS = 300_000;

/** Waits for a truthy value and returns it. A test gives a shorter limit only if it can go on without the value. */
export async function until<T>(condition: () => T | Promise<T>, deadlineMs = PATIENT_MS): Promise<NonNullable<T>> {
  const startedAt = Date.now();
  for (;;) {
    const value = await condition();
    if (value) return value as NonNullable<T>;
    const waitedMs = Date.now() - startedAt;
    if (waitedMs > deadlineMs) throw new Error(`the condition was not met within ${deadlineMs} ms`);
    // A long wait checks less often, because checks use CPU time that the awaited work needs.
    await new Promise((resolve) => setTimeout(resolve, Math.min(Math.max(10, waitedMs / 8), 100)));
  }
}

/** Waits like `until`. Returns null if `call` ends first, because a busy machine may be too slow. */
export async function untilOr<T>(
  call: Promise<unknown>,
  condition: () => T | Promise<T>,
): Promise<Exclude<NonNullable<T>, false> | null> {
  let hasEnded = false;
  const end = () => {
    hasEnded = true;
  };
  call.then(end, end);
  const { met } = await until(async () => {
    const met = await condition();
    return met || hasEnded ? { met } : null;
  });
  return (met || null) as Exclude<NonNullable<T>, false> | null;
}

/** Returns the result of `work`, or null if it took longer than `maxMs`, as on a busy machine. */
export async function inTime<T>(maxMs: number, work: () => Promise<T>): Promise<T | null> {
  const startedAt = performance.now();
  const result = await work();
  return performance.now() - startedAt < maxMs ? result : null;
}

/** Waits for the next day if this one is nearly over, because a test's "today" must stay the same until its end. */
export async function avoidMidnight(): Promise<void> {
  const leftMs = DAY_MS - (Date.now() % DAY_MS);
  if (leftMs < LONG_MS) await new Promise((resolve) => setTimeout(resolve, leftMs + 1_000));
}

const DAY_MS = 86_400_000;
/** Longer than the tests of any file take. Milliseconds. */
const LONG_MS = 150_000;

/** Time limit for the start of a process, server or connection. Milliseconds. */
export const START_MS = PATIENT_MS;

/** Waits for a start, with a generous limit, because the test does not check its duration. */
export function untilStarted<T>(condition: () => T | Promise<T>): Promise<NonNullable<T>> {
  return until(condition, START_MS);
}
