import type pg from "pg";
import { ASSETS } from "../../../src/pages/assets.ts";
import { issueVouchers, makeKey, makePartner } from "../../support/supply.ts";
import { violation } from "./checker.ts";
import type { ApiProcess } from "./cluster.ts";
import type { Violation } from "./history.ts";
import { type Answer, sendCall } from "./http-call.ts";
import type { SeededRandom } from "./seeded-random.ts";

/** The value of OPS_TOKEN for processes that get floods. */
export const FLOODED_OPS_TOKEN = "operations-token-of-the-campaign";

/** A caller that sends floods of requests and redeems nothing. */
export interface Flooder {
  /** May read and redeem. */
  key: string;
  /** May only read, as the portal requires. */
  readKey: string;
  voucher: { id: string; code: string };
}

const FLOODS = {
  assets: () => Object.values(ASSETS).map(({ fileName }) => ({ path: `/assets/${fileName}` })),
  documents: () => [{ path: "/openapi.json" }, { path: "/docs/" }],
  listings: () => [{ path: "/marketplace/listings?limit=100" }],
  pages: ({ voucher }) => [
    { path: `/integrity/events/VoucherInstance/${voucher.id}`, headers: { accept: "text/html" } },
  ],
  lists: ({ key }) => [{ path: "/partner/redemptions?limit=1000", key }],
  histories: ({ key, voucher }) => [{ path: `/partner/vouchers/${voucher.code}/events`, key }],
  portal: ({ readKey }) => ["", "/redemptions"].map((path) => ({ path: `/portal${path}`, headers: basic(readKey) })),
  operators: () =>
    ["", "/overview.json", "/organizations"].map((path) => ({
      path: `/ops${path}`,
      headers: basic(FLOODED_OPS_TOKEN),
    })),
  probes: () => [{ path: "/readyz" }],
} satisfies Record<string, (flooder: Flooder) => { path: string; key?: string; headers?: Record<string, string> }[]>;

export type FloodKind = keyof typeof FLOODS;
export const FLOOD_KINDS = Object.keys(FLOODS) as FloodKind[];

/** How many calls a flood has, and how many of them run at once. */
const FLOOD = { calls: 300, atOnce: 100 };
/** All callers of an address share a limit of concurrent public calls, so the flood has an address of its own. */
const FLOODER_ADDRESS = "127.0.0.9";
/** How long a caller of a flood waits. Half of the callers leave at once. Milliseconds. */
const WAIT_MS = { leaving: 50, waiting: 5_000 };

function basic(password: string): Record<string, string> {
  return { authorization: `Basic ${Buffer.from(`flood:${password}`).toString("base64")}` };
}

export async function makeFlooder(db: pg.Pool): Promise<Flooder> {
  const partner = await makePartner(db);
  const [voucher] = await issueVouchers(db, partner, 1);
  if (voucher === undefined) throw new Error("no voucher was issued");
  const { key } = await makeKey(db, partner.organizationId);
  const { key: readKey } = await makeKey(db, partner.organizationId, { scopes: ["voucher.read"] });
  return { key, readKey, voucher };
}

/**
 * Sends a flood of one kind to one process, until `isOver` or all calls are made. Returns answers that no documented
 * limit explains.
 */
export async function flood(
  kind: FloodKind,
  { url }: ApiProcess,
  flooder: Flooder,
  random: SeededRandom,
  isOver: () => boolean = () => false,
): Promise<Violation[]> {
  const targets: { path: string; key?: string; headers?: Record<string, string> }[] = FLOODS[kind](flooder);
  const wrong: string[] = [];
  let left = FLOOD.calls;
  const call = async () => {
    while (left > 0 && !isOver()) {
      left -= 1;
      const { path, key, headers } = random.pick(targets);
      const timeoutMs = random.chance(0.5) ? WAIT_MS.leaving : WAIT_MS.waiting;
      const own = { ...(key !== undefined && { key }), headers: { "accept-encoding": "br", ...headers } };
      const from = { localAddress: FLOODER_ADDRESS };
      const answer = await sendCall({ method: "GET", url: url + path, timeoutMs, ...own, ...from });
      if (!isDocumented(answer)) wrong.push(`${path}: ${answer.status}`);
    }
  };
  await Promise.all(Array.from({ length: FLOOD.atOnce }, call));
  return wrong.length === 0 ? [] : [violation("a flood gets documented answers", [...new Set(wrong)].join(", "))];
}

/** Whether the answer is missing, normal, or that of a documented limit. */
function isDocumented({ status, headers }: Answer): boolean {
  if (status === null || status === 200 || status === 303) return true;
  return (status === 429 || status === 503) && Number(headers["retry-after"]) >= 1;
}
