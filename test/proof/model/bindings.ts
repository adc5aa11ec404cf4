import { expect } from "vitest";

const MOMENT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/**
 * The values that the service chooses in one run, by the names that the model gives them. The first answer sets a
 * value, and later answers must show the same one.
 */
export class Bindings {
  static present = new Bindings();
  readonly #texts = new Map<string, string>();
  /** The moments in milliseconds. Moments that move are stored as if no simulated time had passed. */
  readonly #moments = new Map<string, number>();
  #passedMs = 0;
  /** The database's time before and after the call whose answer is compared. */
  window = { from: new Date(0), to: new Date(0) };

  /** Gives a variable of the model its value before the first answer. */
  bindText(name: string, value: string): void {
    this.#texts.set(name, value);
  }

  /** Sets a moment. If it moves, it is stored as if no simulated time had passed. */
  bindMoment(name: string, value: Date): void {
    this.#moments.set(name, value.getTime());
  }

  /** Sets a moment that moves to this many seconds after another one. Returns its present value. */
  bindAfter(name: string, seconds: number, earlier: string): Date {
    const value = (this.#moments.get(earlier) ?? Number.NaN) + seconds * 1_000;
    this.#moments.set(name, value);
    return new Date(value - this.#passedMs);
  }

  textOf(name: string): string {
    const value = this.#texts.get(name);
    if (value === undefined) throw new Error(`${name} has no value`);
    return value;
  }

  /** Simulates that seconds have passed: moments that move are this much earlier from now on. */
  passTime(seconds: number): void {
    this.#passedMs += seconds * 1_000;
  }

  /** Whether a value equals that of a variable. A new variable gets the value, unless another variable has it. */
  isText(name: string, value: unknown): boolean {
    if (typeof value !== "string" || value === "") return false;
    const known = this.#texts.get(name);
    if (known !== undefined) return value === known;
    if ([...this.#texts.values()].includes(value)) return false;
    this.#texts.set(name, value);
    return true;
  }

  /** Whether a value is the moment's. A new moment gets the value, if it is not later than the end of the call. */
  isMoment(name: string, value: unknown, { plusMs, moves, fresh }: MomentOptions): boolean {
    if (typeof value !== "string" || !MOMENT.test(value)) return false;
    const { from, to } = this.window;
    const moved = moves ? this.#passedMs : 0;
    const moment = Date.parse(value) + moved - plusMs;
    const known = this.#moments.get(name);
    if (known !== undefined) return moment === known;
    if (moment > to.getTime() + moved || (fresh && moment < from.getTime() + moved)) return false;
    this.#moments.set(name, moment);
    return true;
  }
}

interface MomentOptions {
  /** The offset from the named moment. */
  plusMs: number;
  /** Whether simulated time moves this moment back, such as the end of a reservation or a validity. */
  moves: boolean;
  /** Whether the moment must lie between the start and the end of the call that first returns it. */
  fresh: boolean;
}

/** A text that is the same wherever the variable appears. Two variables never have the same text. */
export interface Variable {
  name: string;
  asymmetricMatch(value: unknown): boolean;
}

export function variable(name: string): Variable {
  return { name, asymmetricMatch: (value) => Bindings.present.isText(name, value) };
}

function moment(name: string, options: MomentOptions) {
  return { name, asymmetricMatch: (value: unknown) => Bindings.present.isMoment(name, value, options) };
}

/** A moment in UTC that records a past event, so that simulated time does not move it. */
export const happened = (name: string, { fresh = false } = {}) => moment(name, { plusMs: 0, moves: false, fresh });

/** A moment in UTC that the service compares with the clock, so that simulated time moves it back. */
export const moving = (name: string, { plusMs = 0, fresh = false } = {}) =>
  moment(name, { plusMs, moves: true, fresh });

/** Any non-empty text. */
export const sentence: unknown = expect.stringMatching(/./);

/** A text that contains this JSON. */
export function jsonText(json: object) {
  return {
    json,
    asymmetricMatch(value: unknown) {
      expect(JSON.parse(String(value))).toEqual(json);
      return true;
    },
  };
}
