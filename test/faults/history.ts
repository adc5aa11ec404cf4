import type { Failure } from "./http-call.ts";

/** A voucher of the run's supply. */
export interface SuppliedVoucher {
  id: string;
  code: string;
  organizationId: string;
}

/** A partner's key. */
export interface SuppliedKey {
  id: string;
  secret: string;
  organizationId: string;
}

/** What a partner asks for. Retries ask for the very same thing. */
export type Ask = { key: SuppliedKey; voucher: SuppliedVoucher } & (
  | { operation: "redeem"; externalRef: string; by: { code: string } | { ticket: string }; token: string | null }
  | { operation: "reserve" }
  | { operation: "release"; ticket: string }
  | { operation: "lookUp"; codeOrTicket: string }
  | { operation: "events"; codeOrTicket: string }
);
export type Operation = Ask["operation"];
export type AskFor<Wanted extends Operation> = Extract<Ask, { operation: Wanted }>;

/** One request and what came of it. Times are this machine's, which is the database's too, in milliseconds. */
export interface Exchange<A extends Ask = Ask> {
  /** Position in the history. */
  number: number;
  ask: A;
  api: string;
  /** Counts from 1; above 1 it is a retry. */
  attempt: number;
  sentAtMs: number;
  endedAtMs: number;
  /** Null when no answer came. */
  status: number | null;
  failure: Failure | null;
  retryAfter: string | undefined;
  /** The error code of a refusal. */
  code: string | undefined;
  /** What the rules look at; see the partner for what is kept of which answer. */
  // biome-ignore lint/suspicious/noExplicitAny: answers of every shape.
  body: any;
}

/** Every request of a run, in the order of their ends. */
export class History {
  readonly exchanges: Exchange[] = [];

  add(exchange: Omit<Exchange, "number">): Exchange {
    const numbered = { number: this.exchanges.length + 1, ...exchange };
    this.exchanges.push(numbered);
    return numbered;
  }

  of<Wanted extends Operation>(operation: Wanted): Exchange<AskFor<Wanted>>[] {
    return this.exchanges.filter((exchange) => exchange.ask.operation === operation) as Exchange<AskFor<Wanted>>[];
  }
}

/** An organization's reference, as the key of maps. */
export function refOf(ask: AskFor<"redeem">): string {
  return `${ask.key.organizationId} ${ask.externalRef}`;
}

/** One line about a request, for whoever reads a violation. */
export function describeExchange(exchange: Exchange): string {
  const { ask } = exchange;
  const detail = {
    redeem: () => {
      const { externalRef, by, token } = ask as AskFor<"redeem">;
      return `${externalRef} by ${"ticket" in by ? by.ticket : "code"}${token === null ? "" : " with token"}`;
    },
    reserve: () => "",
    release: () => (ask as AskFor<"release">).ticket,
    lookUp: () => "",
    events: () => "",
  }[ask.operation]();
  const result =
    exchange.status === null
      ? exchange.failure
      : `${exchange.status} ${exchange.code ?? JSON.stringify(exchange.body)}`;
  const when = `${new Date(exchange.sentAtMs).toISOString()} +${exchange.endedAtMs - exchange.sentAtMs} ms`;
  return `#${exchange.number} ${when} ${exchange.api} ${ask.key.id} ${ask.operation} ${ask.voucher.id} ${detail} (try ${exchange.attempt}): ${result}`;
}
