import { partnerClient } from "./client.ts";
import { assertInvariants } from "./invariants.ts";
import { openTestServers } from "./servers.ts";
import { startApi, startWorkers } from "./service.ts";
import { makeKey, makePartner } from "./supply.ts";

/** Starts one API and the given number of worker processes, with one partner. Most test files need useService instead. */
export async function startService({ workers = 0, env = {} as Record<string, string> }) {
  const servers = await openTestServers();
  const api = await startApi(servers, env);
  await Promise.all(Array.from({ length: workers }, () => startWorkers(servers, env)));
  const partner = await makePartner(servers.db);
  const newClient = async () => partnerClient(api.url, (await makeKey(servers.db, partner.organizationId)).key);
  return {
    servers,
    apis: [api],
    partner,
    /** The clients of two keys of the partner. */
    tills: [await newClient()],
    rivals: [await newClient()],
    /** Checks the invariants and closes everything. */
    async close() {
      await assertInvariants(servers.db);
      await servers.close();
    },
  };
}

export type TestService = Awaited<ReturnType<typeof startService>>;
