/**
 * `red`: partners are refused, or the data may be wrong. `amber` can wait for working hours. `grey` is worth knowing.
 */
export type Severity = "red" | "amber" | "grey";

/** A fault as it was found. */
export interface Found {
  what: string;
  /** Whom or what it touches. */
  subject: string;
  /** The operator page of the subject, as segments after `/ops`. */
  page?: readonly string[];
  /** Without its begin, that of the first look that found it counts. */
  since?: Date | null;
  /** Less than that of its kind. */
  severity?: Severity;
  /** For how long looks must have found it, because one alone can be chance. Milliseconds. */
  confirmMs?: number;
}
