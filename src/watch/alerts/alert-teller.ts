import type { Logger } from "pino";
import { newId } from "../../core/voucher/ids.ts";
import type { DatabaseClock } from "../../platform/db/database-clock.ts";
import { type AlertMessage, type FoundFault, followFaults, recordSent, takeDue } from "../alerts.ts";
import { timeOf } from "../facts.ts";
import { AlertStore, type AlertStoreDeps } from "./alert-store.ts";
import { type AlertSending, sendAlert } from "./send-alert.ts";

/** Maximum number of attempts to record what was sent, while other processes change the state. */
const RECORDS_MAX = 5;

interface Deps extends AlertStoreDeps, AlertSending {
  deployment: AlertStoreDeps["deployment"] & { clock: Pick<DatabaseClock, "steadyNow"> };
  log: Logger;
}

/**
 * Sends messages to ALERT_URL when red faults begin and end. Any number of API processes may do so at once: only one of
 * them sends each message.
 */
export class AlertTeller {
  readonly #ctx: Deps;
  readonly #store: AlertStore;
  #telling: Promise<void> | null = null;
  #closed = false;

  constructor(ctx: Deps) {
    this.#ctx = ctx;
    this.#store = new AlertStore(ctx);
  }

  /**
   * Sends the changes since the last look, given the red faults of this look. Does nothing while an earlier call is
   * still sending. Never rejects.
   */
  async tell(red: readonly FoundFault[]): Promise<void> {
    const { url } = this.#ctx.config.alerts;
    if (url === null || this.#closed || this.#telling !== null) return;
    const telling = this.#tell(red, url).catch((error) => {
      this.#ctx.log.warn({ err: error }, "cannot tell of faults");
    });
    this.#telling = telling;
    await telling;
    this.#telling = null;
  }

  /** Begins no further message, and waits for messages that are being sent. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#telling;
  }

  async #tell(red: readonly FoundFault[], url: string): Promise<void> {
    const { log } = this.#ctx;
    const now = this.#now();
    const due = await this.#store.change((state) => {
      const taken = takeDue(
        followFaults(state, red, now, () => newId("alr")),
        now,
      );
      return { state: taken.state, result: taken.due };
    });
    if (due === null || due.length === 0) return;
    const results = await Promise.all(
      due.map(async (message) => ({ message, accepted: await this.#send(message, url) })),
    );
    for (let attempt = 1; attempt <= RECORDS_MAX; attempt++) {
      const record = await this.#store.change((state) => ({
        state: recordSent(state, results, this.#now()),
        result: true,
      }));
      if (record !== null) return;
    }
    log.warn({ alerts: due.map(({ id }) => id) }, "cannot record that alerts were sent; they are sent again");
  }

  async #send({ id, alert }: AlertMessage, url: string): Promise<boolean> {
    const { config, log } = this.#ctx;
    const ctx = { ...this.#ctx, config: { ...config, alerts: { ...config.alerts, url } } };
    const result = await sendAlert(ctx, { id, fault: alert, now: this.#now() });
    const { status = null, failure = "stopped" } = result ?? {};
    if (failure === null) log.info({ alert: id, what: alert.what }, "an alert was sent");
    else log.warn({ alert: id, what: alert.what, status, failure }, "ALERT_URL did not accept an alert");
    return failure === null;
  }

  #now(): Date {
    return timeOf(this.#ctx.deployment);
  }
}
