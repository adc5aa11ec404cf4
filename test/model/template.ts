/**
 * What the model says about an answer: a JSON value with holes where only the service can choose. A named hole is filled by the
 * first answer that shows it and must be the same in every later one. The names are those of the shell variables in a printed
 * counterexample.
 */
export type Template =
  | null
  | boolean
  | number
  | string
  | Hole
  | readonly Template[]
  | { readonly [field: string]: Template };

export type Hole = Variable | Moment | Sentence | Joined | JsonText | Including;

/** A text that is the same wherever it appears, and that no other variable shares. */
export interface Variable {
  hole: "variable";
  name: string;
}

/** A moment in UTC with milliseconds. */
export interface Moment {
  hole: "moment";
  name: string;
  /** This moment is so much later than the named one. */
  plusMs: number;
  /** Whether the passing of time moves it back, as it does with the ends of holds and of validity. */
  moves: boolean;
  /** Whether the answer that shows it first is the one that made it, so that it lies within the call. */
  fresh: boolean;
}

/** Some words for a person. */
export interface Sentence {
  hole: "sentence";
}

/** Texts and variables one after another. */
export interface Joined {
  hole: "joined";
  parts: readonly (string | Variable)[];
}

/** A text that is the JSON of something. */
export interface JsonText {
  hole: "json";
  of: Template;
}

/** An object with at least these fields. */
export interface Including {
  hole: "including";
  fields: { readonly [field: string]: Template };
}

export const variable = (name: string): Variable => ({ hole: "variable", name });
export const sentence: Sentence = { hole: "sentence" };
export const joined = (...parts: (string | Variable)[]): Joined => ({ hole: "joined", parts });
export const jsonText = (of: Template): JsonText => ({ hole: "json", of });
export const including = (fields: { readonly [field: string]: Template }): Including => ({ hole: "including", fields });

/** When something happened, which stays what it is however much time passes. */
export function happened(name: string, { fresh = false } = {}): Moment {
  return { hole: "moment", name, plusMs: 0, moves: false, fresh };
}

/** A moment that is compared with the clock, and so comes nearer as time passes. */
export function moving(name: string, { plusMs = 0, fresh = false } = {}): Moment {
  return { hole: "moment", name, plusMs, moves: true, fresh };
}

export function isHole(template: Template): template is Hole {
  return typeof template === "object" && template !== null && "hole" in template;
}

/** A template as people read it: variables as `$NAME`, the other holes in angle brackets. */
export function render(template: Template): string {
  return JSON.stringify(readable(template));
}

function readable(template: Template): unknown {
  if (Array.isArray(template)) return template.map(readable);
  if (typeof template !== "object" || template === null) return template;
  if (isHole(template)) return describe(template);
  return Object.fromEntries(Object.entries(template).map(([field, value]) => [field, readable(value)]));
}

function describe(hole: Hole): unknown {
  switch (hole.hole) {
    case "variable":
      return `$${hole.name}`;
    case "moment":
      return `<${hole.name}${hole.plusMs === 0 ? "" : ` + ${hole.plusMs / 1_000} s`}>`;
    case "sentence":
      return "<a sentence>";
    case "joined":
      return hole.parts.map((part) => (typeof part === "string" ? part : `$${part.name}`)).join("");
    case "json":
      return `<the JSON of ${render(hole.of)}>`;
    case "including":
      return { ...(readable(hole.fields) as object), "<more>": "<anything>" };
  }
}
