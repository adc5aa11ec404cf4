import { hash } from "node:crypto";
import type pg from "pg";
import { isEqual } from "#tlog/bytes.ts";
import { parseCheckpoint } from "#tlog/checkpoint.ts";
import { HASH_BYTES, type LeafRange, TILE_WIDTH, type TileId } from "#tlog/merkle.ts";
import { isSignedBy } from "#tlog/note.ts";
import { type Policy, parsePolicy } from "#tlog/policy.ts";
import { type AddProblem, addProblemsTo, type Problems } from "#tlog/problems.ts";
import { TreeAppender } from "#tlog/tree.ts";
import { askWitness } from "#tlog/witness-client.ts";
import { type LoggedHash, readLoggedInOrder } from "../core/chain/db/events.ts";
import type { Transaction } from "../platform/db/pool.ts";
import { readAnchor } from "./anchors.ts";
import { findPublished } from "./db/log-checkpoints.ts";
import { selectTlogRetirements, type TlogRetirement } from "./db/log-retirements.ts";
import { countWaitingLeaves, findTlogTree, selectLostLeaves, selectTlogTiles, type TlogTree } from "./db/log-tree.ts";
import { proveConsistency } from "./tree-proofs.ts";

/** Maximum number of bundles that one query reads: two megabytes. */
const CHUNK_BUNDLES = 256;

interface TlogAudit extends Problems {
  leaves: number;
  /** Sealed events whose leaf has a position in the tree. */
  events: number;
  /** Sealed events whose leaf has no position in the tree yet. */
  waiting: number;
  /** Events without a payload that later events list as erased. Their hashes are compared like all others. */
  erased: number;
  /** Leaves without an event: a recovery restored them after this database had lost their events. */
  lost: number;
  /** Leaves that mark the end of a retired log. Each is the hash of that log's last checkpoint. */
  retirements: number;
  /** How many anchors were read, how many witnesses answered, and how many did not. */
  anchors: number;
  witnesses: number;
  silentWitnesses: number;
}

/** A tree head (size and root) that the database's log must contain. `root` is null if only the size is known. */
interface KnownHead {
  name: string;
  size: number;
  root: Uint8Array | null;
}

function begin() {
  const inside = { leaves: 0, events: 0, waiting: 0, erased: 0, lost: 0, retirements: 0 };
  const outside = { anchors: 0, witnesses: 0, silentWitnesses: 0 };
  const audit: TlogAudit = { ...inside, ...outside, problemCount: 0, problems: [] };
  const heads: KnownHead[] = [];
  return { audit, heads };
}

/**
 * Begins an audit. Reads the anchors, and sends the served checkpoint to the witnesses again. Needs no signing key.
 * Call it before the audit takes its snapshot: the snapshot's tree must contain all heads that this function returns.
 * @param ownPolicy null to use the policy that the database serves.
 */
export async function askOutside(
  pool: pg.Pool,
  anchors: readonly string[],
  ownPolicy: Policy | null,
): Promise<ReturnType<typeof begin>> {
  const begun = begin();
  const { audit, heads } = begun;
  const report = addProblemsTo(audit);
  const tree = await findTlogTree(pool);
  const published = await findPublished(pool);
  const policy = ownPolicy ?? (published && (await parsePolicy(published.policy)));
  const keys = policy?.logs.map(({ key }) => key) ?? null;
  for (const file of anchors) {
    const known = await readAnchor(file, keys).catch((error: Error) => report(error.message));
    if (known === null && tree !== null) report(`the anchor ${file} is missing`);
    if (!known) continue;
    audit.anchors += 1;
    heads.push({ name: `the anchor ${file}`, size: known.size, root: known.root });
  }
  const served = published && parseCheckpoint(published.note);
  if (published === null || policy === null) return begun;
  const isServedSigned =
    served?.size === published.size &&
    isEqual(served.root, published.root) &&
    (await isSignedBy(served.note, keys ?? []));
  if (!isServedSigned) {
    report("the served checkpoint is not one that this log has signed");
    return begun;
  }
  const prove = (oldSize: number, size: number) => proveConsistency(pool, oldSize, size);
  for (const { key, url } of policy.witnesses) {
    if (url === null) continue;
    const answer = await askWitness({ key, url }, published.note, published.size, prove).catch(
      // The witness counts as contradicting: the stored tiles do not prove that its tree is part of this log.
      ({ message }: Error) => ({ kind: "contradicts", reason: message }) as const,
    );
    if (answer.kind === "failed") audit.silentWitnesses += 1;
    else audit.witnesses += 1;
    if (answer.kind === "contradicts") report(`the witness ${key.name} contradicts the database: ${answer.reason}`);
    else if (answer.kind === "ahead") heads.push({ name: `the witness ${key.name}`, size: answer.size, root: null });
  }
  return begun;
}

