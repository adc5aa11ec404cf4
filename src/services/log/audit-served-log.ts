import { type PublicChain, publicChain } from "../../contract/events.ts";
import { ENTITY_TYPE, GENESIS_HASH } from "../../domain/chain.ts";
import { HASH_BYTES, hashLeaves, TILE_WIDTH } from "../../domain/log/merkle.ts";
import { NotAccepted, type Policy } from "../../domain/log/policy.ts";
import { formatTilePath, type StoredTile, TreeAppender } from "../../domain/log/tiles.ts";
import { type LogSource, readBundle, readServedCheckpoint } from "./log-source.ts";
import { type Problems, type Report, reportInto } from "./report-problems.ts";

/** Bundles fetched at once. */
const BUNDLES_AT_ONCE = 8;

interface ServedAudit extends Problems {
  origin: string;
  leaves: number;
  /** Tiles that were compared with the leaves. */
  tiles: number;
  /** Public events of the given vouchers that name a leaf. */
  events: number;
  /** Public events of the given vouchers that have no leaf yet. */
  waiting: number;
  /** The age of the newest cosignature in seconds; null without one. */
  cosignedAge: number | null;
}

interface ServedAuditOptions {
  /** The served log. */
  log: LogSource;
  /** The public histories of vouchers. */
  histories: LogSource;
  policy: Policy;
  /** Vouchers whose public events are compared. */
  vouchers: readonly string[];
  /** The greatest age of the newest cosignature. Seconds. */
  maxAge?: number;
  onLeaves?: (leaves: number) => void;
}

/** A leaf that a public event names. */
interface NamedLeaf {
  event: string;
  recordHash: string;
}

/**
 * Audits a served log as anyone can, without a database: its checkpoint meets the policy, its leaves and every tile lead to the
 * checkpoint's root, and each public event of the given vouchers is linked and has the hash of the leaf that it names. Cannot tell whether
 * any other leaf belongs to an event.
 * @throws NotAccepted when the checkpoint does not meet the policy, or leaves are missing.
 */
export async function auditServedLog(options: ServedAuditOptions): Promise<ServedAudit> {
  const { log, policy, vouchers, maxAge, onLeaves = () => undefined } = options;
  const counts = { leaves: 0, tiles: 0, events: 0, waiting: 0, problemCount: 0 };
  const audit: ServedAudit = { origin: "", ...counts, cosignedAge: null, problems: [] };
  const report = reportInto(audit);
  // Reads the events before the checkpoint, so that the checkpoint covers every leaf that they name.
  const namedLeaves = new Map<number, NamedLeaf>();
  for (const voucher of vouchers) await readNamedLeaves(options.histories, voucher, namedLeaves, audit, report);
  const { checkpoint, cosignedAge } = await readServedCheckpoint(log, policy, maxAge);
  const { origin, size, root } = checkpoint;
  Object.assign(audit, { origin, leaves: size, cosignedAge });

  const appender = new TreeAppender(0, []);
  /** Incomplete tiles, to which later leaves can add hashes. */
  const partial = new Map<string, StoredTile>();
  for (let first = 0; first < size; first += BUNDLES_AT_ONCE * TILE_WIDTH) {
    const end = Math.min(first + BUNDLES_AT_ONCE * TILE_WIDTH, size);
    const length = Math.ceil((end - first) / TILE_WIDTH);
    const bundles = Array.from({ length }, (_, at) => readBundle(log, first / TILE_WIDTH + at, size));
    const leaves = Buffer.concat(await Promise.all(bundles));
    appender.append(leaves);
    for (let leaf = first; namedLeaves.size > 0 && leaf < end; leaf++) {
      compareLeaf(namedLeaves, leaf, leaves.subarray((leaf - first) * HASH_BYTES), report);
    }
    const full: StoredTile[] = [];
    for (const tile of appender.takeGrown()) {
      const key = `${tile.level}/${tile.index}`;
      partial.delete(key);
      if (tile.hashes.length === TILE_WIDTH * HASH_BYTES) full.push(tile);
      else partial.set(key, tile);
    }
    await compareTiles(log, full, audit, report);
    onLeaves(end);
  }
  await compareTiles(log, [...partial.values()], audit, report);
  if (!appender.root().equals(root)) report("the leaves do not lead to the checkpoint's root");
  for (const [leaf, { event }] of namedLeaves)
    report(`${event} names leaf ${leaf}, which the checkpoint does not cover`);
  return audit;
}

function compareLeaf(namedLeaves: Map<number, NamedLeaf>, leaf: number, data: Buffer, report: Report): void {
  const named = namedLeaves.get(leaf);
  if (named === undefined) return;
  namedLeaves.delete(leaf);
  if (data.toString("hex", 0, HASH_BYTES) !== named.recordHash)
    report(`${named.event} has another hash than leaf ${leaf}`);
}

async function compareTiles(
  log: LogSource,
  tiles: readonly StoredTile[],
  audit: ServedAudit,
  report: Report,
): Promise<void> {
  await Promise.all(
    tiles.map(async ({ level, index, hashes }) => {
      const path = formatTilePath({ level, index, width: hashes.length / HASH_BYTES });
      const served = await log.read(path);
      const computed = level === 0 ? hashLeaves(hashes) : hashes;
      if (served === null || !served.equals(computed)) report(`${path} is not that of the leaves`);
      audit.tiles += 1;
    }),
  );
}

/** Reads the public history of a voucher, checks its links, and adds the leaves that it names to `namedLeaves`. */
async function readNamedLeaves(
  histories: LogSource,
  voucher: string,
  namedLeaves: Map<number, NamedLeaf>,
  audit: ServedAudit,
  report: Report,
): Promise<void> {
  let previous = { sequence: 0, recordHash: GENESIS_HASH as string | null };
  for (let hasMore = true; hasMore; ) {
    const after = previous.sequence;
    const chain = await readChainPage(histories, voucher, after);
    for (const { sequence, recordHash, previousHash, logIndex } of chain.events) {
      const event = `event ${sequence} of ${voucher}`;
      if (sequence !== previous.sequence + 1) report(`${event} does not follow event ${previous.sequence}`);
      else if (recordHash !== null && previousHash !== previous.recordHash) report(`${event} is not linked`);
      previous = { sequence, recordHash };
      if (logIndex === null) audit.waiting += 1;
      else if (namedLeaves.has(logIndex)) report(`${event} shares leaf ${logIndex} with another event`);
      else if (recordHash === null) report(`${event} names leaf ${logIndex} and is not sealed`);
      else {
        namedLeaves.set(logIndex, { event, recordHash });
        audit.events += 1;
      }
    }
    // A page that leads no further ends the audit of this voucher: a server could repeat it for ever.
    hasMore = chain.hasMore && previous.sequence > after;
  }
}

async function readChainPage(histories: LogSource, voucher: string, after: number): Promise<PublicChain> {
  const path = `${ENTITY_TYPE}/${encodeURIComponent(voucher)}?after=${after}&limit=100`;
  const bytes = await histories.read(path);
  if (bytes === null) throw new NotAccepted(`${histories.from} has no history of ${voucher}.`);
  const parsed = publicChain.safeParse(parseJson(bytes.toString()));
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
