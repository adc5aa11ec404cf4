/** Waits until `condition` yields something truthy and returns it; fails after `deadlineMs`. */
export async function until<T>(condition: () => T | Promise<T>, deadlineMs = 10_000): Promise<NonNullable<T>> {
  const giveUpAt = Date.now() + deadlineMs;
  for (;;) {
    const value = await condition();
    if (value) return value as NonNullable<T>;
    if (Date.now() > giveUpAt) throw new Error(`still not so after ${deadlineMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
