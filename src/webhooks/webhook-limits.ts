/** Maximum number of endpoints of an organization. A constraint on the column `place` has the same limit. */
export const ENDPOINTS_MAX = 20;
/** How long the replaced secret signs requests too, after a rotation. Hours. */
export const PREVIOUS_SECRET_HOURS = 24;
/** Maximum number of an endpoint's replaced secrets that still sign. The table stores as many. */
export const PREVIOUS_SECRETS_MAX = 10;
/** The service disables a target whose attempts have all failed for this long. */
export const FAILING_MAX_DAYS = 5;
/** Operators see a target as failing after this many consecutive failures. The table counts up to this number. */
export const FAILURES_SHOWN = 3;
