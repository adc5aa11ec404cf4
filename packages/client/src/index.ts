export type { components, operations, paths } from "./api.ts";
export { OutcomeUnknown, type Settings, VoucherRefused } from "./call.ts";
export { type RedeemOrder, ReferenceReused, type Time, type VoucherClient, voucherClient } from "./client.ts";
export { type Verdict, verifyHistory } from "./history.ts";
export { type AcceptedReceipt, verifyReceipt } from "./receipt.ts";
export { InvalidStatement, verifyStatement } from "./statement.ts";
export { InvalidWebhook, verifyWebhook, type WebhookEvent } from "./webhook.ts";
