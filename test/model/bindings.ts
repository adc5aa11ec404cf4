import {
  isPlaceholder,
  type Joined,
  type Moment,
  type Placeholder,
  render,
  type Template,
  type Variable,
} from "./template.ts";

/** The database's time before and after a call. */
export interface Window {
  from: Date;
  to: Date;
}

/** The result of comparing an answer with its template. */
export interface Comparison {
  /** Differences, each with its place. */
  differences: string[];
  /** Variables that got their value from this answer, each with its place. */
  learned: { name: string; place: string }[];
}

const MOMENT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** The values of the variables of one run. */
export class Bindings {
  readonly #texts = new Map<string, string>();
  /** In milliseconds. Moving moments are stored as if no time had passed. */
  readonly #moments = new Map<string, number>();
  #passedMs = 0;

  /** Sets a variable before the first answer. */
  bindText(name: string, value: string): void {
    this.#texts.set(name, value);
  }

  /** Sets a moving moment before any time passes. */
  bindMoment(name: string, value: Date): void {
    this.#moments.set(name, value.getTime());
  }

  textOf(name: string): string {
    const value = this.#texts.get(name);
    if (value === undefined) throw new Error(`${name} has no value`);
    return value;
  }

  /** Makes moving moments appear this much earlier from now on. */
  passTime(seconds: number): void {
    this.#passedMs += seconds * 1_000;
  }

  /** Replaces the values of variables in a text by their names. */
  nameValues(text: string): string {
    let named = text;
    for (const [name, value] of this.#texts) named = named.replaceAll(JSON.stringify(value), `"$${name}"`);
    return named;
  }

  /** Compares an answer with its template and stores the values of new variables. */
  compare(template: Template, value: unknown, window: Window): Comparison {
    const comparison: Comparison = { differences: [], learned: [] };
    this.#compare(template, value, "", window, comparison);
    return comparison;
  }

  #compare(template: Template, value: unknown, place: string, window: Window, into: Comparison): void {
    const differs = () => {
      into.differences.push(`${place || "."} is ${JSON.stringify(value) ?? "absent"}, not ${render(template)}`);
    };
    if (isPlaceholder(template)) {
      if (!this.#fits(template, value, place, window, into)) differs();
    } else if (Array.isArray(template)) {
      if (!Array.isArray(value) || value.length !== template.length) differs();
      else for (const [n, item] of template.entries()) this.#compare(item, value[n], `${place}[${n}]`, window, into);
    } else if (typeof template === "object" && template !== null) {
      if (typeof value !== "object" || value === null || Array.isArray(value)) differs();
      else {
        this.#compareFields(template as { [field: string]: Template }, value, place, window, into);
        for (const field of Object.keys(value)) {
          if (!(field in template)) into.differences.push(`${place}.${field} is not expected`);
        }
      }
    } else if (template !== value) differs();
  }

  #compareFields(
    fields: { readonly [field: string]: Template },
    value: object,
    place: string,
    window: Window,
    into: Comparison,
  ): void {
    const actual = value as Record<string, unknown>;
    for (const [field, expected] of Object.entries(fields)) {
      this.#compare(expected, actual[field], `${place}.${field}`, window, into);
    }
  }

  #fits(placeholder: Placeholder, value: unknown, place: string, window: Window, into: Comparison): boolean {
    if (placeholder.placeholderKind === "including") {
      if (typeof value !== "object" || value === null) return false;
      this.#compareFields(placeholder.fields, value, place, window, into);
      return true;
    }
    if (typeof value !== "string" || value === "") return false;
    switch (placeholder.placeholderKind) {
      case "variable":
        return this.#isVariable(placeholder, value, place, into);
      case "moment":
        return this.#isMoment(placeholder, value, window);
      case "sentence":
        return true;
      case "joined":
        return value === this.#join(placeholder);
      case "json":
        this.#compare(placeholder.of, parse(value), `${place}|fromjson`, window, into);
        return true;
    }
  }

  #isVariable({ name }: Variable, value: string, place: string, into: Comparison): boolean {
    const known = this.#texts.get(name);
    if (known !== undefined) return value === known;
    // A new value never equals that of another variable.
    if ([...this.#texts.values()].includes(value)) return false;
    this.#texts.set(name, value);
    into.learned.push({ name, place });
    return true;
  }

  #isMoment({ name, plusMs, moves, fresh }: Moment, value: string, window: Window): boolean {
    if (!MOMENT.test(value)) return false;
    const moved = moves ? this.#passedMs : 0;
    const moment = Date.parse(value) + moved - plusMs;
    const known = this.#moments.get(name);
    if (known !== undefined) return moment === known;
    if (moment > window.to.getTime() + moved || (fresh && moment < window.from.getTime() + moved)) return false;
    this.#moments.set(name, moment);
    return true;
  }

  #join({ parts }: Joined): string {
    return parts.map((part) => (typeof part === "string" ? part : this.textOf(part.name))).join("");
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
