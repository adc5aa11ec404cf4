import { setImmediate as nextTurn } from "node:timers/promises";
import { type BatchTerms, insertBatch, insertWindow } from "../core/catalog/db/catalog.ts";
import { GENESIS_HASH, makeNonce, sealEvent } from "../core/chain/chain.ts";
import { copyVouchers, type NewVoucher } from "../core/chain/db/copy.ts";
import { openLeafBatch } from "../core/chain/db/events.ts";
import { makeVoucherCode } from "../core/voucher/codes.ts";
import { newId } from "../core/voucher/ids.ts";
import type { Audience, Window, WindowKind } from "../core/voucher/voucher.ts";
import { AppError } from "../platform/api/errors.ts";
import { markSandbox } from "../platform/api/fields.ts";
import type { Transaction } from "../platform/db/pool.ts";
import { isLockTimeout, violates } from "../platform/db/transaction.ts";
import { insertIssueReference } from "./db/issue-references.ts";
import { type Code, explainTaken, printedCodes, type ReadLines } from "./printed-codes.ts";
import { type AuditContext, withAuditEntry } from "./with-audit-entry.ts";

/** Maximum number of vouchers in a batch. */
export const COUNT_MAX = 10_000_000;
/** Number of vouchers written in one statement: less than a megabyte. */
const CHUNK_SIZE = 1_000;
/**
 * Number of vouchers written in one statement if the run has pauses. On a server with two cores, redemptions then wait
 * for at most one chunk.
 */
const PAUSED_CHUNK_SIZE = 200;
/** Number of vouchers made in one turn of the event loop. A turn takes about a millisecond. */
const TURN_SIZE = 50;

export interface IssueInput {
  productId: string;
  count: number;
  validUntil: Date;
  audience: Audience;
  /** The time windows in which users may acquire the vouchers, by kind. */
  windows: Partial<Record<WindowKind, Window>>;
  /** Exactly `count` printed codes to import. Null to generate new codes. */
  codes: ReadLines | null;
  /** The organization's own reference. At most one batch is issued per reference. */
  reference?: IssueReference | null;
}

/** An organization's own reference for a batch. */
export interface IssueReference {
  issueRef: string;
  /** What the call asks for, as JSON: the product, the count, the end, the audience and the windows. */
  terms: string;
}

/** Thrown when another transaction of the organization has issued a batch under the same reference. */
export class ReferenceTaken extends Error {}

export interface IssuedVoucher {
  id: string;
  code: string;
  serial: number;
}

interface IssueResult {
  id: string;
  count: number;
  firstSerial: number;
  lastSerial: number;
  /** Present for a batch of a sandbox organization. */
  sandbox?: true;
}

/**
 * Issues a batch with its vouchers and their sealed `issued` events in one transaction. Keeps at most two chunks in
 * memory.
 * @param onChunk receives every chunk after it was written. The vouchers exist only after this function has returned.
 * @throws ReferenceTaken; AppError `invalid_request` for codes that cannot be imported, `not_found` for an unknown
 * product, `unavailable` while another batch is being issued under the same reference.
 */
