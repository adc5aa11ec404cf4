import { makeNonce, sealEvent } from "../../../../src/core/chain/chain.ts";
import type { Caller } from "../../../../src/core/keys/caller.ts";
import type { LockedRow, OneTransactionContext } from "./one-transaction.ts";

/** Seals a redemption. `sealedHash` is the hash of the voucher's last event. */
export function sealRedemption(
  ctx: Pick<OneTransactionContext, "randomBytes">,
  caller: Caller,
  row: LockedRow,
  words: { externalRef: string; redeemCode: string; ticket: string | null; note: string | undefined },
  sealedHash: string,
) {
  return sealEvent(
    {
      voucherId: row.id,
      sequence: row.lastSequence + 1,
      eventType: "voucher.instance.redeemed",
      occurredAt: row.now,
      actorConnectedId: caller.keyId,
      actorIsEmployee: null,
      data: {
        nonce: makeNonce(ctx.randomBytes),
        voucherCode: row.code,
        serial: row.serial,
        ...words,
        retailPriceUsd: row.retailPriceUsd,
        priceUsd: row.priceUsd,
      },
    },
    sealedHash,
  );
}
