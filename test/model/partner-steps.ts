import fc from "fast-check";
import { countJobs } from "../support/redeem-jobs.ts";
import { until } from "../support/until.ts";
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
import type { PartnerRequest, Word } from "./request.ts";
import { type Call, makeCall, makeStep, type Step } from "./step.ts";
import { variable } from "./template.ts";
import type { World } from "./world.ts";

interface Named {
  key: KeyName;
  name: NameChoice;
}

const named = { key: someKey, name: someName };

export const lookUpStep: fc.Arbitrary<Step> = fc.record({ call: fc.constant("look up"), ...named }).map((choice) =>
  makeStep(choice, (model, { key, name }) => {
    const of = resolveName(model, name);
    if (of === null) return null;
    const request: PartnerRequest = { key, method: "GET", path: [of.word] };
    return async (model, world) => {
      await makeCall(
        world,
        { kind: "look up", title: `${key} looks up ${of.title}`, request },
        lookUp(model, key, of.named),
      );
    };
  }),
);

export const eventsStep: fc.Arbitrary<Step> = fc.record({ call: fc.constant("events"), ...named }).map((choice) =>
  makeStep(choice, (model, { key, name }: Named) => {
    const of = resolveName(model, name);
    if (of === null) return null;
    const request: PartnerRequest = { key, method: "GET", path: [of.word, "events"] };
    return async (model, world) => {
      await makeCall(
        world,
        { kind: "events", title: `${key} reads the chain of ${of.title}`, request },
        events(model, key, of.named),
      );
    };
  }),
);

export const reserveStep: fc.Arbitrary<Step> = fc.record({ call: fc.constant("reserve"), ...named }).map((choice) =>
  makeStep(choice, (model, { key, name }: Named) => {
    const of = resolveName(model, name);
    if (of === null) return null;
    const request: PartnerRequest = { key, method: "POST", path: ["reserve"], body: { code: of.word } };
    return async (model, world) => {
      await makeCall(
        world,
        { kind: "reserve", title: `${key} reserves ${of.title}`, request },
        reserve(model, key, of.named),
      );
    };
  }),
);

export const releaseStep: fc.Arbitrary<Step> = fc
  .record({
    call: fc.constant("release"),
    key: someKey,
    name: someTicket,
    reason: fc.constantFrom(null, "the cart was emptied"),
  })
  .map((choice) =>
    makeStep(choice, (model, { key, name, reason }) => {
      const of = resolveName(model, name);
      if (of === null) return null;
      const body = { ticket: of.word, ...(reason === null ? {} : { reason }) };
      const request: PartnerRequest = { key, method: "POST", path: ["release"], body };
      return async (model, world) => {
        await makeCall(
          world,
          { kind: "release", title: `${key} releases ${of.title}`, request },
          release(model, key, of.named),
        );
      };
    }),
  );

/** No token, a wrong one, or that of a reservation of any voucher. */
type TokenChoice = null | "wrong" | { of: VoucherName; before: number };

const someToken: fc.Arbitrary<TokenChoice> = fc.oneof(
  { weight: 6, arbitrary: fc.constant(null) },
  { weight: 4, arbitrary: fc.record({ of: someVoucher, before: someAge }) },
  { weight: 1, arbitrary: fc.constant("wrong" as const) },
);

/** Few references, so that many calls repeat one. White space around them is ignored. */
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
    // Most redeems use a reserved voucher, because more rules apply to it.
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
      const around = workers === "run" ? {} : { around: whileNoWorkerRuns };
      const call: Call = {
        kind: "redeem",
        title: `${key} redeems ${of.title} for ${externalRef.trim()}${secret.title}`,
        request: { key, method: "POST", path: ["redeem"], body },
        ...around,
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

/** Sends a redeem while no worker runs, and starts the workers once its job waits or it is answered. */
async function whileNoWorkerRuns<T>({ system, transcript }: World, sending: () => Promise<T>): Promise<T> {
  transcript.remark("no worker runs when this is sent; the workers start while it waits");
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
