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
import { pathId } from "../platform/http/endpoint.ts";
import { watchForEnd } from "../platform/watch-for-end.ts";

/** Connections with the rights of voucherctl, places on them, and a signal that ends long acts. */
export interface Issuer {
  pool: pg.Pool;
  calls: Bulkhead<"organization">;
  stopping: AbortSignal;
}

/** What the routes take. They are mounted only if there is an issuer. */
export interface IssuerDeps {
  issuer: Issuer | null;
  randomBytes: RandomBytes;
}

/** A call of a key on the issuer's connections, of which it may use one at a time. */
export interface IssuerCall extends AuditContext {
  /** @throws AppError `not_found` for an entity of another organization exactly as for one that does not exist. */
  requireOwn(kind: EntityKind, id: string): Promise<Lineage>;
  /** Runs a long act. It must call `assertGoing` often, which throws {@link KeyEnded}, or `unavailable`. */
  whileKeyWorks<T>(run: (assertGoing: () => void) => Promise<T>): Promise<T>;
}

/** One error for what does not exist and what belongs to another organization. */
export const notOwn = (): AppError => new AppError("not_found", ({ inDetail }) => inDetail.notOwn);

/** Longest wait of a void for a lock. The calls of partners hold them for milliseconds. Milliseconds. */
export const VOID_LOCK_WAIT_MS = 2_000;

/** The key was revoked or has expired while a long act ran. */
export class KeyEnded extends AppError {
  constructor() {
    super("unknown_key", ({ inDetail }) => inDetail.keyEnded.nothingDone);
  }
}

/** The process stops while a long act runs. */
class Stopping extends AppError {
  constructor() {
    super("unavailable");
  }
}

/** Whether the error has ended an act from outside, at a point where it may end. */
export const isEnd = (error: unknown): boolean => error instanceof KeyEnded || error instanceof Stopping;

/**
 * Runs a call of a key once it may have a connection.
 * @param command as in the audit trail. `args` must contain no secret and no voucher code.
 * @param wait for the connection.
 * @throws AppError `overloaded`; CallerLeft.
 */
export function inIssuer<T>(
  { issuer, randomBytes }: IssuerDeps,
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

/** Pauses for as long as the part before has worked, so that the other calls of the process get half of its time. */
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
  const hasEnded = watchForEnd(() => hasKeyEnded(pool, keyId), done.signal);
  try {
    return await run(() => {
      if (hasEnded()) throw new KeyEnded();
      if (stopping.aborted) throw new Stopping();
    });
  } finally {
    done.abort();
  }
}