export async function writeBatch(
  ctx: AuditContext,
  input: IssueInput,
  onChunk: (vouchers: readonly IssuedVoucher[]) => Promise<void> | void,
): Promise<IssueResult> {
  const id = newId("bat");
  try {
    const { sandbox } = await withAuditEntry(ctx, { type: "Batch", id }, async (tx) => {
      const terms = await insertBatch(tx, { ...input, id });
      if (terms === null) throw new AppError("not_found", `There is no product ${input.productId}.`);
      if (input.reference) await claimReference(tx, terms.organizationId, id, input.reference);
      const windows = Object.entries(input.windows) as [WindowKind, Window][];
      for (const [kind, window] of windows) await insertWindow(tx, { batchId: id, kind, ...window });
      const codes = input.codes === null ? newCodes(ctx, input.count) : printedCodes(input.codes, input.count);
      const write = async (vouchers: readonly NewVoucher[]) => {
        await copyVouchers(tx, vouchers, await openLeafBatch(tx));
        await onChunk(vouchers.map(({ issued, code, serial }) => ({ id: issued.event.voucherId, code, serial })));
        await ctx.pause?.();
      };
      const size = ctx.pause === undefined ? CHUNK_SIZE : PAUSED_CHUNK_SIZE;
      await writeInChunks(
        codes,
        size,
        (code, serial) => makeVoucher(ctx, { ...input, id }, terms, code, serial),
        write,
      );
      return terms;
    });
    return { id, count: input.count, firstSerial: 1, lastSerial: input.count, ...markSandbox(sandbox) };
  } catch (error) {
    if (input.codes === null || !violates(error, "vouchers_code_key")) throw error;
    throw await explainTaken(input.codes, error);
  }
}

/** Makes a voucher for each code, and writes the vouchers in chunks. No write is running when it returns. */
async function writeInChunks(
  codes: AsyncIterable<Code> | Iterable<Code>,
  size: number,
  make: (code: Code, serial: number) => NewVoucher,
  write: (vouchers: readonly NewVoucher[]) => Promise<void>,
): Promise<void> {
  let chunk: NewVoucher[] = [];
  // Postgres writes one chunk while this function makes the next.
  let writing = Promise.resolve();
  let serial = 0;
  try {
    for await (const code of codes) {
      serial += 1;
      chunk.push(make(code, serial));
      if (chunk.length === size) {
        await writing;
        writing = write(chunk);
        // Prevents an unhandled rejection. The next await of `writing` throws the error.
        writing.catch(() => undefined);
        chunk = [];
      }
      // Lets the event loop serve the database connection.
      if (serial % TURN_SIZE === 0) await nextTurn();
    }
    await writing;
  } finally {
    // A refused code ends the transaction. A running write must not continue outside it.
    await writing.catch(() => undefined);
  }
  if (chunk.length > 0) await write(chunk);
}

/** Claims the reference. Waits for a transaction that issues under the same reference. */
async function claimReference(tx: Transaction, organizationId: string, batchId: string, reference: IssueReference) {
  const claimed = insertIssueReference(tx, { organizationId, batchId, ...reference }).catch((cause: unknown) => {
    throw isLockTimeout(cause) ? new AppError("unavailable", undefined, { cause }) : cause;
  });
  if (!(await claimed)) throw new ReferenceTaken();
}

function makeVoucher(
  ctx: Pick<AuditContext, "randomBytes">,
  batch: Pick<IssueInput, "audience" | "validUntil" | "windows"> & { id: string },
  terms: BatchTerms,
  code: Code,
  serial: number,
): NewVoucher {
  const event = {
    voucherId: newId("vch"),
    sequence: 1,
    eventType: "voucher.instance.issued" as const,
    occurredAt: terms.issuedAt,
    actorConnectedId: null,
    actorIsEmployee: null,
    data: {
      nonce: makeNonce(ctx.randomBytes),
      voucherCode: code.code,
      serial,
      batchId: batch.id,
      productKey: terms.productKey,
      audience: batch.audience,
      validUntil: batch.validUntil.toISOString(),
      retailPriceUsd: terms.retailPriceUsd,
      priceUsd: terms.priceUsd,
      ...markSandbox(terms.sandbox),
    },
  };
  return {
    organizationId: terms.organizationId,
    batchId: batch.id,
    serial,
    pickable: Object.keys(batch.windows).length > 0,
    ...code,
    issued: { event, seal: sealEvent(event, GENESIS_HASH) },
  };
}

function* newCodes(ctx: Pick<AuditContext, "randomBytes">, count: number): Generator<Code> {
  for (let i = 0; i < count; i++) {
    const code = makeVoucherCode(ctx.randomBytes);
    yield { code, codeKey: code.replaceAll("-", "") };
  }
}
