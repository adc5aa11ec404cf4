import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import { erase } from "../../../src/acts/person/erase.ts";
import { verifyServedChain } from "../../support/independent-verifier.ts";
import { provisioning } from "../../support/supply.ts";
import { AS_CSV, isFile, listInFile, portalFile, readFile, rowsOf } from "./files.ts";
import type { Ask, AskFor, Exchange, History } from "./history.ts";
import { type Answer, type Call, sendCall } from "./http-call.ts";
import type { SeededRandom } from "./seeded-random.ts";

/** Longer than a redeem's wait but shorter than some freezes, so that partners sometimes give up. Milliseconds. */
const CALL_TIMEOUT_MS = 5_000;
/** When an impatient caller abandons a running redeem, in milliseconds, and how often a caller is impatient. */
const IMPATIENT_AFTER_MS = 1_200;
const IMPATIENT_CHANCE = 0.3;
const RETRY_PAUSE_MS = { min: 20, max: 250 };

/** An API process for calls. */
export interface CalledApi {
  process: { name: string };
  url: string;
}

/** What all callers need. */
export interface CallerOptions {
  name: string;
  random: SeededRandom;
  apis: readonly CalledApi[];
  history: History;
  /** Ends the retries. The caller's loop then rejects. */
  signal: AbortSignal;
}

/** Repeats a request until the answer is not a 5xx. Each attempt uses a random API process. */
export async function askUntilAnswered(
  { random, apis, history, signal }: Omit<CallerOptions, "name">,
  ask: Ask,
): Promise<Exchange> {
  for (let attempt = 1; ; attempt++) {
    const impatient = ask.operation === "redeem" && random.chance(IMPATIENT_CHANCE);
    const timeoutMs = impatient ? IMPATIENT_AFTER_MS : CALL_TIMEOUT_MS;
    const exchange = history.add(await exchangeOnce(ask, random.pick(apis), attempt, { timeoutMs }));
    if (exchange.status !== null && exchange.status < 500) return exchange;
    await sleep(random.between(RETRY_PAUSE_MS.min, RETRY_PAUSE_MS.max));
    signal.throwIfAborted();
  }
}

/** Erases a reference as an operator, and repeats this until it succeeds. */
export async function eraseUntilDone(
  { random, history, signal, db }: Omit<CallerOptions, "name" | "apis"> & { db: pg.Pool },
  ask: AskFor<"erase">,
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    if (history.add(await eraseOnce(db, ask, attempt)).status === 200) return;
    await sleep(random.between(RETRY_PAUSE_MS.min, RETRY_PAUSE_MS.max));
    signal.throwIfAborted();
  }
}

/** An operator erases a reference. */
export async function eraseOnce(db: pg.Pool, ask: AskFor<"erase">, attempt: number): Promise<Omit<Exchange, "number">> {
  const values = { ref: ask.externalRef, org: ask.key.organizationId, user: null, reason: null };
  const [sentAtMs, invokedMs] = [Date.now(), performance.now()];
  const body = await erase.run(provisioning(db), "", values).catch(() => undefined);
  const status = body === undefined ? null : 200;
  const failure = body === undefined ? "reset" : null;
  const times = { sentAtMs, endedAtMs: Date.now(), invokedMs, returnedMs: performance.now() };
  return { ask, api: "operator", attempt, ...times, status, failure, retryAfter: undefined, code: undefined, body };
}

/** Sends a request once and returns the data that the rules need. */
export async function exchangeOnce(
  ask: Ask,
  api: CalledApi,
  attempt: number,
  how: Partial<Pick<Call, "agent" | "timeoutMs">> = {},
): Promise<Omit<Exchange, "number">> {
  const [sentAtMs, invokedMs] = [Date.now(), performance.now()];
  const by = ask.operation === "acquire" ? { token: ask.user.token } : { key: ask.key.secret };
  const sent = await sendCall({ timeoutMs: CALL_TIMEOUT_MS, ...by, ...callFor(ask, api.url), ...how });
  const answer = isFile(ask) ? readFile(sent) : sent;
  const { status, failure, body } = answer;
  return {
    ask,
    api: api.process.name,
    attempt,
    sentAtMs,
    endedAtMs: Date.now(),
    status,
    failure,
    invokedMs,
    returnedMs: performance.now(),
    retryAfter: answer.headers["retry-after"],
    code: status === 200 ? undefined : body?.code,
    body: keepOf(ask, answer),
  };
}

