import { AppError } from "../../platform/api/errors.ts";
import { CallerLeft, FairSlots } from "../../platform/batching/fair-slots.ts";
import { CALLER_KINDS, type CallerKind, type Share } from "./caller-kinds.ts";

/** The caller whose share of the connections a call uses, with a signal that aborts when the caller disconnects. */
export type Requester<Who extends Share> = { readonly signal?: AbortSignal | undefined } & (Who extends "organization"
  ? { readonly organizationId: string }
  : Who extends "visitor"
    ? { readonly visitor: string }
    : object);

/**
 * Runs a call that is not batched as soon as a connection for this kind of caller is free. The call must use one
 * connection at a time.
 * @param wait by default, the call waits until the caller disconnects.
 * @throws AppError `overloaded`; CallerLeft when the caller disconnects before the call begins.
 */
export type Bulkhead<Who extends Share> = <T>(
  requester: Requester<Who>,
  call: () => Promise<T>,
  wait?: PlaceWait,
) => Promise<T>;

/** Runs each call at once, for administration programs, which make one call at a time. */
export const runAtOnce = <T>(_requester: unknown, call: () => Promise<T>): Promise<T> => call();

/** How a call waits for its connection. */
export interface PlaceWait {
  /** Maximum wait in milliseconds. After it, the call is refused with `overloaded`. */
  maxMs?: number;
  /**
   * Set if the call reads the next part of a file. Such a call is admitted even if too many calls wait, because a
   * refusal would waste the parts that were already sent. A file has at most one such call at a time.
   */
  continues?: boolean;
}

/** Limits how many calls of one kind run and wait, so that a flood leaves connections for other kinds and callers. */
export function openBulkhead<Who extends Share>(kind: CallerKind<Who>): Bulkhead<Who> {
  const slots = new FairSlots(kind.connections);
  let calls = 0;
  return async (requester, call, { maxMs, continues = false } = {}) => {
    calls += 1;
    const { organizationId, visitor } = requester as { organizationId?: string; visitor?: string };
    // If this kind does not divide its connections among callers, each call counts as a caller of its own.
    const owner = { organization: organizationId, visitor, none: undefined }[kind.share] ?? `call ${calls}`;
    const isFull = slots.waiting >= kind.waitingMax || slots.waitingOf(owner) >= kind.waitingMaxEach;
    if (isFull && !continues && !slots.hasRoom(owner)) throw new AppError("overloaded");
    if (maxMs === undefined) return slots.run(owner, call, requester.signal);
    // After the call has begun, `run` ignores the signal.
    const late = AbortSignal.timeout(maxMs);
    const signal = requester.signal === undefined ? late : AbortSignal.any([late, requester.signal]);
    return slots.run(owner, call, signal).catch((error) => {
      throw error instanceof CallerLeft && late.aborted ? new AppError("overloaded") : error;
    });
  };
}

/** The connections for operators' reads. */
export interface OperatorReads {
  operatorReads: Bulkhead<"none">;
}

/** Opens the connections for each kind of caller in an API process. */
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
