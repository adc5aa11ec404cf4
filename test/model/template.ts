/**
 * An expected response: a JSON value with placeholders for values that the service chooses. The first response sets the value of a named
 * placeholder, and later responses must have the same value.
 */
export type Template =
  | null
  | boolean
  | number
  | string
  | Placeholder
  | readonly Template[]
  | { readonly [field: string]: Template };

export type Placeholder =
  | Variable
  | Moment
  /** Any non-empty text. */
  | { is: "sentence" }
  /** A text that contains JSON. */
  | { is: "json"; of: Template }
  /** An object with at least these fields. */
  | { is: "including"; fields: { readonly [field: string]: Template } };

/** A text that is the same wherever the variable appears. Two variables never have the same text. */
export interface Variable {
  is: "variable";
  name: string;
}

/** A moment in UTC with milliseconds. */
export interface Moment {
  is: "moment";
  name: string;
  /** Offset from the named moment. */
  plusMs: number;
  /** Whether simulated time moves it back, such as the end of a reservation or of a validity period. */
  moves: boolean;
  /** Whether it lies between the start and the end of the call that first returns it. */
  fresh: boolean;
}

export const variable = (name: string): Variable => ({ is: "variable", name });
export const sentence: Placeholder = { is: "sentence" };
export const jsonText = (of: Template): Placeholder => ({ is: "json", of });
export const including = (fields: { readonly [field: string]: Template }): Placeholder => ({ is: "including", fields });

/** A moment that simulated time does not move, because it records a past event. */
export function happened(name: string, { fresh = false } = {}): Moment {
  return { is: "moment", name, plusMs: 0, moves: false, fresh };
}

/** A moment that simulated time moves back, because the service compares it with the clock. */
export function moving(name: string, { plusMs = 0, fresh = false } = {}): Moment {
  return { is: "moment", name, plusMs, moves: true, fresh };
}
