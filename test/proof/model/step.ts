import type fc from "fast-check";
import { expect } from "vitest";
import { send } from "../../support/client.ts";
import { databaseTime } from "../../support/outside-transaction.ts";
import type { Variable } from "./bindings.ts";
import type { Expected, KeyName, Model } from "./model.ts";
import type { World } from "./world.ts";

/** A fast-check command that runs on the service and on the model. */
export type Step = fc.AsyncCommand<Model, World>;

/**
 * Creates a step. `prepare` returns what the step does in the current state, or null to skip the step. It changes
 * nothing itself.
 */
export function makeStep<Choice>(
  choice: Choice,
  prepare: (model: Model, choice: Choice) => ((model: Model, world: World) => Promise<void>) | null,
): Step {
  return {
    check: (model) => prepare(model, choice) !== null,
    run: async (model, world) => prepare(model, choice)?.(model, world),
    toString: () => JSON.stringify(choice),
  };
}

/** A value in a request: a text or a variable. */
export type Word = string | Variable;

interface Answer {
  status: number;
  // biome-ignore lint/suspicious/noExplicitAny: it is compared with the model's.
  body: any;
}

export interface Call {
  /** The kind under which the test counts the step. */
  kind: string;
  title: string;
  key: KeyName;
  method: "GET" | "POST";
  /** The segments after /partner/vouchers. */
  path: readonly Word[];
  body?: Record<string, Word>;
  /** Calls `sending`, which sends the request. May do something before and after that. */
  around?: ((world: World, sending: () => Promise<Answer>) => Promise<Answer>) | undefined;
}

/** Makes a call and compares the answer with the model's. Returns the body. @throws Error on a difference. */
export async function makeCall(world: World, call: Call, expected: Expected): Promise<Answer["body"]> {
  const { system, bindings } = world;
  const textOf = (word: Word) => (typeof word === "string" ? word : bindings.textOf(word.name));
  const path = ["/partner/vouchers", ...call.path.map((word) => encodeURIComponent(textOf(word)))].join("/");
  const body = call.body && Object.fromEntries(Object.entries(call.body).map(([field, word]) => [field, textOf(word)]));
  world.log.push(call.title, `  ${call.method} ${path} ${JSON.stringify(body) ?? ""}`);
  const key = bindings.textOf(`KEY_${call.key}`);
  const sending = () => send(call.method, `${system.api.url}${path}`, { key, body });
  const answer = await (call.around === undefined ? sending() : call.around(world, sending));
  world.log.push(`  ${answer.status} ${JSON.stringify(answer.body)}`);
  bindings.window = { from: bindings.window.to, to: await databaseTime(system.servers.db) };
  expect({ status: answer.status, body: answer.body }).toEqual({ status: expected.status, body: expected.body });
  count(world, `${call.kind}: ${expected.outcome}`);
  return answer.body;
}

export function count({ tally }: World, outcome: string): void {
  tally.set(outcome, (tally.get(outcome) ?? 0) + 1);
}

/** Fails the run if there are differences. */
export function disagree(...differences: string[]): void {
  if (differences.length > 0) throw new Error(differences.join("; "));
}
