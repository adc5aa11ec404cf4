import { type PartnerClient, partnerClient } from "./client.ts";
import { assertInvariants } from "./invariants.ts";
import { openTestServers, type TestServers } from "./servers.ts";
import {
  openWorkerContext,
  startApi,
  startWorkers,
  type TestApi,
  type TestWorker,
  testConfig,
  type WorkerContext,
} from "./service.ts";
import { makeKey, makePartner, type TestPartner } from "./supply.ts";

/** A running service with one partner, for a test file. */
export interface TestService {
  servers: TestServers;
  apis: TestApi[];
  workers: TestWorker[];
  /** Worker contexts that take no jobs from the queue. */
  contexts: WorkerContext[];
  partner: TestPartner;
  keyId: string;
  /** The clients of this key, one for each API. */
  tills: PartnerClient[];
  /** The clients of another key of the same organization, one for each API. */
  rivals: PartnerClient[];
  /** Checks the invariants and closes everything. */
  close(): Promise<void>;
}

/** Starts the given numbers of APIs, workers and worker contexts, all with the same environment. */
export async function startService({
  apis: apiCount = 1,
  workers: workerCount = 0,
  contexts: contextCount = 0,
  env = {} as Record<string, string>,
}): Promise<TestService> {
  const servers = await openTestServers();
  const times = <T>(count: number, start: () => T) => Promise.all(Array.from({ length: count }, start));
  const apis = await times(apiCount, () => startApi(servers, env));
  const workers = await times(workerCount, () => startWorkers(servers, env));
  const contexts = await times(contextCount, () => openWorkerContext(testConfig(servers, env)));
  const partner = await makePartner(servers.db);
  const [own, other] = [
    await makeKey(servers.db, partner.organizationId),
    await makeKey(servers.db, partner.organizationId),
  ];
  const clientsOf = ({ key }: { key: string }) => apis.map(({ url }) => partnerClient(url, key));
  return {
    ...{ servers, apis, workers, contexts, partner },
    keyId: own.id,
    tills: clientsOf(own),
    rivals: clientsOf(other),
    async close() {
      await assertInvariants(servers.db);
      await Promise.all([...apis, ...workers, ...contexts].map((process) => process.close()));
      await servers.close();
    },
  };
}