/** Consecutive leaves, with their data. */
interface Leaves extends LeafRange {
  data: Buffer;
}

/**
 * Recomputes the tree from its bundles, and compares it with the stored tiles, the served checkpoint and every sealed
 * event. Each event must have exactly one leaf with its hash, or wait for its position. Each leaf must be an event, be
 * recorded as lost, or mark the end of a retired log. Reads leaves and events in the same order, so its memory use does
 * not grow with the log. Postgres sorts the events in temporary files of about a hundred bytes per event.
 * @param tx a read-only transaction on one snapshot.
 * @param onEvents receives the number of events checked so far.
 * @param begun the result of {@link askOutside}.
 */
export async function auditTlog(
  tx: Transaction,
  onEvents: (events: number) => void = () => undefined,
  { audit, heads: known } = begin(),
): Promise<TlogAudit> {
  const report = addProblemsTo(audit);
  const tree = await findTlogTree(tx);
  const published = await findPublished(tx);
  const lost = await selectLostLeaves(tx);
  for (const { leaves } of lost) audit.lost += leaves;
  const retirements = await selectTlogRetirements(tx);
  audit.retirements = retirements.length;
  const otherRuns = listOtherRuns(lost, retirements);
  audit.leaves = tree?.size ?? 0;
  const heads = published === null ? known : [{ name: "the served checkpoint", ...published }, ...known];
  for (const { name, size } of heads)
    if (size > audit.leaves) report(`${name} has ${size} leaves, the tree ${audit.leaves}`);
  const reportEvent = (event: LoggedHash, problem: string) =>
    report(`event ${event.sequence} of ${event.voucherId} ${problem}`);
  const findOther = findIn(otherRuns);
  /** Reports each leaf from `start` to `end` (exclusive) that has neither an event nor a recorded reason. */
  const reportEventless = (start: number, end: number) => {
    for (let leaf = start; leaf < end; leaf++) if (findOther(leaf) === null) report(`leaf ${leaf} belongs to no event`);
  };
  const chunks = recomputeTree(tx, tree, heads, retirements, report);
  let leaves: Leaves = { start: 0, end: 0, data: Buffer.alloc(0) };
  /** The leaf that follows the previous event's leaf. */
  let nextLeaf = 0;
  for await (const events of readLoggedInOrder(tx)) {
    for (const event of events) {
      const { logIndex, recordHash } = countErased(event, audit, reportEvent);
      if (!event.hasSlot) reportEvent(event, "is not in the log; see voucherctl log backfill");
      if (logIndex === null) {
        if (event.hasSlot) audit.waiting += 1;
        if (!waitsUnchanged(event)) reportEvent(event, "waits for its position in the log with another hash");
        continue;
      }
      audit.events += 1;
      if (logIndex >= audit.leaves) {
        reportEvent(event, `has leaf ${logIndex}, which the tree does not have`);
        continue;
      }
      while (logIndex >= leaves.end) leaves = (await chunks.next()).value as Leaves;
      if (logIndex < nextLeaf) reportEvent(event, `shares leaf ${logIndex} with another event`);
      else {
        reportEventless(nextLeaf, logIndex);
        const other = findOther(logIndex);
        if (other !== null) report(`leaf ${logIndex} ${other}, but belongs to an event`);
        nextLeaf = logIndex + 1;
      }
      if (!isLeaf(leaves, logIndex, recordHash)) reportEvent(event, `has another hash than leaf ${logIndex}`);
    }
    onEvents(audit.events);
  }
  reportEventless(nextLeaf, audit.leaves);
  for (const { firstIndex, leaves, meaning } of otherRuns) {
    if (firstIndex + leaves > audit.leaves) report(`leaf ${firstIndex + leaves - 1} ${meaning}, but not in the tree`);
  }
  const waiting = await countWaitingLeaves(tx);
  if (waiting !== audit.waiting) report(`${waiting} leaves wait for their place, and ${audit.waiting} events`);
  // Reads the remaining leaves, so that tiles and roots after the last event are checked too.
  for await (const _ of chunks);
  return audit;
}

/** Counts an erased event. Reports an event whose payload is missing without an erasure. Returns the event. */
function countErased(event: LoggedHash, audit: TlogAudit, report: (event: LoggedHash, problem: string) => void) {
  if (event.isErased) audit.erased += 1;
  if (event.isErased === false) report(event, "has no payload, and no later event says that it was erased");
  return event;
}

function isLeaf({ start, data }: Leaves, leaf: number, hash: Buffer): boolean {
  const from = (leaf - start) * HASH_BYTES;
  return hash.compare(data, from, from + HASH_BYTES) === 0;
}

/** Whether an event without a leaf is unchanged: it is in no leaf batch yet, or its batch contains its hash. */
const waitsUnchanged = ({ hasSlot, waitingHash, recordHash }: LoggedHash) =>
  !hasSlot || waitingHash?.equals(recordHash);

