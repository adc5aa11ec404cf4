import { afterAll, beforeAll } from "vitest";
import { partnerClient } from "./client.ts";
import { marketClient, signedIn } from "./marketplace.ts";
import { openTestServers, type TestServers } from "./servers.ts";
import {
  endService,
  openWorkerContext,
  startApi,
  startWorkers,
  type TestApi,
  type TestWorker,
  testConfig,
  type WorkerContext,
} from "./service.ts";
import { issueVoucher, makeKey, makePartner, type TestPartner } from "./supply.ts";
import { type IssuerKey, makeIssuerKey, writeKeysFile } from "./user-tokens.ts";

type Env = Record<string, string>;

/** As many as the file wants. The type spares tests a check of each. */
type Some<T> = [T, T, T, ...T[]];

/** What a test file needs. */
interface Wanted {
  /** The environment of each API. */
  apis?: Env[];
  /** The environment of each worker process in this one. */
  workers?: Env[];
  /** The number of worker contexts that take no jobs from the queue. */
  contexts?: number;
  /** The environment of all of them. */
  env?: Env;
  /** Whether users can sign in: the APIs get a file of published keys. */
  users?: boolean;
}

interface Started {
  servers: TestServers;
  apis: TestApi[];
  workers: TestWorker[];
  contexts: WorkerContext[];
  partner: TestPartner;
  stranger: TestPartner;
  keys: Record<"till" | "rival" | "foreign", { id: string; key: string }>;
  issuer: IssuerKey;
  env: Env;
}

/**
 * Starts a service before the tests of a file, and closes it after them, when the database must violate no invariant. Returns what tests use
 * of it: servers, processes, a partner with two keys (`till` and `rival`) and another partner (`foreign`). All of it exists inside tests and
 * hooks only; the returned objects look it up when a property is read.
 */
export function useService({ apis = [{}], workers = [{}], contexts = 0, env = {}, users = false }: Wanted = {}) {
  let started: Started | null = null;
  const now = () => {
    if (started === null) throw new Error("the service has not started: use it inside a test or a hook");
    return started;
  };
  beforeAll(async () => {
    const servers = await openTestServers();
    const issuer = await makeIssuerKey();
    const keysFile = writeKeysFile(issuer);
    servers.onClose(async () => keysFile.remove());
    const own = { ...env, ...(users && { AUTH_JWKS_URL: keysFile.url }) };
    const [openedApis, openedWorkers] = await Promise.all([
      Promise.all(apis.map((one) => startApi(servers, { ...own, ...one }))),
      Promise.all(workers.map((one) => startWorkers(servers, { ...own, ...one }))),
    ]);
    const opened = Array.from({ length: contexts }, () => openWorkerContext(testConfig(servers, own)));
    for (const context of opened) servers.onClose(() => context.close());
    const partner = await makePartner(servers.db);
    const stranger = await makePartner(servers.db);
    const keys = {
      till: await makeKey(servers.db, partner.organizationId),
      rival: await makeKey(servers.db, partner.organizationId),
      foreign: await makeKey(servers.db, stranger.organizationId),
    };
    const processes = { apis: openedApis, workers: openedWorkers, contexts: opened };
    started = { servers, ...processes, partner, stranger, keys, issuer, env: own };
  });
  afterAll(async () => {
    if (started !== null) await endService(started.servers);
    started = null;
  });
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
  };
}

/** Opens the servers of a file's tests with two partners and no process of the service, and closes them after the tests. */
export function useDatabase() {
  let opened: { servers: TestServers; partner: TestPartner; stranger: TestPartner } | null = null;
  const now = () => {
    if (opened === null) throw new Error("the database is not open: use it inside a test or a hook");
    return opened;
  };
  beforeAll(async () => {
    const servers = await openTestServers();
    opened = { servers, partner: await makePartner(servers.db), stranger: await makePartner(servers.db) };
  });
  afterAll(() => opened?.servers.close());
  return {
    servers: lazily(() => now().servers),
    db: lazily(() => now().servers.db),
    partner: lazily(() => now().partner),
    stranger: lazily(() => now().stranger),
    /** Issues one voucher of the partner. */
    issue: (options?: { validUntil?: Date }) => issueVoucher(now().servers.db, now().partner, options),
  };
}

/** An object whose properties are read from another one that does not exist yet. */
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
