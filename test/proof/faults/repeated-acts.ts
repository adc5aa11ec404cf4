import { setTimeout as sleep } from "node:timers/promises";
import { makeContract } from "../../support/marketplace.ts";
import { issueTestBatch } from "../../support/supply.ts";
import { PATIENT_MS, until } from "../../support/until.ts";
import { embedded } from "./cluster.ts";
import { askUntilAnswered, eraseOnce, exchangeOnce } from "./exchange.ts";
import { RETRIED_MS, type Scene, target } from "./fault-target.ts";
import type { Ask, AskFor, IssuerAsk } from "./history.ts";
import { untilErasedForm } from "./partner.ts";
import { ENDS, endWaits } from "./postgres-faults.ts";

const VOIDED = 3;
/** Pause between two attempts of an act. Milliseconds. */
const PAUSE_MS = 100;

let prepared = 0;

/**
 * The synchronous standby is cut off. Meanwhile acts are repeated, and the waits of their COMMITs are ended. Then the
 * primary crashes, and the standby, which lacks the acts' changes, is promoted. At the end of the run, rules compare
 * the acts' answers with the database.
 */
export const repeatedActsTarget = target(
  12_000,
  (random) => ({ action: random.pick(ENDS), forMs: random.between(500, 3_000) }),
  (scene, { action, forMs }) =>
    scene.postgresTurn(async () => {
      const { cluster, onPrimaryLost } = scene;
      const postgres = embedded(cluster.postgres);
      const acts = await prepareActs(scene);
      postgres.cutOffStandby();
      let isOver = false;
      const repeat = async (act: (attempt: number) => Promise<unknown>) => {
        for (let attempt = 1; !isOver; attempt++) {
          await act(attempt);
          await sleep(PAUSE_MS);
        }
      };
      const repeated = Promise.all(acts.map(repeat));
      await endWaits(scene, action, forMs + RETRIED_MS);
      isOver = true;
      await postgres.promoteStandby(onPrimaryLost);
      await postgres.start();
      await repeated;
    }),
);

/** Creates a batch, an order and a contract. Returns acts that void, erase and end them. */
async function prepareActs({ cluster, issuer, history, random }: Scene) {
  const { db, apis } = cluster;
  const { keys, brandId, productId } = issuer;
  const [key] = keys;
  const { organizationId } = key;
  const nowUntil = <T>(make: () => Promise<T>) => until(() => make().catch(() => null));
  const contractId = await nowUntil(() => makeContract(db, brandId, `acting-${++prepared}`));
  const issued = await nowUntil(() =>
    issueTestBatch(db, { productId }, VOIDED + 1, { validUntil: new Date("2099-12-31") }),
  );
  const [ordered, ...vouchers] = issued.vouchers.map(({ id, code }) => ({ id, code, organizationId }));
  if (ordered === undefined) throw new Error("no voucher was issued");
  const externalRef = `acted-${prepared}`;
  const redeem = { operation: "redeem", key, voucher: ordered, by: { code: ordered.code }, token: null } as const;
  const signal = AbortSignal.timeout(PATIENT_MS);
  await askUntilAnswered({ random, apis, history, signal }, { ...redeem, externalRef } satisfies Ask);
  const form = await untilErasedForm(db, organizationId, externalRef);
  const call = (ask: IssuerAsk) => async (attempt: number) =>
    history.add(await exchangeOnce(ask, random.pick(apis), attempt));
  const erase: AskFor<"erase"> = { operation: "erase", key, externalRef, form };
  return [
    call({ operation: "voidBatch", key, batch: { id: issued.batchId, vouchers: [ordered, ...vouchers] } }),
    call({ operation: "endContract", key, contractId }),
    async (attempt: number) => history.add(await eraseOnce(db, erase, attempt)),
  ];
}
