import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import { ENTITIES, type EntityKind } from "../acts/entities.ts";
import { type AuditContext, auditedCommand } from "../acts/with-audit-entry.ts";
import type { Bulkhead, PlaceWait } from "../core/callers/bulkhead.ts";
import { findLineage, type Lineage } from "../core/catalog/db/catalog.ts";
import type { Caller } from "../core/keys/caller.ts";
import { hasKeyEnded } from "../core/keys/db/api-keys.ts";
import { AppError } from "../platform/api/errors.ts";
import type { RandomBytes } from "../platform/base32.ts";
import type { Config } from "../platform/config.ts";
import { pathId } from "../platform/http/endpoint.ts";
import { watchForEnd } from "../platform/watch-for-end.ts";

/**
 * Connections with the rights of voucherctl, the limit on the calls that use them, and a signal that ends long acts.
 */
interface Issuer {
  pool: pg.Pool;
  calls: Bulkhead<"organization">;
  stopping: AbortSignal;
}

interface Addressed {
  config: Pick<Config, "baseUrl">;
}

/** The dependencies of the routes. If `issuer` is null, the routes are not mounted. */
export interface IssuerDeps extends Addressed {
  issuer: Issuer | null;
  randomBytes: RandomBytes;
}

/** The context of a call with a key. The call may use one of the issuer's connections at a time. */
export interface IssuerCall extends AuditContext, Addressed {
  /** @throws AppError `not_found`, both for an entity of another organization and for an unknown entity. */
  requireOwn(kind: EntityKind, id: string): Promise<Lineage>;
  /**
   * Runs a long act. The act must call `assertGoing` often, which throws {@link KeyEnded} if the key has ended, and
   * `unavailable` if the process stops.
   */
  whileKeyWorks<T>(run: (assertGoing: () => void) => Promise<T>): Promise<T>;
}

/** The same error for unknown entities and for those of other organizations. */
export const notOwn = (): AppError => new AppError("not_found", (t) => t("inDetail.notOwn"));

/** Maximum wait for a lock on vouchers. Partners' calls hold such a lock for a few milliseconds. Milliseconds. */
export const LOCK_WAIT_MS = 2_000;

/** Thrown when the key was revoked or has expired during a long act. */
export class KeyEnded extends AppError {
  constructor() {
    super("unknown_key", (t) => t("inDetail.keyEnded.nothingDone"));
  }
}

class Stopping extends AppError {
  constructor() {
    super("unavailable");
  }
}

/** Whether an act ended early because its key has ended or the process stops. */
export const isEnd = (error: unknown): boolean => error instanceof KeyEnded || error instanceof Stopping;

/**
 * Runs a call as soon as one of the issuer's connections is free for it.
 * @param command the call's name in the audit trail. `args` must contain no secret and no voucher code.
 * @param wait limits the wait for the connection.
 * @throws AppError `overloaded`; CallerLeft.
 */
export function inIssuer<T>(
  { issuer, randomBytes, config }: IssuerDeps,
  caller: Caller,
  call: (ctx: IssuerCall) => Promise<T>,
  [command, args]: readonly [command: string, args: object] = ["read", {}],
  wait?: PlaceWait,
): Promise<T> {
  if (issuer === null) throw new AppError("not_found");
  const { pool, calls, stopping } = issuer;
  const { keyId, organizationId } = caller;
  const run = () =>
    call({
      pool,
      randomBytes,
      config,
      audited: auditedCommand(command, { ...args }, { user: keyId, host: "issuer API", by: "key" }),
      async requireOwn(kind, id) {
        const lineage = await findLineage(pool, pathId(id));
        const entity = ENTITIES[kind];
        const isOfKind = "idField" in entity && lineage?.[entity.idField] === id;
        if (isOfKind && lineage.organizationId === organizationId) return lineage;
        throw notOwn();
      },
      pause: openPause(),
      whileKeyWorks: (act) => whileKeyWorks(pool, keyId, stopping, act),
    });
  return calls(caller, run, wait);
}

/** Returns a function that pauses as long as an act's last part took, so that other calls get half of the time. */
function openPause(): () => Promise<void> {
  let workingSince = performance.now();
  return async () => {
    await sleep(performance.now() - workingSince);
    workingSince = performance.now();
  };
}

async function whileKeyWorks<T>(
  pool: pg.Pool,
  keyId: string,
  stopping: AbortSignal,
  run: (assertGoing: () => void) => Promise<T>,
): Promise<T> {
  const done = new AbortController();
  const ended = watchForEnd(() => hasKeyEnded(pool, keyId), done.signal);
  try {
    return await run(() => {
      if (ended.aborted) throw new KeyEnded();
      if (stopping.aborted) throw new Stopping();
    });
  } finally {
    done.abort();
  }
}
