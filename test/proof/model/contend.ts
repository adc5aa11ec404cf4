import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import { revokeApiKey } from "../../../src/acts/key/revoke.ts";
import { rotateKey } from "../../../src/acts/key/rotate.ts";
import { issueVoucher, makeKey, type makePartner, provisioning } from "../../support/supply.ts";
import { exchangeOnce } from "../faults/exchange.ts";
import type { Exchange, History, ListAsk, PartnerAsk, SuppliedKey, SuppliedVoucher } from "../faults/history.ts";
import { pageAfter } from "../faults/lists.ts";
import type { SeededRandom } from "../faults/seeded-random.ts";
import type { Processes } from "./start-processes.ts";

// Clients of one organization call about one voucher at the same time, while an operator changes their keys.

const CLIENTS = 6;
const CALLS_PER_CLIENT = 12;
/** Maximum pause of a client between two calls. Milliseconds. */
const PAUSE_MAX_MS = 12;
/** How long a client waits for an answer. Impatient clients give up while the call runs. Milliseconds. */
const PATIENCE_MS = { patient: 20_000, impatient: 8 };
export const RESERVATION_SECONDS = 1;
/** The probability that a client waits until a reservation has ended. */
const OVERSTAY_CHANCE = 0.03;
const CALLS = {
  lookUp: 6,
  reserve: 6,
  release: 4,
  redeem: 1,
  redeemByTicket: 1,
  redeemWithToken: 1,
  redemption: 2,
  events: 2,
  list: 1,
  nextPage: 1,
  void: 0,
  suspend: 0,
  resume: 0,
  extend: 0,
};
type Calls = typeof CALLS;
/** Of every four vouchers, calls may void one, extend one that expires, and suspend and resume one. */
const CALLS_OF_TURN: Partial<Record<number, Calls>> = {
  1: { ...CALLS, void: 3 },
  2: { ...CALLS, extend: 2 },
  3: { ...CALLS, suspend: 3, resume: 4 },
};
const TURN = { expiring: 2, all: 4 };
/** The validity of a voucher that expires, and of the others. Milliseconds. */
const VALID_MS = { expiring: 500, others: 86_400_000 };
/** How long before the end of an expiring voucher its clients begin. Milliseconds. */
const LEADS_MS = [0, 20, 60, 150, 400];
/** By how much an extension moves a voucher's end. A negative value asks for an earlier end. Milliseconds. */
const EXTENDED_MS = [-50, 100, 500];
/** How far back a list begins. Milliseconds. */
const LISTED_MS = 5_000;
const PAGES = [1, 3, 1_000];
/** The probability that a client calls with an ended secret. */
const ENDED_CHANCE = 0.08;
/** The probability that a client may send the token of any voucher's reservation. */
const FOREIGN_CHANCE = 0.4;
/** How long an operator keeps an old secret valid. Milliseconds. */
const GRACES_MS = [0, 150, 700];
/** Maximum time from the first call about a voucher until the operator changes a key. Milliseconds. */
const ACT_MAX_MS = 60;

/** The data that the clients of an organization share. */
export interface Scene {
  db: pg.Pool;
  history: History;
  apis: Processes["apis"];
  partner: Awaited<ReturnType<typeof makePartner>>;
  /** The valid keys, and the keys with ended secrets. */
  keys: SuppliedKey[];
  ended: SuppliedKey[];
  /** The tokens of all vouchers' reservations. */
  tokens: string[];
}

export async function makeSuppliedKey({ db, partner: { organizationId } }: Pick<Scene, "db" | "partner">) {
  const { id, key } = await makeKey(db, organizationId, {
    scopes: ["voucher.read", "voucher.redeem", "voucher.issue"],
  });
  return { id, secret: key, organizationId };
}

/** Issues the next voucher. If it expires soon, waits until shortly before its end. */
async function issue({ db, partner }: Scene, turn: number): Promise<SuppliedVoucher> {
  const isExpiring = turn % TURN.all === TURN.expiring;
  const validUntilMs = Date.now() + (isExpiring ? VALID_MS.expiring : VALID_MS.others);
  const { id, code } = await issueVoucher(db, partner, { validUntil: new Date(validUntilMs) });
  const leadMs = LEADS_MS[Math.floor(turn / TURN.all) % LEADS_MS.length] as number;
  if (isExpiring) await sleep(Math.max(0, validUntilMs - leadMs - Date.now()));
  return { id, code, organizationId: partner.organizationId, validUntilMs };
}

