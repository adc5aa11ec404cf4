import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import { hasProgram } from "../../support/has-program.ts";
import { startPlainNginx } from "../../support/proxy-examples.ts";
import { issueTestBatch, makeKey } from "../../support/supply.ts";
import type { ApiProcess } from "./cluster.ts";
import { askUntilAnswered, type CalledApi, type CallerOptions } from "./exchange.ts";
import type { PartnerAsk, SuppliedKey } from "./history.ts";
import type { Organization } from "./organizations.ts";

/** The number of codes in the file, so large that sending it takes a while. */
const CODES = 5_000;
const READING_MS = { min: 200, max: 800 };

/** The files that an organization's bookkeeper reads, and the keys for them. */
interface Files {
  /** The key may only read, as the portal requires. */
  readKey: SuppliedKey;
  issuerKey: SuppliedKey;
  batchId: string;
}

export async function supplyFiles(db: pg.Pool, { keys, productId }: Organization): Promise<Files> {
  const { organizationId } = keys[0];
  const make = async (scope: "voucher.read" | "voucher.issue"): Promise<SuppliedKey> => {
    const { id, key } = await makeKey(db, organizationId, { scopes: [scope] });
    return { id, secret: key, organizationId };
  };
  const { batchId } = await issueTestBatch(db, { productId }, CODES, { validUntil: new Date("2099-12-31") });
  return { readKey: await make("voucher.read"), issuerKey: await make("voucher.issue"), batchId };
}

/**
 * Starts a proxy in front of each process. It calls the process with HTTP/1.0, so that a response may end with its
 * connection. Without nginx, callers use the processes directly.
 */
export async function openProxies(apis: readonly ApiProcess[]) {
  if (!hasProgram("nginx")) return { proxied: apis as readonly CalledApi[], close: async () => undefined };
  const proxies = await Promise.all(apis.map(({ url }) => startPlainNginx(url)));
  return {
    proxied: apis.map(({ process }, place): CalledApi => {
      return { process: { name: `nginx before ${process.name}` }, url: String(proxies[place]?.url) };
    }),
    close: async () => void (await Promise.all(proxies.map((proxy) => proxy.stop()))),
  };
}

/** Reads one file after the other until `goesOn` returns false. */
export async function workAsFileReader(
  options: CallerOptions & { files: Files },
  goesOn: () => boolean,
): Promise<void> {
  const { random, files } = options;
  const { readKey, issuerKey, batchId } = files;
  const list = { operation: "list", key: readKey, after: null, limit: Number.POSITIVE_INFINITY } as const;
  const from = new Date().toISOString();
  while (goesOn()) {
    const ask: PartnerAsk = random.pick([
      { ...list, from, file: "partner" },
      { ...list, from, file: "portal" },
      { operation: "codes", key: issuerKey, batchId, count: CODES, file: "issuer" },
    ]);
    await askUntilAnswered(options, ask);
    await sleep(random.between(READING_MS.min, READING_MS.max));
  }
}
