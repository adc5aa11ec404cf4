import type { Failure } from "./http-call.ts";

/** A voucher that callers of a run may use. */
export interface SuppliedVoucher {
  id: string;
  code: string;
  organizationId: string;
  /** Undefined if the voucher is valid beyond the run. Milliseconds of the database's clock. */
  validUntilMs?: number;
}

/** A partner's key. */
export interface SuppliedKey {
  id: string;
  secret: string;
  organizationId: string;
}

/** A batch from which only users acquire vouchers. */
export interface SuppliedOffer {
  productId: string;
  batchId: string;
  listingId: string;
  supply: number;
}

/** A user's request: a claim, or a purchase by either route. */
export interface AcquireAsk {
  operation: "acquire";
  user: { id: string; token: string };
  offer: SuppliedOffer;
  by: { claim: true } | { paymentRef: string; route: "product" | "listing" };
}

/** The content of a request. Retries repeat it unchanged. */
export type Ask = PartnerAsk | AcquireAsk;
export type PartnerAsk = VoucherAsk | ReferenceAsk | ListAsk | IssuerAsk;
export type VoucherAsk = { key: SuppliedKey; voucher: SuppliedVoucher } & (
  | { operation: "redeem"; externalRef: string; by: { code: string } | { ticket: string }; token: string | null }
  | { operation: "reserve" }
  | { operation: "release"; ticket: string }
  | { operation: "void" }
  | { operation: "suspend" }
  | { operation: "resume" }
  | { operation: "extend"; validUntil: string }
  | { operation: "lookUp" }
  | { operation: "events" }
  | { operation: "publicEvents" }
);
/** A cursor, and the last redemption before its position. */
export interface ListCursor {
  cursor: string;
  redeemedAt: string;
  voucherId: string;
}

/** The redemption of a reference. */
export type ReferenceAsk = { operation: "redemption"; key: SuppliedKey; externalRef: string };
/**
 * A request for a page of the organization's redemptions, from a time or after an earlier page. With `file`, for all
 * redemptions as a file of the partner API or the portal.
 */
export type ListAsk = {
  operation: "list";
  key: SuppliedKey;
  from: string;
  after: ListCursor | null;
  limit: number;
  file?: "partner" | "portal";
};
/** A batch that was issued during a run. */
export interface IssuedBatch {
  id: string;
  vouchers: readonly SuppliedVoucher[];
}

/** Acts of an issuer, and of an operator who erases a reference. `form` is the text that replaces the reference. */
export type IssuerAsk = { key: SuppliedKey } & (
  | { operation: "issue"; productId: string; issueRef: string; count: number }
  | { operation: "codes"; batchId: string; count: number; file?: "issuer" }
  | { operation: "voidBatch"; batch: IssuedBatch }
  | { operation: "endContract"; contractId: string }
  | { operation: "erase"; externalRef: string; form: string }
);
export type Operation = Ask["operation"];
export type AskFor<Wanted extends Operation> = Extract<Ask, { operation: Wanted }>;

/**
 * One request and its outcome. Times are in milliseconds. `sentAtMs` and `endedAtMs` come from the host's clock, which
 * the database's clock follows. `invokedMs` and `returnedMs` come from the monotonic clock, which orders calls.
 */
export interface Exchange<A extends Ask = Ask> {
  /** Position in the history. */
  number: number;
  ask: A;
  api: string;
  /** The attempt's number, from 1. */
  attempt: number;
  sentAtMs: number;
  endedAtMs: number;
  invokedMs: number;
  returnedMs: number;
  /** Null without an answer. */
  status: number | null;
  failure: Failure | null;
  retryAfter: string | undefined;
  code: string | undefined;
  /** The part of the answer that the rules need. `keepOf` selects it. */
  // biome-ignore lint/suspicious/noExplicitAny: answers of every shape.
  body: any;
}

/** A webhook of a redemption, as its receiver got it. */
export interface Told {
  returnedMs: number;
  voucherId: string;
  organizationId: string;
  externalRef: string;
  redeemCode: string;
  redeemedAt: string;
  sequence: number;
  recordHash: string;
}

/** A primary was lost at some moment of this range. Milliseconds of the monotonic clock. */
export interface Loss {
  fromMs: number;
  untilMs: number;
}

/** An operator's act that ends a key's secret, at once or after a grace period. */
export interface SecretEnd {
  secret: string;
  /** The grace period, or zero for a revocation. Milliseconds. */
  graceMs: number;
  /** The start and the end of the act. Milliseconds of the monotonic clock. */
  invokedMs: number;
  returnedMs: number;
}

