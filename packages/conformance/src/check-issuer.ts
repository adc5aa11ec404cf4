import { randomBytes } from "node:crypto";
import type { CheckOptions } from "./check-client.ts";
import { assertSandboxKey, parseAddress } from "./check-options.ts";
import type { CheckResult } from "./checks.ts";
import { type CallKind, type Faults, type NetworkFault, openFaultyProxy } from "./faulty-proxy.ts";
import { ClientFault, runClient } from "./run-client.ts";
import { makeServiceCall, type ServiceCall } from "./service.ts";

/** The options of a check of a back office's client. */
export interface IssuerOptions extends Pick<CheckOptions, "key" | "url" | "client"> {
  /** A product of the sandbox. The checks issue batches of two of its vouchers. */
  product: string;
}

/** One step that a check demands of a back office's client. */
interface IssuerStep {
  /**
   * issue: issue `count` vouchers for the order and report their codes. void, suspend, resume: the voucher with `code`.
   * extend: give that voucher the end `validUntil`.
   */
  step: "issue" | "void" | "suspend" | "resume" | "extend";
  validUntil?: string;
  order: string;
  count?: number;
  code?: string;
}

interface IssuerCheck {
  name: string;
  about: string;
  step: IssuerStep;
  faults?: Faults;
  outcome: "issued" | "voided" | "suspended" | "resumed" | "extended" | "refused";
  /** How many batches the step must add, and how many vouchers of the first batch it must void. */
  adds?: number;
  voids?: number;
  /** What a read of the voucher must show afterwards. */
  shows?: { status: string } | { validUntil: string };
}

/** Maximum number of items that the service puts on a page. */
const PAGE_MAX = 1_000;
const COUNT = 2;
const VALID_UNTIL = "2099-12-31";
const LATER = "2199-12-31T00:00:00.000Z";
const LOST: NetworkFault = { kind: "lose response" };
const BUSY: NetworkFault = {
  kind: "answer",
  status: 503,
  body: { error: "The voucher service is busy. Please try again in a moment.", code: "overloaded", requestId: "check" },
  retryAfterSeconds: 1,
};

const first =
  (kind: CallKind, fault: NetworkFault): Faults =>
  (found, before) =>
    found === kind && before === 0 ? fault : null;

/**
 * The checks of a run. Their order numbers begin with `run`. All `void` steps use one code of the first batch. The
 * other steps on a voucher use another code of that batch.
 */
function checksOf(run: string): IssuerCheck[] {
  const issue = (number: number, count = COUNT): IssuerStep => ({ step: "issue", order: `${run}-${number}`, count });
  const voiding: IssuerStep = { step: "void", order: `${run}-1` };
  const issued = { outcome: "issued", adds: 1 } as const;
  return [
    { name: "issue", about: "Vouchers are issued for an order.", step: issue(1), ...issued },
    { name: "repeat", about: "The back office crashed and runs the order again.", step: issue(1), outcome: "issued" },
    {
      name: "lost answer",
      about: "The vouchers are issued, but the response is lost.",
      step: issue(2),
      faults: first("issue", LOST),
      ...issued,
    },
    {
      name: "busy service",
      about: "The service answers 503 with Retry-After: 1.",
      step: issue(3),
      faults: first("issue", BUSY),
      ...issued,
    },
    {
      name: "reused reference",
      about: "An old order number comes with another number of vouchers.",
      step: issue(1, COUNT + 1),
      outcome: "refused",
    },
    {
      name: "void",
      about: "A voucher is returned, and the response to its void is lost.",
      step: voiding,
      faults: first("void", LOST),
      outcome: "voided",
      voids: 1,
    },
    { name: "void again", about: "The same voucher is returned twice.", step: voiding, outcome: "voided" },
    ...changesOf(`${run}-1`),
  ];
}

/** The checks that suspend, resume and extend a voucher of an order. */
function changesOf(order: string): IssuerCheck[] {
  return [
    {
      name: "suspend",
      about: "A code was stolen, and the response to its suspension is lost.",
      step: { step: "suspend", order },
      faults: first("suspend", LOST),
      outcome: "suspended",
      shows: { status: "Suspended" },
    },
    {
      name: "resume",
      about: "The code was found, and the service answers 503 with Retry-After: 1.",
      step: { step: "resume", order },
      faults: first("resume", BUSY),
      outcome: "resumed",
      shows: { status: "Active" },
    },
    {
      name: "extend",
      about: "A customer was ill, and the response to the extension is lost.",
      step: { step: "extend", order, validUntil: LATER },
      faults: first("extend", LOST),
      outcome: "extended",
      shows: { validUntil: LATER },
    },
  ];
}

