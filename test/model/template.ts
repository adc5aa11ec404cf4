/**
 * An expected response: a JSON value with placeholders for values that the service chooses. The first response sets the value of a named
 * placeholder, and later responses must have the same value. A printed counterexample uses the names as shell variables.
 */
export type Template =
  | null
  | boolean
  | number
  | string
  | Placeholder
  | readonly Template[]
  | { readonly [field: string]: Template };

export type Placeholder = Variable | Moment | Sentence | Joined | JsonText | Including;

/** A text that is the same wherever the variable appears. Two variables never have the same text. */
export interface Variable {
  placeholderKind: "variable";
  name: string;
}

/** A moment in UTC with milliseconds. */
export interface Moment {
  placeholderKind: "moment";
  name: string;
  /** Offset from the named moment. */
  plusMs: number;
  /** Whether simulated time moves it back, such as the end of a reservation or of a validity period. */
  moves: boolean;
  /** Whether it lies between the start and the end of the call that first returns it. */
  fresh: boolean;
}

/** Any non-empty text. */
export interface Sentence {
  placeholderKind: "sentence";
}

/** Concatenated texts and variables. */
export interface Joined {
  placeholderKind: "joined";
  parts: readonly (string | Variable)[];
}

/** A text that contains JSON. */
export interface JsonText {
  placeholderKind: "json";
  of: Template;
}

/** An object with at least these fields. */
export interface Including {
  placeholderKind: "including";
  fields: { readonly [field: string]: Template };
}

export const variable = (name: string): Variable => ({ placeholderKind: "variable", name });
export const sentence: Sentence = { placeholderKind: "sentence" };
export const joined = (...parts: (string | Variable)[]): Joined => ({ placeholderKind: "joined", parts });
export const jsonText = (of: Template): JsonText => ({ placeholderKind: "json", of });
export const including = (fields: { readonly [field: string]: Template }): Including => ({
  placeholderKind: "including",
  fields,
});

/** A moment that simulated time does not move, because it records a past event. */
export function happened(name: string, { fresh = false } = {}): Moment {
  return { placeholderKind: "moment", name, plusMs: 0, moves: false, fresh };
}

/** A moment that simulated time moves back, because the service compares it with the clock. */
export function moving(name: string, { plusMs = 0, fresh = false } = {}): Moment {
  return { placeholderKind: "moment", name, plusMs, moves: true, fresh };
}

export function isPlaceholder(template: Template): template is Placeholder {
  return typeof template === "object" && template !== null && "placeholderKind" in template;
}

/** Renders a template as text: variables as `$NAME`, moments, sentences and JSON texts in angle brackets. */
export function render(template: Template): string {
  return JSON.stringify(readable(template));
}

function readable(template: Template): unknown {
  if (Array.isArray(template)) return template.map(readable);
  if (typeof template !== "object" || template === null) return template;
  if (isPlaceholder(template)) return describe(template);
  return Object.fromEntries(Object.entries(template).map(([field, value]) => [field, readable(value)]));
}

function describe(placeholder: Placeholder): unknown {
  switch (placeholder.placeholderKind) {
    case "variable":
      return `$${placeholder.name}`;
    case "moment":
      return `<${placeholder.name}${placeholder.plusMs === 0 ? "" : ` + ${placeholder.plusMs / 1_000} s`}>`;
    case "sentence":
      return "<a sentence>";
    case "joined":
      return placeholder.parts.map((part) => (typeof part === "string" ? part : `$${part.name}`)).join("");
    case "json":
      return `<the JSON of ${render(placeholder.of)}>`;
    case "including":
      return { ...(readable(placeholder.fields) as object), "<more>": "<anything>" };
  }
}
