import { verifyServedChain } from "../support/independent-verifier.ts";
import { events, type KeyName, lookUp, type Model, type Named, statesOfReservation, VOUCHER_NAMES } from "./model.ts";
import { disagree, eventsOf, makeCall } from "./step.ts";
import { variable } from "./template.ts";
import type { World } from "./world.ts";

/**
 * Compares the state after a run with the model: each voucher as its organization sees it, its chain, verified as a partner would, and
 * the row of every reservation.
 * @throws Disagreement on a difference.
 */
export async function examine(model: Model, world: World): Promise<void> {
  for (const name of VOUCHER_NAMES) {
    const { organization, code } = model.vouchers[name];
    const key: KeyName = organization === "OURS" ? "TILL" : "OTHER";
    const named: Named = { by: "code", voucher: name };
    const path = [variable(code)];
    await makeCall(
      world,
      { kind: "look up", title: `at the end, ${key} looks up ${name}`, request: { key, method: "GET", path } },
      lookUp(model, key, named),
    );
    const chain = await makeCall(
      world,
      {
        kind: "events",
        title: `at the end, ${key} reads the chain of ${name}`,
        request: { key, method: "GET", path: [...path, "events"] },
      },
      events(model, key, named),
    );
    const broken = verifyServedChain(eventsOf(chain));
    if (broken !== null) disagree(world, `the chain of ${name} does not verify: ${broken}`);
  }
  await examineReservations(model, world);
}

async function examineReservations(model: Model, world: World): Promise<void> {
  const { rows } = await world.system.servers.db.query<{ ticket: string; state: string }>(
    "SELECT ticket, state FROM reservations WHERE voucher_id = ANY ($1)",
    [world.voucherIds],
  );
  const reservations = Object.values(model.vouchers).flatMap((voucher) => voucher.reservations);
  if (rows.length !== reservations.length)
    disagree(world, `there are ${rows.length} reservations, not ${reservations.length}`);
  const states = new Map(rows.map(({ ticket, state }) => [ticket, state]));
  for (const reservation of reservations) {
    const state = String(states.get(world.bindings.textOf(`TICKET_${reservation.name}`)));
    const expected = statesOfReservation(model, reservation);
    if (!expected.includes(state))
      disagree(world, `the reservation ${reservation.name} is ${state}, not ${expected.join(" or ")}`);
  }
}