function callFor(ask: Ask, url: string): Pick<Call, "method" | "url" | "body" | "headers"> {
  const post = (path: string, body?: unknown) => ({ method: "POST" as const, url: `${url}/${path}`, body });
  const get = (path: string) => ({ method: "GET" as const, url: `${url}/${path}` });
  const vouchers = "partner/vouchers";
  switch (ask.operation) {
    case "acquire": {
      const { offer, by } = ask;
      if ("claim" in by) return post(`products/${offer.productId}/claim`);
      const path = by.route === "product" ? `products/${offer.productId}` : `marketplace/listings/${offer.listingId}`;
      return post(`${path}/buy`, { paymentRef: by.paymentRef });
    }
    case "redeem": {
      const { by, externalRef, token } = ask;
      return post(`${vouchers}/redeem`, { ...by, externalRef, ...(token !== null && { token }) });
    }
    case "reserve":
      return post(`${vouchers}/reserve`, { code: ask.voucher.code });
    case "release":
      return post(`${vouchers}/release`, { ticket: ask.ticket });
    case "void":
    case "suspend":
    case "resume":
      return post(`issuer/vouchers/${ask.operation}`, { id: ask.voucher.id, reason: "stolen" });
    case "extend":
      return post("issuer/vouchers/extend", { id: ask.voucher.id, validUntil: ask.validUntil });
    case "issue": {
      const { productId, issueRef, count } = ask;
      return post(`issuer/products/${productId}/batches`, { issueRef, count, validUntil: "2099-12-31" });
    }
    case "codes":
      return { ...get(`issuer/batches/${ask.batchId}/vouchers`), ...(ask.file && AS_CSV) };
    case "voidBatch":
      return post(`issuer/batches/${ask.batch.id}/void`);
    case "endContract":
      return post(`issuer/contracts/${ask.contractId}/end`);
    case "erase":
      throw new Error("no endpoint erases");
    case "redemption":
      return get(`partner/redemptions/${ask.externalRef}`);
    case "list":
      if (ask.file === "partner") return { ...get(`partner/redemptions?from=${ask.from}`), ...AS_CSV };
      if (ask.file === "portal") return portalFile(url, ask);
      return get(`partner/redemptions?${placeOf(ask)}&limit=${ask.limit}`);
    case "publicEvents":
      return get(`integrity/events/VoucherInstance/${ask.voucher.id}`);
    case "events":
      return get(`${vouchers}/${ask.voucher.code}/events`);
    case "lookUp":
      return get(`${vouchers}/${ask.voucher.code}`);
  }
}

/** The query parameter for the start of a page. A cursor contains the list's range, so `from` is not sent with it. */
function placeOf({ from, after }: AskFor<"list">): string {
  return after === null ? `from=${from}` : `cursor=${encodeURIComponent(after.cursor)}`;
}

function keepOf(ask: Ask, { status, body, text, headers }: Answer): unknown {
  if (status !== 200) return body;
  switch (ask.operation) {
    case "lookUp": {
      const { id, status: voucherStatus, redeemedAt } = body.voucher;
      return { id, status: voucherStatus, redeemedAt, reservation: body.reservation };
    }
    case "acquire":
      return { voucherId: body.voucher.id, alreadyConfirmed: body.alreadyConfirmed };
    case "events":
    case "publicEvents": {
      const events: { recordHash: string | null; eventType: string }[] = body.events;
      const broken = ask.operation === "events" ? verifyServedChain(body.events) : null;
      const [hashes, types] = [events.map(({ recordHash }) => recordHash), events.map(({ eventType }) => eventType)];
      return { broken, hashes, types };
    }
    case "codes":
      return ask.file ? { items: rowsOf(text).map(({ serial }) => ({ serial: Number(serial) })) } : body;
    case "list":
      if (ask.file) return listInFile(headers["complete-until"], text);
      return { ...body, redemptions: body.redemptions.map(keepRedemption) };
    default:
      return body;
  }
}

/** Keeps only this part of each redemption, because thousands of pages must fit into memory. */
function keepRedemption({ externalRef, voucherInstanceId, redeemCode, redeemedAt }: Record<string, string>) {
  return { externalRef, voucherInstanceId, redeemCode, redeemedAt };
}