/** Clients call about one voucher in a random order, and an operator revokes or rotates one of their keys. */
export async function contend(scene: Scene, turn: number, random: SeededRandom): Promise<void> {
  const { history, apis } = scene;
  const voucher = await issue(scene, turn);
  const calls = CALLS_OF_TURN[turn % TURN.all] ?? CALLS;
  const chooser = new Chooser(scene, voucher);
  const client = async (by: SeededRandom) => {
    for (let made = 0; made < CALLS_PER_CLIENT; made++) {
      const ask = chooser.choose(by.weigh(calls), by);
      const timeoutMs = by.chance(0.1) ? PATIENCE_MS.impatient : PATIENCE_MS.patient;
      chooser.note(history.add(await exchangeOnce(ask, by.pick(apis), 1, { timeoutMs })));
      await sleep(by.chance(OVERSTAY_CHANCE) ? RESERVATION_SECONDS * 1_000 : by.between(0, PAUSE_MAX_MS));
    }
  };
  const clients = Array.from({ length: CLIENTS }, (_, at) => client(random.fork(`client ${at}`)));
  await Promise.all([...clients, changeKey(scene, random.fork("operator"))]);
}

/** Ends the secret of one of the keys. The key gets another secret, or another key replaces it. */
async function changeKey(scene: Scene, by: SeededRandom): Promise<void> {
  const { db, keys, ended, history } = scene;
  await sleep(by.between(0, ACT_MAX_MS));
  const at = by.between(0, keys.length - 1);
  const old = keys[at] as SuppliedKey;
  const graceMs = by.chance(0.5) ? 0 : by.pick(GRACES_MS);
  const invokedMs = performance.now();
  const isRotated = graceMs > 0 || by.chance(0.5);
  const next = isRotated ? await rotate(db, old, graceMs) : null;
  if (next === null) await revokeApiKey.run(provisioning(db), old.id, {});
  const returnedMs = performance.now();
  ended.push(old);
  // A revocation or a rotation also ends the secrets that earlier rotations have left valid.
  for (const { id, secret } of ended)
    if (id === old.id) history.secretEnds.push({ secret, graceMs, invokedMs, returnedMs });
  keys[at] = next ?? (await makeSuppliedKey(scene));
}

async function rotate(db: pg.Pool, old: SuppliedKey, graceMs: number): Promise<SuppliedKey> {
  const { key } = await rotateKey.run(provisioning(db), old.id, { grace: graceMs });
  return { ...old, secret: key };
}

/** Chooses calls about a voucher. Uses tickets and tokens from earlier answers. */
class Chooser {
  readonly #scene: Scene;
  readonly #voucher: SuppliedVoucher;
  readonly #refs: string[];
  readonly #from = new Date(Date.now() - LISTED_MS).toISOString();
  readonly #reservations: { ticket: string; token: string }[] = [];
  readonly #nextPages: ListAsk[] = [];
  /** The end of validity after the last extension. Milliseconds. */
  #endMs = 0;

  constructor(scene: Scene, voucher: SuppliedVoucher) {
    this.#scene = scene;
    this.#voucher = voucher;
    this.#refs = [1, 2, 3].map((n) => `${voucher.id}-${n}`);
  }

  choose(name: keyof Calls, by: SeededRandom): PartnerAsk {
    const { keys, ended } = this.#scene;
    const voucher = this.#voucher;
    const key = by.pick(ended.length > 0 && by.chance(ENDED_CHANCE) ? ended : keys);
    const externalRef = by.pick(this.#refs);
    const pickOf = <T>(found: readonly T[]) => (found.length === 0 ? null : by.pick(found));
    const reservation = pickOf(this.#reservations);
    const next = pickOf(this.#nextPages);
    switch (name) {
      case "redemption":
        return { operation: name, key, externalRef };
      case "nextPage":
        if (next !== null) return { ...next, key };
        return this.choose("list", by);
      case "list":
        return { operation: name, key, from: this.#from, after: null, limit: by.pick(PAGES) };
      case "release":
        if (reservation === null) return this.choose("reserve", by);
        return { operation: name, key, voucher, ticket: reservation.ticket };
      case "redeem":
      case "redeemByTicket":
      case "redeemWithToken": {
        const byTicket = name === "redeemByTicket" || (name === "redeemWithToken" && by.chance(0.5));
        const named = byTicket && reservation !== null ? { ticket: reservation.ticket } : { code: voucher.code };
        // Sometimes any reservation's token, because a caller may send one reservation's ticket with another's token.
        const tokens = by.chance(FOREIGN_CHANCE) ? this.#scene.tokens : this.#reservations.map(({ token }) => token);
        const token = name === "redeemWithToken" ? pickOf(tokens) : null;
        return { operation: "redeem", key, voucher, externalRef, by: named, token };
      }
      case "extend": {
        this.#endMs = Math.max(this.#endMs, voucher.validUntilMs ?? 0, Date.now());
        const validUntil = new Date(this.#endMs + by.pick(EXTENDED_MS)).toISOString();
        return { operation: name, key, voucher, validUntil };
      }
      default:
        return { operation: name, key, voucher };
    }
  }

  note(exchange: Exchange): void {
    const { ask, status, body } = exchange;
    if (status !== 200) return;
    if (ask.operation === "reserve") {
      this.#reservations.push({ ticket: body.ticket, token: body.token });
      this.#scene.tokens.push(body.token);
    }
    const next = ask.operation === "list" ? pageAfter(exchange as Exchange<ListAsk>) : null;
    if (next !== null) this.#nextPages.push(next);
  }
}
