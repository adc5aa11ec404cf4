import type { Config } from "../../platform/config.ts";

/** How long a reservation lasts if RESERVATION_SECONDS is not set: 15 minutes. Seconds. */
const RESERVATION_SECONDS = 15 * 60;

/** How long a new reservation lasts, in seconds. */
export function lifetimeSeconds({ reservationSeconds }: Pick<Config, "reservationSeconds">): number {
  return reservationSeconds ?? RESERVATION_SECONDS;
}
