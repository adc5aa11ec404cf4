import type { components } from "./api.ts";
import { makeCall, OutcomeUnknown, type Settings, VoucherRefused } from "./call.ts";

type Schemas = components["schemas"];

/** What to redeem, and under which reference. */
export type RedeemOrder = Schemas["RedeemRequest"] & {
  /** The voucher's id, if you know it from a look-up or a reservation. Without it, `redeemOnce` looks the voucher up first. */
  voucherId?: string;
};

/** The reference belongs to the redemption of another voucher. The voucher of this order was not redeemed: give nothing away for it. */
export class ReferenceReused extends Error {
  override name = "ReferenceReused";
  /** The earlier redemption under this reference. */
  readonly earlier: Schemas["Redemption"];

  constructor(externalRef: string, earlier: Schemas["Redemption"]) {
    super(`The reference ${externalRef} was used for another voucher. This voucher was not redeemed.`);
    this.earlier = earlier;
  }
}

/** Refusals that no pending attempt can change, because the voucher's state is final. */
const FINAL_REFUSALS: readonly unknown[] = ["voucher_used", "voucher_voided", "voucher_expired"];

/** The calls of one API key. Each throws VoucherRefused or OutcomeUnknown. */
export function voucherClient(settings: Settings) {
  const call = makeCall(settings);
  const pathOf = (codeOrTicket: string) => `/partner/vouchers/${encodeURIComponent(codeOrTicket)}`;

  const lookUp = (codeOrTicket: string) => call<Schemas["LookUp"]>("GET", pathOf(codeOrTicket));

  return {
    lookUp,

    reserve: (code: string) => call<Schemas["Reservation"]>("POST", "/partner/vouchers/reserve", { code }),

    release: (ticket: string, reason: string | null = null) =>
      call<Schemas["Release"]>("POST", "/partner/vouchers/release", { ticket, reason }),

    /**
     * Redeems this voucher under this reference, however often it is called with both. Returns only when the service has confirmed that
     * this voucher is redeemed under this reference.
     * @throws ReferenceReused when the reference belongs to another voucher; VoucherRefused when the voucher was not redeemed;
     * OutcomeUnknown when neither is proved: call again later with the same order.
     */
    async redeemOnce({ voucherId, ...request }: RedeemOrder): Promise<Schemas["Redemption"]> {
      const expected = voucherId ?? (await lookUp(request.code ?? request.ticket ?? "")).voucher.id;
      const answer = await call<Schemas["Redemption"]>("POST", "/partner/vouchers/redeem", request).catch((error) => {
        const unsettled =
          error instanceof VoucherRefused && error.afterLostAttempt && !FINAL_REFUSALS.includes(error.code);
        throw unsettled
          ? new OutcomeUnknown("An earlier attempt may still redeem the voucher", { cause: error })
          : error;
      });
      if (answer?.redeemed !== true) throw new OutcomeUnknown("The response does not say that the voucher is redeemed");
      const isOther = "otherVoucher" in answer && answer.otherVoucher === true;
      if (isOther || answer.voucherInstanceId !== expected) throw new ReferenceReused(request.externalRef, answer);
      return answer;
    },

    /**
     * Every redemption of the organization from `from` (inclusive) to `to` (exclusive), both ISO 8601, each exactly once.
     * @throws OutcomeUnknown when the list up to `to` is not final yet: settle a few seconds later.
     */
    async *redemptions(from: string, to: string): AsyncGenerator<Schemas["ListedRedemption"]> {
      let query: Record<string, string> = { from, to };
      for (;;) {
        const address = `/partner/redemptions?${new URLSearchParams({ ...query, limit: "1000" })}`;
        const { redemptions, nextCursor, completeUntil } = await call<Schemas["RedemptionsPage"]>("GET", address);
        yield* redemptions;
        if (nextCursor === null) return;
        if (redemptions.length === 0) throw new OutcomeUnknown(`The list is final only until ${completeUntil}`);
        query = { cursor: nextCursor };
      }
    },

    /** Reads all sealed events of a voucher. `verifyHistory` checks them. */
    async history(codeOrTicket: string): Promise<Schemas["Chain"]> {
      const readAfter = (sequence: number) =>
        call<Schemas["Chain"]>("GET", `${pathOf(codeOrTicket)}/events?after=${sequence}`);
      const chain = await readAfter(0);
      for (let page = chain; page.hasMore && page.events.length > 0; chain.events.push(...page.events)) {
        page = await readAfter(page.events.at(-1)?.sequence ?? 0);
      }
      return { ...chain, hasMore: false };
    },
  };
}

export type VoucherClient = ReturnType<typeof voucherClient>;
