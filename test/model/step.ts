import type fc from "fast-check";
import { send } from "../support/client.ts";
import type { ServedEvent } from "../support/independent-verifier.ts";
import { databaseTime } from "../support/outside-transaction.ts";
import type { Expected, Model } from "./model.ts";
import { concrete, type PartnerRequest } from "./request.ts";
import { render } from "./template.ts";
import type { World } from "./world.ts";

/** A fast-check command that runs on the service and on the model. */
export type Step = fc.AsyncCommand<Model, World>;

/** The service and the model differ. */
export class Disagreement extends Error {}

/** Number of steps by kind and outcome. */
export type Tally = Map<string, number>;

/**
 * Makes a step. `prepare` returns its action in the current state without changing anything, or null to skip the step.
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

/** A partner request of a step. */
export interface Call {
  /** The name under which the step is counted. */
  kind: string;
  title: string;
  request: PartnerRequest;
  /** Sends the request by calling `sending`, and may act before and after. */
  around?: (world: World, sending: () => Promise<Answer>) => Promise<Answer>;
}

interface Answer {
  status: number;
  // biome-ignore lint/suspicious/noExplicitAny: it is compared with a template.
  body: any;
}

/**
 * Makes a call and compares the answer with the model's. Returns the body.
 * @throws Disagreement on a difference.
 */
export async function makeCall(world: World, call: Call, expected: Expected): Promise<Answer["body"]> {
  const { system, bindings, transcript, tally } = world;
  transcript.begin(call.title);
  const { method, path, key, body } = concrete(call.request, bindings);
  const sending = () => send(method, `${system.api.url}${path}`, { key, body });
  const answer = await (call.around === undefined ? sending() : call.around(world, sending));
  const window = { from: world.seenAt, to: await databaseTime(system.servers.db) };
  world.seenAt = window.to;
  const { differences, learned } =
    answer.status === expected.status
      ? bindings.compare(expected.body, answer.body, window)
      : { differences: [`the status is ${answer.status}, not ${expected.status}`], learned: [] };
  transcript.exchange(call.request, answer, learned);
  if (differences.length > 0) {
    transcript.remark(`expected ${expected.status} ${render(expected.body)}`);
    disagree(world, ...differences);
  }
  const kind = `${call.kind}: ${expected.outcome}`;
  tally.set(kind, (tally.get(kind) ?? 0) + 1);
  return answer.body;
}

/** Ends the run with the given differences. */
export function disagree(world: World, ...differences: string[]): never {
  for (const difference of differences) world.transcript.remark(`wrong: ${difference}`);
  throw new Disagreement(differences.join("; "));
}

/** The events of a compared answer. */
export function eventsOf(body: Answer["body"]): ServedEvent[] {
  return body.events ?? [];
}