/** Consecutive leaves that belong to no event of this database, and the reason. */
interface OtherRun {
  firstIndex: number;
  leaves: number;
  meaning: string;
}

/** The ranges of leaves without an event, in order. */
function listOtherRuns(lost: readonly Omit<OtherRun, "meaning">[], retirements: readonly TlogRetirement[]): OtherRun[] {
  return [
    ...lost.map((run) => ({ ...run, meaning: "is noted as lost" })),
    ...retirements.map(({ origin, size }) => ({ firstIndex: size, leaves: 1, meaning: `is the end of ${origin}` })),
  ].sort((one, other) => one.firstIndex - other.firstIndex);
}

/** Returns a function that tells why a leaf belongs to no event. Null if unknown. Call it with ascending leaves. */
function findIn(otherRuns: readonly OtherRun[]): (leaf: number) => string | null {
  let runAt = 0;
  return (leaf) => {
    const ends = ({ firstIndex, leaves }: { firstIndex: number; leaves: number }) => firstIndex + leaves <= leaf;
    for (let run = otherRuns[runAt]; run !== undefined && ends(run); run = otherRuns[runAt]) runAt += 1;
    const run = otherRuns[runAt];
    return run !== undefined && leaf >= run.firstIndex ? run.meaning : null;
  };
}

/** Yields all leaves in order, and compares their tree with the stored tiles and roots. */
async function* recomputeTree(
  tx: Transaction,
  tree: TlogTree | null,
  heads: readonly KnownHead[],
  retirements: readonly TlogRetirement[],
  report: AddProblem,
): AsyncGenerator<Leaves, undefined> {
  const appender = new TreeAppender(0, []);
  const size = tree?.size ?? 0;
  const checkHeads = () => {
    for (const { name, root } of heads.filter((head) => head.size === appender.size && head.root !== null)) {
      if (!isEqual(appender.root(), root as Uint8Array)) report(`${name} has another root`);
    }
  };
  checkHeads();
  for (let start = 0; start < size; start += CHUNK_BUNDLES * TILE_WIDTH) {
    const end = Math.min(start + CHUNK_BUNDLES * TILE_WIDTH, size);
    const data = await readLeaves(tx, { start, end }, report);
    // Stops at the size of each known tree head, to compare the roots at that size.
    const ends = heads.map((head) => head.size).filter((at) => at > start && at < end);
    for (const cut of [...new Set([...ends, end])].sort((one, other) => one - other)) {
      appender.append(data.subarray((appender.size - start) * HASH_BYTES, (cut - start) * HASH_BYTES));
      checkHeads();
    }
    await compareTiles(tx, appender, report);
    for (const { origin, size: leaf, lastNote } of retirements) {
      const at = (leaf - start) * HASH_BYTES;
      if (leaf >= start && leaf < end && !hash("sha256", lastNote, "buffer").equals(data.subarray(at, at + HASH_BYTES)))
        report(`leaf ${leaf} is not the last checkpoint of ${origin}`);
    }
    yield { start, end, data };
  }
  if (tree !== null && !isEqual(appender.root(), tree.root)) report("the tree's stored root is not that of its leaves");
}

/** The data of leaves. `start` must be the first leaf of a bundle. Reports a missing bundle and uses zeros for it. */
async function readLeaves(tx: Transaction, { start, end }: LeafRange, report: AddProblem): Promise<Buffer> {
  const data = Buffer.alloc((end - start) * HASH_BYTES);
  const ids: TileId[] = [];
  for (let index = start / TILE_WIDTH; index * TILE_WIDTH < end; index++) ids.push({ level: 0, index });
  const bundles = new Map((await selectTlogTiles(tx, ids)).map(({ index, hashes }) => [index, hashes]));
  for (const { index } of ids) {
    const first = index * TILE_WIDTH;
    const wantedBytes = Math.min(TILE_WIDTH, end - first) * HASH_BYTES;
    const bytes = bundles.get(index)?.subarray(0, wantedBytes);
    if (bytes?.length !== wantedBytes) report(`bundle ${index} is missing or too short`);
    bytes?.copy(data, (first - start) * HASH_BYTES);
  }
  return data;
}

async function compareTiles(tx: Transaction, appender: TreeAppender, report: AddProblem): Promise<void> {
  const computed = appender.takeGrown().filter(({ level }) => level > 0);
  const stored = await selectTlogTiles(tx, computed);
  for (const { level, index, hashes } of computed) {
    const found = stored.find((tile) => tile.level === level && tile.index === index)?.hashes;
    if (found === undefined || !found.subarray(0, hashes.length).equals(hashes)) {
      report(`tile ${level}/${index} is not that of the leaves`);
    }
  }
}
