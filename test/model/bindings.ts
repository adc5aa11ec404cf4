import type { Moment, Placeholder, Template, Variable } from "./template.ts";

/** The database's time before and after a call. */
interface Window {
  from: Date;
  to: Date;
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

  /** Compares an answer with its template and stores the values of new variables. Returns the differences, each with its place. */
  compare(template: Template, value: unknown, window: Window, place = "body"): string[] {
    const differs = [`${place} is ${JSON.stringify(value) ?? "absent"}, not ${JSON.stringify(template)}`];
    if (typeof template !== "object" || template === null) return template === value ? [] : differs;
    if (isPlaceholder(template)) return this.#compareChosen(template, value, window, place) ?? differs;
    if (typeof value !== "object" || value === null || Array.isArray(value) !== Array.isArray(template)) return differs;
    const unexpected = Object.keys(value).filter((field) => !(field in template));
    return [
      ...this.#compareFields(template as { [field: string]: Template }, value, window, place),
      ...unexpected.map((field) => `${place}.${field} is not expected`),
    ];
  }

  #compareFields(
    fields: { readonly [field: string]: Template },
    value: object,
    window: Window,
    place: string,
  ): string[] {
    const actual = value as Record<string, unknown>;
    return Object.entries(fields).flatMap(([field, expected]) =>
      this.compare(expected, actual[field], window, `${place}.${field}`),
    );
  }

  /** Returns null for a value of another kind, or another value than before. */
  #compareChosen(placeholder: Placeholder, value: unknown, window: Window, place: string): string[] | null {
    if (placeholder.is === "including") {
      const isObject = typeof value === "object" && value !== null;
      return isObject ? this.#compareFields(placeholder.fields, value, window, place) : null;
    }
    if (typeof value !== "string" || value === "") return null;
    if (placeholder.is === "json") return this.compare(placeholder.of, parse(value), window, `${place}|fromjson`);
    if (placeholder.is === "sentence") return [];
    const fits =
      placeholder.is === "variable" ? this.#fits(placeholder, value) : this.#isAt(placeholder, value, window);
    return fits ? [] : null;
  }

  #fits({ name }: Variable, value: string): boolean {
    const known = this.#texts.get(name);
    if (known !== undefined) return value === known;
    // A new value never equals that of another variable.
    if ([...this.#texts.values()].includes(value)) return false;
    this.#texts.set(name, value);
    return true;
  }

  #isAt({ name, plusMs, moves, fresh }: Moment, value: string, window: Window): boolean {
    if (!MOMENT.test(value)) return false;
    const moved = moves ? this.#passedMs : 0;
    const moment = Date.parse(value) + moved - plusMs;
    const known = this.#moments.get(name);
    if (known !== undefined) return moment === known;
    if (moment > window.to.getTime() + moved || (fresh && moment < window.from.getTime() + moved)) return false;
    this.#moments.set(name, moment);
    return true;
  }
}

function isPlaceholder(template: object): template is Placeholder {
  return "is" in template;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
