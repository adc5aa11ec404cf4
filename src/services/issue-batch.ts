import { setImmediate as nextTurn } from "node:timers/promises";
import { insertBatch } from "../db/catalogue.ts";
import { copyVouchers, type NewVoucher } from "../db/copy.ts";
import { insertWindow } from "../db/listings.ts";
import { violates } from "../db/transaction.ts";
import { GENESIS_HASH, makeNonce, sealEvent } from "../domain/chain.ts";
import { CODE_KEY_MAX, CODE_KEY_MIN, makeVoucherCode, normaliseCode } from "../domain/codes.ts";
import { AppError } from "../domain/errors.ts";
import { newId } from "../domain/ids.ts";
import type { Window, WindowKind } from "../domain/supply.ts";
import type { Audience } from "../domain/voucher.ts";
import { type ActContext, recordAct } from "./record-act.ts";

/** Vouchers written at once: less than a megabyte. */
const CHUNK = 1_000;
/** Vouchers made in one turn of the event loop: about a millisecond. */
const TURN = 50;

export interface IssueInput {
  productId: string;
  count: number;
  validUntil: Date;
  audience: Audience;
  /** Through which windows users may take the vouchers, and when. */
  windows: Partial<Record<WindowKind, Window>>;
  /** Codes that are printed already, exactly `count` of them; null: make new ones. */
  codes: AsyncIterable<string> | null;
}

export interface IssuedVoucher {
  id: string;
  code: string;
  serial: number;
}

export interface IssueResult {
  id: string;
  count: number;
  firstSerial: number;
  lastSerial: number;
}

/**
 * Issues a batch with its vouchers and their sealed `issued` events, in one transaction: whatever fails, nothing is left. Uses
 * the memory of one chunk, whatever the count.
 * @param onChunk is told every chunk once it is written; the vouchers exist only when this function has returned.
 * @throws AppError `invalid_request` for codes that cannot be imported, `not_found` for an unknown product.
 */
export async function issueBatch(
  ctx: ActContext,
  input: IssueInput,
  onChunk: (vouchers: readonly IssuedVoucher[]) => Promise<void> | void,
): Promise<IssueResult> {
  const id = newId("bat");
  try {
    await recordAct(ctx, { type: "Batch", id }, async (tx) => {
      const terms = await insertBatch(tx, { ...input, id });
      if (terms === null) throw new AppError("not_found", `There is no product ${input.productId}.`);
      const windows = Object.entries(input.windows) as [WindowKind, Window][];
      for (const [kind, window] of windows) await insertWindow(tx, id, kind, window);
      const pickable = windows.length > 0;
      let chunk: NewVoucher[] = [];
      // Postgres writes one chunk while the next one is made.
      let writing = Promise.resolve();
      const write = async (vouchers: readonly NewVoucher[]) => {
        await copyVouchers(tx, vouchers);
        await onChunk(vouchers.map(({ issued, code, serial }) => ({ id: issued.event.voucherId, code, serial })));
      };
      let serial = 0;
      for await (const code of input.codes === null
        ? newCodes(ctx, input.count)
        : printedCodes(input.codes, input.count)) {
        serial += 1;
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
            batchId: id,
            productKey: terms.productKey,
            audience: input.audience,
            validUntil: input.validUntil.toISOString(),
            retailPriceUsd: terms.retailPriceUsd,
            priceUsd: terms.priceUsd,
          },
        };
        const issued = { event, seal: sealEvent(event, GENESIS_HASH) };
        chunk.push({ organizationId: terms.organizationId, batchId: id, serial, pickable, ...code, issued });
        if (chunk.length === CHUNK) {
          await writing;
          writing = write(chunk);
          // Whoever waits for it next hears of its failure.
          writing.catch(() => undefined);
          chunk = [];
        }
        // Making vouchers would leave no turn to the connection.
        if (serial % TURN === 0) await nextTurn();
      }
      await writing;
      if (chunk.length > 0) await write(chunk);
    });
  } catch (error) {
    if (violates(error, "vouchers_code_key")) {
      throw new AppError(
        "invalid_request",
        "A code is there twice, or the organization has it already. Nothing was issued.",
        {
          cause: error,
        },
      );
    }
    throw error;
  }
  return { id, count: input.count, firstSerial: 1, lastSerial: input.count };
}

interface Code {
  code: string;
  codeKey: string;
}

function* newCodes(ctx: Pick<ActContext, "randomBytes">, count: number): Generator<Code> {
  for (let i = 0; i < count; i++) {
    const code = makeVoucherCode(ctx.randomBytes);
    yield { code, codeKey: code.replaceAll("-", "") };
  }
}

async function* printedCodes(lines: AsyncIterable<string>, count: number): AsyncGenerator<Code> {
  let line = 0;
  for await (const text of lines) {
    line += 1;
    if (line > count)
      throw new AppError("invalid_request", `The file holds more than ${count} codes. Nothing was issued.`);
    const code = text.trim();
    const codeKey = normaliseCode(code);
    if (codeKey === null) {
      throw new AppError(
        "invalid_request",
        `Line ${line} is no code: ${CODE_KEY_MIN} to ${CODE_KEY_MAX} visible ASCII characters, spaces and hyphens not counted. Nothing was issued.`,
      );
    }
    if (/^rsv_/i.test(codeKey)) {
      throw new AppError("invalid_request", `Line ${line} begins like a reservation ticket. Nothing was issued.`);
    }
    yield { code, codeKey };
  }
  if (line < count) {
    throw new AppError("invalid_request", `The file holds ${line} codes, not ${count}. Nothing was issued.`);
  }
}
