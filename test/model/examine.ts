import { verifyServedChain } from "../support/independent-verifier.ts";
import { events, type KeyName, lookUp, type Model, type Named, statesOfHold, VOUCHER_NAMES } from "./model.ts";
import { disagree, eventsOf, makeCall } from "./step.ts";
import { variable } from "./template.ts";
import type { World } from "./world.ts";

/**
 * Compares everything that a run left behind: each voucher as its organization sees it, its chain, verified as a partner would,
 * and every reservation's row.
 * @throws Disagreement when the model says otherwise.
 */
export async function examine(model: Model, world: World): Promise<void> {
  for (const name of VOUCHER_NAMES) {
    const { organization, code } = model.vouchers[name];
    const key: KeyName = organization === "OURS" ? "TILL" : "OTHER";
    const named: Named = { by: "code", voucher: name };
    const path = [variable(code)];
    await makeCall(
      world,
      { kind: "look up", title: `in the end, ${key} looks up ${name}`, request: { key, method: "GET", path } },
      lookUp(model, key, named),
    );
    const chain = await makeCall(
      world,
      {
        kind: "events",
        title: `in the end, ${key} reads the chain of ${name}`,
        request: { key, method: "GET", path: [...path, "events"] },
      },
      events(model, key, named),
    );
    const broken = verifyServedChain(eventsOf(chain));
    if (broken !== null) disagree(world, `the chain of ${name} does not verify: ${broken}`);
  }
  await examineHolds(model, world);
}

async function examineHolds(model: Model, world: World): Promise<void> {
  const { rows } = await world.system.servers.db.query<{ ticket: string; state: string }>(
    "SELECT ticket, state FROM reservations WHERE voucher_id = ANY ($1)",
    [world.voucherIds],
  );
  const holds = Object.values(model.vouchers).flatMap((voucher) => voucher.holds);
  if (rows.length !== holds.length) disagree(world, `there are ${rows.length} reservations, not ${holds.length}`);
  const states = new Map(rows.map(({ ticket, state }) => [ticket, state]));
  for (const hold of holds) {
    const state = String(states.get(world.bindings.textOf(`TICKET_${hold.name}`)));
    const right = statesOfHold(model, hold);
    if (!right.includes(state)) disagree(world, `the hold ${hold.name} is ${state}, not ${right.join(" or ")}`);
  }
}
