import { AppError } from "../../platform/api/errors.ts";
import { FairSlots } from "../../platform/batching/fair-slots.ts";
import { CALLER_KINDS, type CallerKind, type Share } from "./caller-kinds.ts";

/**
 * The caller of a call: its organization or visitor, among which the places of a kind are divided, and a signal that
 * aborts once the caller has left.
 */
export type Requester<Who extends Share> = { readonly signal?: AbortSignal | undefined } & (Who extends "organization"
  ? { readonly organizationId: string }
  : Who extends "visitor"
    ? { readonly visitor: string }
    : object);

/**
 * Runs a call that is not batched when its requester may have one of the kind's connections. The call must use one
 * connection at a time.
 * @throws AppError `overloaded`; CallerLeft when the caller leaves before the call begins.
 */
export type Bulkhead<Who extends Share> = <T>(requester: Requester<Who>, call: () => Promise<T>) => Promise<T>;

/**
 * Bounds how many calls of one kind run and wait, so that a flood of them leaves connections to other kinds, and to
 * others of this kind.
 */
export function openBulkhead<Who extends Share>(kind: CallerKind<Who>): Bulkhead<Who> {
  const slots = new FairSlots(kind.connections);
  let calls = 0;
  return async (requester, call) => {
    calls += 1;
    const { organizationId, visitor } = requester as { organizationId?: string; visitor?: string };
    // If the kind's places are not divided, each call is its own owner.
    const owner = { organization: organizationId, visitor, none: undefined }[kind.share] ?? `call ${calls}`;
    const isFull = slots.waiting >= kind.waitingMax || slots.waitingOf(owner) >= kind.waitingMaxEach;
    if (isFull && !slots.hasRoom(owner)) throw new AppError("overloaded");
    return slots.run(owner, call, requester.signal);
  };
}

/** The connections for reads of operators. */
export interface OperatorReads {
  operatorReads: Bulkhead<"none">;
}

/** Opens the connections of each kind of caller in an API process. */
export function openKinds() {
  const { partnerCalls, sandboxAdvances, portalReads, operatorReads, publicReads } = CALLER_KINDS;
  return {
    partnerCalls: openBulkhead(partnerCalls),
    sandboxAdvances: openBulkhead(sandboxAdvances),
    portalReads: openBulkhead(portalReads),
    operatorReads: openBulkhead(operatorReads),
    publicReads: openBulkhead(publicReads),
  };
}
