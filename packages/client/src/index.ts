export type { components, operations, paths } from "./api.ts";
export { OutcomeUnknown, type Settings, VoucherRefused } from "./call.ts";
export { type RedeemOrder, ReferenceReused, type VoucherClient, voucherClient } from "./client.ts";
export { type Verdict, verifyHistory } from "./history.ts";
