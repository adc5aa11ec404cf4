import type pg from "pg";
import { insertLook, type Look } from "../../db/audit-entries.ts";

/** The operator who views a page. The browser sends the name. It is not verified, because all operators share OPS_TOKEN. */
export interface Operator {
  name: string;
  address: string;
}

/** Records that an operator views a page. Call it before the page is sent. `args` must contain no secret and no voucher code. */
export function recordLook(
  { pool }: { pool: pg.Pool },
  operator: Operator,
  command: Look["command"],
  entity: Look["entity"],
  args: Record<string, unknown> = {},
): Promise<void> {
  return insertLook(pool, { osUser: operator.name, host: operator.address, command, arguments: args, entity });
}
