/** Maximum number of endpoints of an organization. The table has this number of places. */
export const ENDPOINTS_MAX = 20;
/** How long the replaced secret also signs requests after a rotation. */
export const PREVIOUS_SECRET_HOURS = 24;
/** Maximum number of an endpoint's replaced secrets that still sign. The table keeps this number of them. */
export const PREVIOUS_SECRETS_MAX = 10;
/** A target is disabled when all its attempts have failed for this long. */
export const FAILING_MAX_DAYS = 5;
/** Operators see a target as failing after this number of failures in a row. The table counts up to it. */
export const FAILURES_SHOWN = 3;
