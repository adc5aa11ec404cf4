import { type Hole, isHole, type Joined, type Moment, render, type Template, type Variable } from "./template.ts";

/** The database's time at some moment before a call, and after it. */
export interface Window {
  from: Date;
  to: Date;
}

/** How an answer compares with its template. */
export interface Comparison {
  /** What is not as expected, each with its place. */
  differences: string[];
  /** Variables that this answer showed first, each with its place. */
  learned: { name: string; place: string }[];
}

const MOMENT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** The values behind the names of one run. */
export class Bindings {
  readonly #texts = new Map<string, string>();
  /** In milliseconds; those that move count as if no time had been passed by moving them. */
  readonly #moments = new Map<string, number>();
  #passedMs = 0;

  /** Gives a variable its value before any answer does. */
  bindText(name: string, value: string): void {
    this.#texts.set(name, value);
  }

  /** Gives a moving moment its value before any time passes. */
  bindMoment(name: string, value: Date): void {
    this.#moments.set(name, value.getTime());
  }

  textOf(name: string): string {
    const value = this.#texts.get(name);
    if (value === undefined) throw new Error(`nothing is known of ${name}`);
    return value;
  }

  /** From now on, moments that move are shown this much earlier. */
  passTime(seconds: number): void {
    this.#passedMs += seconds * 1_000;
  }

  /** Replaces the values of variables in a text by their names. */
  nameValues(text: string): string {
    let named = text;
    for (const [name, value] of this.#texts) named = named.replaceAll(JSON.stringify(value), `"$${name}"`);
    return named;
  }

  /** Compares an answer with what was expected, and keeps what it shows for the first time. */
  compare(template: Template, value: unknown, window: Window): Comparison {
    const comparison: Comparison = { differences: [], learned: [] };
    this.#compare(template, value, "", window, comparison);
    return comparison;
  }

  #compare(template: Template, value: unknown, place: string, window: Window, into: Comparison): void {
    const differs = () => {
      into.differences.push(`${place || "."} is ${JSON.stringify(value) ?? "absent"}, not ${render(template)}`);
    };
    if (isHole(template)) {
      if (!this.#fits(template, value, place, window, into)) differs();
    } else if (Array.isArray(template)) {
      if (!Array.isArray(value) || value.length !== template.length) differs();
      else for (const [n, item] of template.entries()) this.#compare(item, value[n], `${place}[${n}]`, window, into);
    } else if (typeof template === "object" && template !== null) {
      if (typeof value !== "object" || value === null || Array.isArray(value)) differs();
      else {
        this.#compareFields(template as { [field: string]: Template }, value, place, window, into);
        for (const field of Object.keys(value)) {
          if (!(field in template)) into.differences.push(`${place}.${field} is there and should not be`);
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

  #fits(hole: Hole, value: unknown, place: string, window: Window, into: Comparison): boolean {
    if (hole.hole === "including") {
      if (typeof value !== "object" || value === null) return false;
      this.#compareFields(hole.fields, value, place, window, into);
      return true;
    }
    if (typeof value !== "string" || value === "") return false;
    switch (hole.hole) {
      case "variable":
        return this.#isVariable(hole, value, place, into);
      case "moment":
        return this.#isMoment(hole, value, window);
      case "sentence":
        return true;
      case "joined":
        return value === this.#join(hole);
      case "json":
        this.#compare(hole.of, parse(value), `${place}|fromjson`, window, into);
        return true;
    }
  }

  #isVariable({ name }: Variable, value: string, place: string, into: Comparison): boolean {
    const known = this.#texts.get(name);
    if (known !== undefined) return value === known;
    // What is chosen anew is never what something else has already.
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
