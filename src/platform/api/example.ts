import { z } from "zod";

/** Named requests or responses that the API reference shows. */
export type Examples<Value> = Record<string, { summary: string; value: Value }>;

/** The examples of requests and responses, by their schema. */
export const examples = z.registry<Examples<z.$input>>();

/** The values in all examples of the API reference. Together they show the life of one fictional voucher. */
export const EXAMPLE = {
  baseUrl: "https://vouchers.example.com",
  voucherId: "vch_01m7zjmag2eh3rfc071drn775z",
  code: "25QP-086Q-XM9Q-S8QT",
  serial: 1042,
  brand: "Blue Door Studios",
  colour: "#0a7f5a",
  logo: "8a89a5fd9879e950456f4328c66c140e.png",
  picture: "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mPgqo8CAAF6AOTLSvN0AAAAAElFTkSuQmCC",
  brandId: "brd_01m7zjmag4eh3rfc0q7s3k9xhe",
  productId: "prd_01m7zjmag4eh3rfc12yych2kay",
  productName: "Studio Pass, 3 months",
  productKey: "studio-pass-3",
  retailPriceUsd: 29.9,
  priceUsd: 19.9,
  type: "Subscription",
  benefitMonths: 3,
  usageUnitLabel: null,
  issuedAt: "2026-11-02T08:00:12.481Z",
  validUntil: "2027-12-31T23:59:59.000Z",
  keyId: "key_01m7zjmag2eh3rfc0nmdxz2f2a",
  ticket: "rsv_01m7zjmag2eh3rfc0c44b0yr38",
  token: "S7wbuIyIyPXwKbzyVFtXS8HXQvY5Bij2ETQpjXhTJWE",
  reservedAt: "2026-11-21T11:58:31.902Z",
  reservedUntil: "2026-11-21T12:13:31.902Z",
  externalRef: "order-20261121-0007",
  redeemedAt: "2026-11-21T12:02:58.137Z",
  redeemCode: "FZPY-DXN7-0MV2",
  listingId: "lst_01m7zjmag4eh3rfc0th0k5h2aa",
  batchId: "bat_01m7zjmag4eh3rfc15ae6t0d8b",
  contractId: "ctr_01m7zjmag4eh3rfc18w2n5y6zq",
  linkCode: "cxj4tnzf279b",
  paymentRef: "pay_3QK9v2Lx81",
  redemptionsCursor:
    "Qk3yZ1fJ0m8b2cXw5tHn7FsxNzk1NzI2OTc4MTM3LCJ2Y2hfMDFtN3pqbWFnMmVoM3JmYzA3MWRybjc3NXoiLG51bGwsbnVsbF0",
  eventsCursor: "Yb0fJm3Zt1kQx8Wv5cRn2Fs4MTI0NDE4MjAxNiwiOWYzYmIyYzQ3ZDEwYWU1NiJd",
  completeUntil: "2026-11-21T23:00:04.316Z",
  webhookId: "whk_01m7zjmag4eh3rfc1b0q9x4d7e",
  webhookUrl: "https://shop.example.com/hooks/vouchers",
  webhookSecret: "whsec_uWK94YHe94pUT6OXCTYiEMMlBT1/xyoL++e1MKXeBP4=",
  requestId: "48949506-6721-4252-90f3-fa52b013b41e",
} as const;

export const EXAMPLE_VERIFY_URL = `${EXAMPLE.baseUrl}/integrity/events/VoucherInstance/${EXAMPLE.voucherId}`;