/** Every request of a run, in the order in which they ended. */
export class History {
  readonly exchanges: Exchange[] = [];
  /** The received webhooks. `returnedMs` is the time of arrival. */
  readonly webhooks: Told[] = [];
  readonly secretEnds: SecretEnd[] = [];
  /** When primaries were lost with commits that no standby had. */
  readonly losses: Loss[] = [];
  /**
   * When the server ran on older files. Processes of the service refuse these files, but an operator's command may use
   * them.
   */
  readonly setBacks: Loss[] = [];

  add(exchange: Omit<Exchange, "number">): Exchange {
    const numbered = { number: this.exchanges.length + 1, ...exchange };
    this.exchanges.push(numbered);
    return numbered;
  }

  of<Wanted extends Operation>(operation: Wanted): Exchange<AskFor<Wanted>>[] {
    return this.exchanges.filter((exchange) => exchange.ask.operation === operation) as Exchange<AskFor<Wanted>>[];
  }
}

/**
 * Gives erased references in lists their original text again, so that the rules need not handle erasures. `wasErased`
 * records the erasure.
 */
export function restoreReferences(history: History): void {
  const plainOf = new Map(history.of("erase").map(({ ask }) => [ask.form, ask.externalRef]));
  for (const { status, body } of history.of("list")) {
    for (const one of status === 200 ? body.redemptions : []) {
      const plain = plainOf.get(one.externalRef);
      if (plain !== undefined) Object.assign(one, { externalRef: plain, wasErased: true });
    }
  }
}

/** Map key of an organization's reference. */
export function refOf(ask: { key: SuppliedKey; externalRef: string }): string {
  return `${ask.key.organizationId} ${ask.externalRef}`;
}

/** Map key of a claim or a purchase. */
export function acquisitionOf({ user, offer, by }: AcquireAsk): string {
  return "claim" in by ? `claim ${user.id} ${offer.productId}` : `purchase ${user.id} ${by.paymentRef}`;
}

/** A broken rule with the requests that show it. */
export interface Violation {
  rule: string;
  detail: string;
  exchanges: readonly Exchange[];
}

const SHOWN_MAX = 12;
/** Maximum length of a body in a description, because a page of redemptions is long. */
const SHOWN_CHARACTERS_MAX = 1_000;

export function describeViolation({ rule, detail, exchanges }: Violation): string {
  const lines = exchanges.slice(0, SHOWN_MAX).map((exchange) => `    ${describeExchange(exchange)}`);
  if (exchanges.length > SHOWN_MAX) lines.push(`    and ${exchanges.length - SHOWN_MAX} more`);
  return [`${rule}: ${detail}`, ...lines].join("\n");
}

function describeExchange({ number, ask, api, attempt, sentAtMs, endedAtMs, ...outcome }: Exchange): string {
  const { status, failure, code, body } = outcome;
  const shown = code ?? JSON.stringify(body)?.slice(0, SHOWN_CHARACTERS_MAX);
  const result = status === null ? failure : `${status} ${shown}`;
  const when = `${new Date(sentAtMs).toISOString()} +${endedAtMs - sentAtMs} ms`;
  return `#${number} ${when} ${api} ${describeAsk(ask)} (try ${attempt}): ${result}`;
}

function describeAsk(ask: Ask): string {
  if (ask.operation === "acquire") {
    const route = "claim" in ask.by ? "" : ` by ${ask.by.route}`;
    return `${acquisitionOf(ask)}${route} of ${ask.offer.batchId}`;
  }
  if (ask.operation === "list") {
    const after = ask.after === null ? "" : ` after ${ask.after.redeemedAt} ${ask.after.voucherId}`;
    return `${ask.key.id} list of ${ask.file ?? ask.limit} from ${ask.from}${after}`;
  }
  if (ask.operation === "issue") return `${ask.key.id} issue of ${ask.count} under ${ask.issueRef}`;
  if (ask.operation === "codes") return `${ask.key.id} codes of ${ask.batchId}`;
  if (ask.operation === "voidBatch") return `${ask.key.id} void of ${ask.batch.id}`;
  if (ask.operation === "endContract") return `${ask.key.id} end of ${ask.contractId}`;
  if (ask.operation === "erase") return `erasure of ${ask.externalRef}`;
  if (ask.operation === "redemption") return `${ask.key.id} redemption ${ask.externalRef}`;
  const about = `${ask.key.id} ${ask.operation} ${ask.voucher.id}`;
  if (ask.operation === "release") return `${about} ${ask.ticket}`;
  if (ask.operation !== "redeem") return about;
  const named = "ticket" in ask.by ? ask.by.ticket : "code";
  return `${about} ${ask.externalRef} by ${named}${ask.token === null ? "" : " with token"}`;
}
