import fc from "fast-check";
import { countJobs } from "../../support/redeem-jobs.ts";
import { until } from "../../support/until.ts";
import { variable } from "./bindings.ts";
import {
  events,
  isReserved,
  type KeyName,
  lookUp,
  type Model,
  redeem,
  release,
  reservationOf,
  reserve,
  type VoucherName,
} from "./model.ts";
import { type NameChoice, resolveName, seldom, someAge, someKey, someName, someTicket, someVoucher } from "./names.ts";
import { type Call, makeCall, makeStep, type Step, type Word } from "./step.ts";
import type { World } from "./world.ts";

const named = { key: someKey, name: someName };

/** Returns a function that makes a step with a call about a voucher. `answer` gives the model's answer. */
function makeVoucherCall(
  kind: string,
  verb: string,
  request: (word: Word) => Pick<Call, "method" | "path" | "body">,
  answer: typeof lookUp,
) {
  return (choice: { key: KeyName; name: NameChoice }): Step =>
    makeStep(choice, (model, { key, name }) => {
      const of = resolveName(model, name);
      if (of === null) return null;
      const call = { kind, title: `${key} ${verb} ${of.title}`, key, ...request(of.word) };
      return async (model, world) => {
        await makeCall(world, call, answer(model, key, of.named));
      };
    });
}

export const lookUpStep: fc.Arbitrary<Step> = fc
  .record({ call: fc.constant("look up"), ...named })
  .map(makeVoucherCall("look up", "looks up", (word) => ({ method: "GET", path: [word] }), lookUp));

export const eventsStep: fc.Arbitrary<Step> = fc
  .record({ call: fc.constant("events"), ...named })
  .map(makeVoucherCall("events", "reads the chain of", (word) => ({ method: "GET", path: [word, "events"] }), events));

export const reserveStep: fc.Arbitrary<Step> = fc
  .record({ call: fc.constant("reserve"), ...named })
  .map(
    makeVoucherCall("reserve", "reserves", (code) => ({ method: "POST", path: ["reserve"], body: { code } }), reserve),
  );

export const releaseStep: fc.Arbitrary<Step> = fc
  .record({
    call: fc.constant("release"),
    key: someKey,
    name: someTicket,
    reason: fc.constantFrom<Record<string, string>>({}, { reason: "the cart was emptied" }),
  })
  .map((choice) => {
    const request = (ticket: Word) =>
      ({ method: "POST", path: ["release"], body: { ticket, ...choice.reason } }) as const;
    return makeVoucherCall("release", "releases", request, release)(choice);
  });

/** No token, a wrong token, or the token of any voucher's reservation. */
type TokenChoice = null | "wrong" | { of: VoucherName; before: number };

const someToken: fc.Arbitrary<TokenChoice> = fc.oneof(
  { weight: 6, arbitrary: fc.constant(null) },
  { weight: 4, arbitrary: fc.record({ of: someVoucher, before: someAge }) },
  { weight: 1, arbitrary: fc.constant("wrong" as const) },
);

/** Few references, so that many calls repeat one. The service trims white space around a reference. */
export const someRef = fc.constantFrom("order-1", "order-2", "order-3", "order-4", " order-1 ");
const someNote = fc.constantFrom(null, "Tisch 4, „Käse & Brot“ \\ 乾杯 🎟");

export const redeemStep: fc.Arbitrary<Step> = fc
  .record({
    call: fc.constant("redeem"),
    ...named,
    // The field `code` accepts a ticket as well.
    ticketAs: fc.constantFrom("ticket", "code"),
    externalRef: someRef,
    token: someToken,
    note: someNote,
    // Whether to redeem without a reservation too. More rules apply to a reserved voucher, so most redeems use one.
    evenIfFree: seldom,
    workers: fc.oneof(
      { weight: 12, arbitrary: fc.constant("run" as const) },
      { weight: 1, arbitrary: fc.constant("start while it waits" as const) },
    ),
  })
  .map((choice) =>
    makeStep(choice, (model, { key, name, ticketAs, externalRef, token, note, evenIfFree, workers }) => {
      const of = resolveName(model, name);
      const secret = resolveToken(model, token);
      if (of === null || secret === null) return null;
      if (name.by === "code" && !evenIfFree && !isReserved(model, name.voucher)) return null;
      const body: Record<string, Word> = { [name.by === "ticket" ? ticketAs : "code"]: of.word, externalRef };
      if (secret.word !== null) body.token = secret.word;
      if (note !== null) body.note = note;
      const call: Call = {
        kind: "redeem",
        title: `${key} redeems ${of.title} for ${externalRef.trim()}${secret.title}`,
        key,
        method: "POST",
        path: ["redeem"],
        body,
        around: workers === "run" ? undefined : whileNoWorkerRuns,
      };
      return async (model, world) => {
        const expected = redeem(model, key, { named: of.named, externalRef, token: secret.token, note });
        await makeCall(world, call, expected);
      };
    }),
  );

function resolveToken(model: Model, choice: TokenChoice) {
  if (choice === null) return { token: null, word: null, title: "" };
  if (choice === "wrong") return { token: choice, word: "no-such-token", title: " with a wrong token" };
  const reservation = reservationOf(model, choice.of, choice.before);
  return (
    reservation && {
      token: reservation,
      word: variable(`TOKEN_${reservation}`),
      title: ` with the token of ${reservation}`,
    }
  );
}

/** Sends a redeem while no worker runs. Starts the workers once the job waits or the API has answered. */
async function whileNoWorkerRuns<T>({ system, log }: World, sending: () => Promise<T>): Promise<T> {
  log.push("  no worker runs when this is sent; the workers start while it waits");
  await system.stopWorkers();
  try {
    let answered = false;
    const answer = sending().finally(() => {
      answered = true;
    });
    await until(async () => answered || (await countJobs(system.servers, "redeem")) > 0);
    await system.startWorkers();
    return await answer;
  } finally {
    await system.startWorkers();
  }
}
