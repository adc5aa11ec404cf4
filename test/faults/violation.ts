import { describeExchange, type Exchange } from "./history.ts";

/** A broken rule with the requests that show it. */
export interface Violation {
  rule: string;
  detail: string;
  exchanges: readonly Exchange[];
}

/** Requests that a description shows at most. */
const SHOWN_MAX = 12;

export function describeViolation({ rule, detail, exchanges }: Violation): string {
  const lines = exchanges.slice(0, SHOWN_MAX).map((exchange) => `    ${describeExchange(exchange)}`);
  if (exchanges.length > SHOWN_MAX) lines.push(`    and ${exchanges.length - SHOWN_MAX} more`);
  return [`${rule}: ${detail}`, ...lines].join("\n");
}
