import { verifyServedChain } from "../../support/independent-verifier.ts";
import { variable } from "./bindings.ts";
import { events, lookUp, type Model, statesOfReservation, VOUCHER_NAMES } from "./model.ts";
import { disagree, makeCall } from "./step.ts";
import type { World } from "./world.ts";

/**
 * Compares the state after a run with the model: each voucher as its organization sees it, its chain, and the row of
 * every reservation. Verifies the chain as a partner would. @throws Error on a difference.
 */
export async function examine(model: Model, world: World): Promise<void> {
  for (const name of VOUCHER_NAMES) {
    const { organization, code } = model.vouchers[name];
    const key = organization === "OURS" ? "TILL" : "OTHER";
    const named = { by: "code", voucher: name } as const;
    const call = { title: `at the end, ${key} reads ${name}`, key, method: "GET" } as const;
    await makeCall(world, { ...call, kind: "look up", path: [variable(code)] }, lookUp(model, key, named));
    const path = [variable(code), "events"];
    const chain = await makeCall(world, { ...call, kind: "events", path }, events(model, key, named));
    const broken = verifyServedChain(chain.events);
    if (broken !== null) disagree(`the chain of ${name} does not verify: ${broken}`);
  }
  const { rows } = await world.system.servers.db.query<{ ticket: string; state: string }>(
    "SELECT ticket, state FROM reservations WHERE voucher_id = ANY ($1)",
    [world.voucherIds],
  );
  const reservations = Object.values(model.vouchers).flatMap((voucher) => voucher.reservations);
  if (rows.length !== reservations.length)
    disagree(`there are ${rows.length} reservations, not ${reservations.length}`);
  const states = new Map(rows.map(({ ticket, state }) => [ticket, state]));
  for (const reservation of reservations) {
    const state = String(states.get(world.bindings.textOf(`TICKET_${reservation.name}`)));
    const expected = statesOfReservation(model, reservation);
    if (!expected.includes(state))
      disagree(`the reservation ${reservation.name} is ${state}, not ${expected.join(" or ")}`);
  }
}