/** The names of the checks of a back office's client. */
export const ISSUER_CHECKS = checksOf("").map(({ name }) => name);

/**
 * All items of a list, read page by page.
 * @param path must end with a query, which may be empty.
 */
export async function listAll(call: ServiceCall, path: string, limit = PAGE_MAX): Promise<Record<string, unknown>[]> {
  const items: Record<string, unknown>[] = [];
  for (let cursor = ""; ; ) {
    const page = await call(`${path}&limit=${limit}${cursor}`, (answer) => Array.isArray(answer.items));
    items.push(...((page?.items ?? []) as Record<string, unknown>[]));
    if (typeof page?.nextCursor !== "string") return items;
    cursor = `&cursor=${encodeURIComponent(page.nextCursor)}`;
  }
}

/** Returns a sentence for each field whose value differs from what the voucher must show. */
async function findOther(call: ServiceCall, code: string, shows: object): Promise<string[]> {
  const path = `/issuer/vouchers?code=${encodeURIComponent(code)}`;
  const found = await call(path, ({ items }) => Array.isArray(items));
  const [voucher] = (found?.items ?? []) as Record<string, unknown>[];
  const other = Object.entries(shows).filter(([name, value]) => voucher?.[name] !== value);
  return other.map(([name, value]) => `The voucher's ${name} is ${voucher?.[name]} instead of ${value}.`);
}

/**
 * Runs every check against a back office's client, and calls `onResult` after each check.
 * @throws UnusableOptions, ServiceUnavailable, in the same cases as {@link checkClient}; the signal's reason on abort.
 */
export async function checkIssuer(
  { key, url, client, product }: IssuerOptions,
  signal: AbortSignal,
  onResult: (result: CheckResult) => void,
): Promise<CheckResult[]> {
  const address = parseAddress(url);
  assertSandboxKey(key);
  const call = makeServiceCall(address, key, signal);
  const batches = () => listAll(call, `/issuer/batches?product=${encodeURIComponent(product)}`);
  const read = (id: unknown) => call(`/issuer/batches/${id}`, ({ voided }) => typeof voided === "number");
  const codesOf = async (id: unknown) =>
    (await listAll(call, `/issuer/batches/${id}/vouchers?`)).map(({ code }) => code);
  const known = new Set((await batches()).map(({ id }) => id));
  const proxy = await openFaultyProxy(address);
  const results: CheckResult[] = [];
  /** The batch of each order. */
  const issued = new Map<string, unknown>();
  try {
    for (const { name, about, step, faults = () => null, outcome, adds = 0, voids, shows } of checksOf(
      `check-${randomBytes(4).toString("hex")}`,
    )) {
      const sentences: string[] = [];
      const order = issued.get(step.order);
      const voidedBefore = voids === undefined ? 0 : Number((await read(order))?.voided);
      const code = step.step === "issue" ? null : String((await codesOf(order)).at(step.step === "void" ? 0 : -1));
      proxy.begin(faults);
      try {
        const asked = { validUntil: VALID_UNTIL, ...step, ...(code && { code }), product, api: proxy.url, key };
        const result = await runClient(client, asked, signal);
        const added = (await batches()).filter(({ id }) => !known.has(id));
        for (const { id } of added) known.add(id);
        if (step.step === "issue" && added[0] !== undefined) issued.set(step.order, added[0].id);
        if (result.outcome !== outcome) sentences.push(`It reported "${result.outcome}" instead of "${outcome}".`);
        if (added.length < adds) sentences.push("It issued no vouchers for the order.");
        if (added.length > adds) {
          sentences.push(
            `It issued ${added.length} batches instead of ${adds}. Send every retry of an order with the same ` +
              "issueRef, and look at otherBatch.",
          );
        }
        const batch = issued.get(step.order);
        const right = outcome === "issued" && batch !== undefined ? await codesOf(batch) : null;
        if (right !== null && JSON.stringify(result.codes) !== JSON.stringify(right))
          sentences.push("It did not return the codes of the order's batch, in the order of their serials.");
        if (voids !== undefined && Number((await read(order))?.voided) - voidedBefore !== voids)
          sentences.push("It did not void the voucher.");
        if (shows !== undefined && code !== null) sentences.push(...(await findOther(call, code, shows)));
      } catch (error) {
        if (!(error instanceof ClientFault)) throw error;
        sentences.push(error.message);
        // Batches that were issued before the failure must not count as faults of a later check.
        for (const { id } of await batches()) known.add(id);
      }
      const result = sentences.length === 0 ? ("right" as const) : ("wrong" as const);
      results.push({ name, about, result, sentences });
      onResult(results.at(-1) as CheckResult);
      if (issued.size === 0) break;
    }
    return results;
  } finally {
    await proxy.close();
  }
}
