import { AppError } from "../../platform/api/errors.ts";

/**
 * Failed sign-ins of any kind that a process allows per address in 15 minutes. The limit only keeps the log short:
 * OPS_TOKEN, the tokens of operators and the signatures of JWTs are too long to guess.
 */
const FAILED_MAX = 10;
/** How long a failed sign-in counts. Milliseconds. */
const FAILED_MS = 900_000;

/** The sign-ins of an address that are still being decided. */
interface Undecided {
  /** The number of sign-ins that are being verified. Each may fail. */
  underWay: number;
  /** Wakes the attempts that wait until others are decided. */
  waiting: (() => void)[];
}

/**
 * Limits failed sign-ins per address. An attempt counts before it is verified, and no longer counts once it succeeds,
 * so a burst verifies at most as many attempts as the limit leaves. An attempt waits while it would exceed the limit
 * only if earlier attempts fail.
 */
export class SignInAttempts {
  /** Failures by address, the first to be forgotten first. `until` is when, on the monotonic clock. */
  readonly #failures = new Map<string, { count: number; until: number }>();
  readonly #undecided = new Map<string, Undecided>();

  /**
   * Verifies a sign-in, unless too many from the address have failed. A rejection of `verify` is no failed sign-in.
   * @throws AppError `rate_limited`; what `verify` throws.
   */
  async run<Result>(
    address: string,
    verify: () => Promise<Result>,
    hasFailed: (result: Result) => boolean,
  ): Promise<Result> {
    const undecided = await this.#begin(address);
    let failed = false;
    try {
      const result = await verify();
      failed = hasFailed(result);
      return result;
    } finally {
      undecided.underWay -= 1;
      if (failed) this.#countFailure(address);
      this.#wake(address, undecided);
    }
  }

  async #begin(address: string): Promise<Undecided> {
    for (;;) {
      this.#assertAttemptsLeft(address);
      const undecided = this.#undecided.get(address) ?? { underWay: 0, waiting: [] };
      this.#undecided.set(address, undecided);
      if (this.#failedOf(address) + undecided.underWay < FAILED_MAX) {
        undecided.underWay += 1;
        return undecided;
      }
      await new Promise<void>((decided) => undecided.waiting.push(decided));
    }
  }

  /** Lets one waiting attempt check the limit again, or all of them if they will be refused. */
  #wake(address: string, { underWay, waiting }: Undecided): void {
    const isBlocked = this.#failedOf(address) >= FAILED_MAX;
    for (const decided of waiting.splice(0, isBlocked ? waiting.length : 1)) decided();
    if (underWay === 0 && waiting.length === 0) this.#undecided.delete(address);
  }

  #assertAttemptsLeft(address: string): void {
    if (this.#failedOf(address) < FAILED_MAX) return;
    const leftMs = Number(this.#failures.get(address)?.until) - performance.now();
    const message = "Too many failed sign-ins from your address. Try again later.";
    throw new AppError("rate_limited", message, { retryAfterSeconds: Math.ceil(leftMs / 1_000) });
  }

  #countFailure(address: string): void {
    const failures = this.#failures.get(address) ?? { count: 0, until: performance.now() + FAILED_MS };
    failures.count += 1;
    this.#failures.set(address, failures);
  }

  /** The number of remembered failures of an address. Forgets the failures of all addresses whose time is over. */
  #failedOf(address: string): number {
    for (const [known, { until }] of this.#failures) {
      if (until > performance.now()) break;
      this.#failures.delete(known);
    }
    return this.#failures.get(address)?.count ?? 0;
  }
}
