import { expect, it } from "vitest";
import { CONNECTION_LIMITS } from "../../../src/platform/http/server.ts";
import { expectFairRound } from "../../support/fair-rounds.ts";
import { startApi, type TestApi } from "../../support/service.ts";
import { useService } from "../../support/use-service.ts";

const { servers } = useService({ apis: [], workers: [] });

it("a stopping API closes idle connections after two seconds, and without connections it stops at once", async () => {
  const measure = async () => {
    const idle = await startApi(servers, {}, CONNECTION_LIMITS);
    const unused = await startApi(servers, {}, CONNECTION_LIMITS);
    // The client keeps this connection open, so closing waits for it.
    await (await fetch(`${idle.url}/healthz`)).text();
    const unusedMs = await closeTime(unused);
    const idleMs = await closeTime(idle);
    expect(idleMs).toBeGreaterThan(1_900);
    return { unusedMs, idleMs };
  };
  await expectFairRound(3, measure, ({ unusedMs, idleMs }) => idleMs < 6_000 && unusedMs < idleMs);
});

async function closeTime(api: TestApi): Promise<number> {
  const startedAt = performance.now();
  await api.close();
  return performance.now() - startedAt;
}
