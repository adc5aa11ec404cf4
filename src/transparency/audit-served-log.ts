import { z } from "zod";
import { auditServedTree, type NamedLeaf, type TreeAudit, type TreeAuditOptions } from "#tlog/audit.ts";
import type { LogSource } from "#tlog/log-source.ts";
import { NotAccepted } from "#tlog/policy.ts";
import { type AddProblem, addProblemsTo } from "#tlog/problems.ts";
import { type PublicChain, type PublicEvent, publicChain, publicEvent } from "../core/chain/api/events.ts";
import { GENESIS_HASH } from "../core/chain/chain.ts";
import { ENTITY_TYPE } from "../core/voucher/voucher.ts";

interface ServedAudit extends TreeAudit {
  /** Number of public events of the given vouchers that name a leaf. */
  events: number;
  /** Number of public events of the given vouchers that have no leaf yet. */
  waiting: number;
}

interface ServedAuditOptions extends TreeAuditOptions {
  /** The public histories of vouchers. */
  histories: LogSource;
  /** Vouchers whose public events are compared. */
  vouchers: readonly string[];
}

/**
 * Audits a served log from outside, without a database. Checks the tree, the links between the public events of the
 * given vouchers, and that each leaf that an event names has its hash. Cannot tell whether any other leaf belongs to an
 * event.
 * @throws NotAccepted when the checkpoint does not meet the policy, or when leaves are missing.
 */
export async function auditServedTlog({ histories, vouchers, ...options }: ServedAuditOptions): Promise<ServedAudit> {
  const audit = { events: 0, waiting: 0, problemCount: 0, problems: [] };
  const report = addProblemsTo(audit);
  // Reads the events before the checkpoint, so that the checkpoint covers all leaves that the events name.
  const namedLeaves = new Map<number, NamedLeaf>();
  for (const voucher of vouchers) await readNamedLeaves(histories, voucher, namedLeaves, audit, report);
  const tree = await auditServedTree(options, namedLeaves);
  return {
    ...tree,
    ...audit,
    problemCount: audit.problemCount + tree.problemCount,
    problems: [...audit.problems, ...tree.problems],
  };
}

/**
 * Reads the public history of a voucher, checks its links, and adds the leaves that its events name to `namedLeaves`.
 */
async function readNamedLeaves(
  histories: LogSource,
  voucher: string,
  namedLeaves: Map<number, NamedLeaf>,
  audit: Pick<ServedAudit, "events" | "waiting">,
  report: AddProblem,
): Promise<void> {
  let previous = { sequence: 0, recordHash: GENESIS_HASH as string | null };
  for (let hasMore = true; hasMore; ) {
    const after = previous.sequence;
    const chain = await readChainPage(histories, voucher, after);
    for (const shown of chain.events) {
      const { sequence, recordHash, logIndex } = shown;
      const event = `event ${sequence} of ${voucher}`;
      const problem = findLinkProblem(shown, previous);
      if (problem !== null) report(`${event} ${problem}`);
      previous = { sequence, recordHash };
      if (logIndex === null) audit.waiting += 1;
      else if (namedLeaves.has(logIndex)) report(`${event} shares leaf ${logIndex} with another event`);
      else if (recordHash === null) report(`${event} names leaf ${logIndex} and is not sealed`);
      else {
        namedLeaves.set(logIndex, { event, recordHash });
        audit.events += 1;
      }
    }
    // Ends when a page has no new events, because a server could repeat the same page for ever.
    hasMore = chain.hasMore && previous.sequence > after;
  }
}

/**
 * The problem of an event compared with the previous one, or null. Only the last events of a history may be Pending.
 */
function findLinkProblem(
  { sequence, sealStatus, recordHash, previousHash, payloadKept, erasedBy }: PublicEvent,
  previous: { sequence: number; recordHash: string | null },
): string | null {
  if (sequence !== previous.sequence + 1) return `does not follow event ${previous.sequence}`;
  if (sealStatus === "Pending")
    return recordHash === null && previousHash === null ? null : "is Pending and has a hash";
  if (recordHash === null) return "is sealed and has no hash";
  if (!payloadKept && erasedBy === undefined) return "has lost its payload, and no later event says that it was erased";
  if (previous.recordHash === null) return "is sealed after one that is not";
  return previousHash === previous.recordHash ? null : "is not linked";
}

/** A service of an earlier release does not send `payloadKept`. */
const servedEvent = publicEvent.extend({ payloadKept: z.boolean().default(true) });
const servedChain = publicChain.extend({ events: z.array(servedEvent) });

async function readChainPage(histories: LogSource, voucher: string, after: number): Promise<PublicChain> {
  const path = `${ENTITY_TYPE}/${encodeURIComponent(voucher)}?after=${after}&limit=100`;
  const bytes = await histories.read(path);
  if (bytes === null) throw new NotAccepted(`${histories.from} has no history of ${voucher}.`);
  const parsed = servedChain.safeParse(parseJson(bytes.toString()));
  if (!parsed.success) throw new NotAccepted(`The history of ${voucher} is not valid.`);
  return parsed.data;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
