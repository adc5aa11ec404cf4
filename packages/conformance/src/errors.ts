/** The options, the key or the codes cannot be used. The message gives the reason. */
export class UnusableOptions extends Error {}

/** The service does not answer, or answers with 429 or 5xx. */
export class ServiceUnavailable extends Error {}
