/**
 * `red`: partners' calls fail, or the data may be wrong. `amber`: can wait for working hours. `grey`: worth knowing.
 */
export type Severity = "red" | "amber" | "grey";

/** A fault as one look finds it. */
export interface Found {
  what: string;
  /** Who or what is affected. */
  subject: string;
  /** The operator page of the subject, as segments after `/ops`. */
  page?: readonly string[];
  /** When it began. By default the time of the first look that found it. */
  since?: Date | null;
  /** A lower severity than that of its kind. */
  severity?: Severity;
  /** How long looks must find it before it is shown, because chance can explain one finding. Milliseconds. */
  confirmMs?: number;
}
