import type { RedeemInput } from "../../../src/services/redeem-voucher.ts";

/** The body of a redeem as the service's own schema has read it. */
export interface RedeemBody {
  code?: string | null;
  ticket?: string | null;
  externalRef: string;
  token?: string | null;
  note?: string | null;
}

/** What it asks for. */
export function toRedeemInput(body: RedeemBody): RedeemInput {
  return {
    codeOrTicket: body.code ?? body.ticket ?? "",
    externalRef: body.externalRef,
    token: body.token ?? null,
    note: body.note ?? null,
  };
}
