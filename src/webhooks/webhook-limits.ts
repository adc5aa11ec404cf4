/** Most endpoints of an organization. The table has as many places. */
export const ENDPOINTS_MAX = 20;
/** How long after a rotation requests are also signed with the secret that it replaced. */
export const PREVIOUS_SECRET_HOURS = 24;
/** Most secrets of an endpoint that it has replaced and that still sign. The table keeps as many. */
export const PREVIOUS_SECRETS_MAX = 10;
/** A target is disabled when all its attempts have failed for this long. */
export const FAILING_MAX_DAYS = 5;
/** After this many failures in a row, operators see that the target fails. The table counts up to it. */
export const FAILURES_SHOWN = 3;
