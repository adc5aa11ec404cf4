import { afterAll, beforeAll } from "vitest";
import { partnerClient } from "./client.ts";
import { marketClient, signedIn } from "./marketplace.ts";
import { openTestServers } from "./servers.ts";
import {
  endService,
  openWorkerContext,
  startApi,
  startApiUnready,
  startWorkers,
  testConfig,
  untilCurrent,
} from "./service.ts";
import { issueVoucher, makeKey, makePartner } from "./supply.ts";
import { makeIssuerKey, writeKeysFile } from "./user-tokens.ts";

type Env = Record<string, string>;

/** A list of unknown length. By this type, tests need not check its first elements for undefined. */
type Some<T> = [T, T, T, ...T[]];

/** The settings of a test file. */
interface Wanted {
  /** The environment of each API. */
  apis?: Env[];
  /** The variables of each worker that runs inside this process. */
  workers?: Env[];
  /** The number of worker contexts that take no jobs from the queue. */
  contexts?: number;
  /** The variables of all APIs and workers. */
  env?: Env;
  /** Whether users can sign in. The APIs then get a file of published keys. */
  users?: boolean;
  /** The number of shards of queues, if the tests need another number than the test run's. */
  shards?: number;
}

async function start({ apis = [{}], workers = [{}], contexts = 0, env = {}, users = false, shards }: Wanted) {
  const servers = await openTestServers(shards);
  const issuer = await makeIssuerKey();
  const keysFile = writeKeysFile(issuer);
  servers.onClose(async () => keysFile.remove());
  const own: Env = { ...env, ...(users && { AUTH_JWKS_URL: keysFile.url }) };
  const [openedApis, openedWorkers] = await Promise.all([
    Promise.all(apis.map((one) => startApi(servers, { ...own, ...one }))),
    Promise.all(workers.map((one) => startWorkers(servers, { ...own, ...one }))),
  ]);
  const opened = Array.from({ length: contexts }, () => openWorkerContext(testConfig(servers, own)));
  for (const context of opened) servers.onClose(() => context.close());
  await Promise.all(opened.map(({ deployment }) => deployment.ready()));
  const partner = await makePartner(servers.db);
  const stranger = await makePartner(servers.db);
  const keys = {
    till: await makeKey(servers.db, partner.organizationId),
    rival: await makeKey(servers.db, partner.organizationId),
    foreign: await makeKey(servers.db, stranger.organizationId),
  };
  await Promise.all(openedApis.map(untilCurrent));
  return {
    servers,
    apis: openedApis,
    workers: openedWorkers,
    contexts: opened,
    partner,
    stranger,
    keys,
    issuer,
    env: own,
  };
}

type Started = Awaited<ReturnType<typeof start>>;

/** Opens a resource before the tests of a file, and closes it after them. Returns a getter of the resource. */
function useOpened<T>(open: () => Promise<T>, close: (opened: T) => Promise<unknown>): () => T {
  let opened: { value: T } | null = null;
  beforeAll(async () => {
    opened = { value: await open() };
  });
  afterAll(async () => {
    if (opened !== null) await close(opened.value);
    opened = null;
  });
  return () => {
    if (opened === null) throw new Error("the service has not started: use it inside a test or a hook");
    return opened.value;
  };
}

/**
 * Starts a service before the tests of a file, and closes it after them. The database must then violate no invariant.
 * Returns the objects for tests: servers, processes, a partner with two keys (`till` and `rival`) and another partner
 * (`foreign`). These objects exist only inside tests and hooks, so the returned object looks them up whenever a
 * property is read.
 */
export function useService(wanted: Wanted = {}) {
  const { apis = [{}], workers = [{}], contexts = 0 } = wanted;
  const now = useOpened(
    () => start(wanted),
    ({ servers }) => endService(servers),
  );
  const each = <T extends object>(wanted: readonly unknown[] | number, find: (at: number) => T | undefined) =>
    Array.from({ length: typeof wanted === "number" ? wanted : wanted.length }, (_, at) =>
      lazily(() => find(at) as T),
    ) as unknown as Some<T>;
  const clients = (name: keyof Started["keys"]) =>
    each(apis, (at) => partnerClient(now().apis[at]?.url ?? "", now().keys[name].key));
  const [tills, rivals, foreigners] = [clients("till"), clients("rival"), clients("foreign")];
  const allApis = each(apis, (at) => now().apis[at]);
  const allWorkers = each(workers, (at) => now().workers[at]);
  return {
    servers: lazily(() => now().servers),
    db: lazily(() => now().servers.db),
    api: allApis[0],
    apis: allApis,
    worker: allWorkers[0],
    workers: allWorkers,
    contexts: each(contexts, (at) => now().contexts[at]),
    partner: lazily(() => now().partner),
    stranger: lazily(() => now().stranger),
    keys: lazily(() => now().keys),
    /** The key that signs users' tokens. */
    issuer: lazily(() => now().issuer),
    /** The clients of the first API. */
    till: tills[0],
    rival: rivals[0],
    foreign: foreigners[0],
    /** The clients of each API. */
    tills,
    rivals,
    /** Issues one voucher of the partner. */
    issue: (options?: { validUntil?: Date }) => issueVoucher(now().servers.db, now().partner, options),
    /** The calls of a user, signed in or anonymous. */
    as: (userId?: string) => signedIn(now().apis[0]?.url ?? "", now().issuer, userId),
    /** The calls of an anonymous user. */
    anyone: lazily(() => marketClient(now().apis[0]?.url ?? "", null)),
    /** Starts another API for the same users, which closes with the others. */
    startApi: (more: Env = {}) => startApi(now().servers, { ...now().env, ...more }),
    startApiUnready: (more: Env = {}) => startApiUnready(now().servers, { ...now().env, ...more }),
  };
}

/** Opens servers with two partners and no process of the service, and closes them after the file's tests. */
export function useDatabase() {
  const open = async () => {
    const servers = await openTestServers();
    return { servers, partner: await makePartner(servers.db), stranger: await makePartner(servers.db) };
  };
  const now = useOpened(open, ({ servers }) => servers.close());
  return {
    servers: lazily(() => now().servers),
    db: lazily(() => now().servers.db),
    partner: lazily(() => now().partner),
    stranger: lazily(() => now().stranger),
    issue: (options?: { validUntil?: Date }) => issueVoucher(now().servers.db, now().partner, options),
  };
}

/** Returns an object that reads its properties from the object that `find` returns, which may not exist yet. */
export function lazily<T extends object>(find: () => T): T {
  return new Proxy({} as T, {
    get(_target, name) {
      const found = find();
      const value = Reflect.get(found, name);
      return typeof value === "function" ? value.bind(found) : value;
    },
    has: (_target, name) => Reflect.has(find(), name),
    ownKeys: () => Reflect.ownKeys(find()),
    getOwnPropertyDescriptor: (_target, name) => ({
      ...Reflect.getOwnPropertyDescriptor(find(), name),
      configurable: true,
    }),
  });
}
