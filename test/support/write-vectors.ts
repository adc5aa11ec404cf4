import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { ENTITY_TYPE, EVENT_CODES, type EventContent, GENESIS_HASH, sealEvent } from "../../src/domain/chain.ts";

/** The published file of the vectors. */
export const VECTORS_FILE = fileURLToPath(new URL("../../docs/chain-vectors.json", import.meta.url));

/** The findings of a verifier and their meaning. The keys are the values of `expected.finding`. */
export const FINDINGS = {
  sequence: "The event at this position, counted from 1, does not carry this position as its sequence.",
  recordHash: "The SHA-256 of the payload's UTF-8 bytes, taken as given, is not the recordHash beside it.",
  previousHash:
    "The previousHash in the payload is not the recordHash of the event before (64 zeros for the first event), or the previousHash beside the payload is another.",
} as const;
export type Finding = keyof typeof FINDINGS;

/** An event as the partner endpoint serves it. */
export interface VectorEvent {
  sequence: number;
  eventType: string;
  code: string;
  occurredAt: string;
  sealStatus: "Pending" | "Sealed";
  recordHash: string | null;
  previousHash: string | null;
  payload: string | null;
  actorConnectedId: string | null;
  actorIsEmployee: boolean | null;
}

export interface VectorChain {
  name: string;
  entityType: string;
  entityId: string;
  events: VectorEvent[];
}

export interface BrokenVectorChain extends VectorChain {
  /** The first finding and the position of its event, counted from 1. */
  expected: { sequence: number; finding: Finding };
}

export interface Vectors {
  about: string;
  findings: Record<Finding, string>;
  chains: VectorChain[];
  broken: BrokenVectorChain[];
}

/** An event without its position in the chain. */
interface Happening {
  eventType: EventContent["eventType"];
  occurredAt: string;
  actorConnectedId?: string;
  actorIsEmployee?: boolean;
  data: EventContent["data"];
}

interface ChainOptions {
  /** The first event's previousHash, if it is not the genesis hash. */
  previousHash?: string;
  /** Number of Pending events at the end. */
  pending?: number;
}

/** The nonce of the n-th event of these vectors; a real one is random. */
function nonce(n: number): string {
  return n.toString(16).padStart(2, "0").repeat(16);
}

function chain(
  name: string,
  entityId: string,
  happenings: readonly Happening[],
  options: ChainOptions = {},
): VectorChain {
  let previousHash = options.previousHash ?? GENESIS_HASH;
  const events = happenings.map((happening, index): VectorEvent => {
    const { eventType, occurredAt, actorConnectedId = null, actorIsEmployee = null, data } = happening;
    const sequence = index + 1;
    const row = { sequence, eventType, code: EVENT_CODES[eventType], occurredAt };
    if (index >= happenings.length - (options.pending ?? 0)) {
      const unsealed = { sealStatus: "Pending", recordHash: null, previousHash: null, payload: null } as const;
      return { ...row, ...unsealed, actorConnectedId, actorIsEmployee };
    }
    const seal = sealEvent(
      {
        voucherId: entityId,
        sequence,
        eventType,
        occurredAt: new Date(occurredAt),
        actorConnectedId,
        actorIsEmployee,
        data,
      },
      previousHash,
    );
    previousHash = seal.recordHash;
    const sealed = { sealStatus: "Sealed", recordHash: seal.recordHash, previousHash: seal.previousHash } as const;
    return { ...row, ...sealed, payload: seal.payload, actorConnectedId, actorIsEmployee };
  });
  return { name, entityType: ENTITY_TYPE, entityId, events };
}

/** A valid chain with changed events. */
function broken(
  of: VectorChain,
  name: string,
  expected: BrokenVectorChain["expected"],
  change: (events: VectorEvent[]) => VectorEvent[],
): BrokenVectorChain {
  return { name, entityType: of.entityType, entityId: of.entityId, expected, events: change(of.events) };
}

function changed(events: VectorEvent[], sequence: number, change: (event: VectorEvent) => Partial<VectorEvent>) {
  return events.map((event) => (event.sequence === sequence ? { ...event, ...change(event) } : event));
}

function sha256(text: string): string {
  return createHash("sha256").update(text, "utf8").digest("hex");
}

const ISSUED = "voucher.instance.issued";
const CLAIMED = "voucher.instance.claimed";
const REDEEMED = "voucher.instance.redeemed";
const VOIDED = "voucher.instance.voided";

function makeVectors(): Vectors {
  const issuedOnly = chain("issued only, free of charge", "vch_01jzbq0000e00a4g0g0000001a", [
    {
      eventType: ISSUED,
      occurredAt: "2027-01-04T08:00:00.000Z",
      data: {
        nonce: nonce(1),
        voucherCode: "0000-0000-0000-0000",
        serial: 1,
        batchId: "bat_01jzbq0000e00a4g0g00000001",
        productKey: "trial",
        audience: "OpenToAll",
        validUntil: "2027-12-31T23:59:59.999Z",
        retailPriceUsd: 1e3,
        priceUsd: 0,
      },
    },
  ]);
  const redeemed = chain("issued, then redeemed with a note beyond ASCII", "vch_01jzbq0000e00a4g0g0000002b", [
    {
      eventType: ISSUED,
      occurredAt: "2027-01-04T08:00:00.123Z",
      data: {
        nonce: nonce(2),
        voucherCode: "7Q4K-9MZX-2HTB-W8RC",
        serial: 2,
        batchId: "bat_01jzbq0000e00a4g0g00000002",
        productKey: "dinner-für-zwei",
        audience: "OpenToAll",
        validUntil: "2027-12-31T23:59:59.999Z",
        retailPriceUsd: 9_999_999_999.99,
        priceUsd: 19.9,
      },
    },
    {
      eventType: REDEEMED,
      occurredAt: "2027-02-14T19:30:05.007Z",
      actorConnectedId: "key_01jzbq0000e00a4g0g0000000k",
      data: {
        nonce: nonce(3),
        voucherCode: "7Q4K-9MZX-2HTB-W8RC",
        serial: 2,
        externalRef: "Bestellung № 4711/ä",
        redeemCode: "W8RC-7Q4K-9MZX",
        ticket: null,
        note: 'Tisch 4, "Käse & Brot" für 2 – 乾杯 🎟️👩‍👩‍👧 <b>\\</b>\nzweite Zeile\tEnde e\u0301\u2028',
        retailPriceUsd: 9_999_999_999.99,
        priceUsd: 19.9,
      },
    },
  ]);
  const voided = chain("issued, then voided", "vch_01jzbq0000e00a4g0g0000003c", [
    {
      eventType: ISSUED,
      occurredAt: "2027-01-04T08:00:00.000Z",
      data: {
        nonce: nonce(4),
        voucherCode: "summer-2027",
        serial: 3,
        batchId: "bat_01jzbq0000e00a4g0g00000003",
        productKey: "pass",
        audience: "ReferrerOnly",
        validUntil: "2027-06-30T22:00:00.000Z",
        retailPriceUsd: 50,
        priceUsd: 40.25,
      },
    },
    {
      eventType: VOIDED,
      occurredAt: "2027-03-01T00:00:00.000Z",
      data: { nonce: nonce(5), voucherCode: "summer-2027", serial: 3, reason: "" },
    },
  ]);
  const pending = chain(
    "issued, then voided, with the seal of the second event still to come",
    "vch_01jzbq0000e00a4g0g0000004d",
    [
      { eventType: ISSUED, occurredAt: "2027-01-04T08:00:00.000Z", data: { nonce: nonce(6), priceUsd: 0.01 } },
      { eventType: VOIDED, occurredAt: "2027-03-01T00:00:00.000Z", data: { nonce: nonce(7) } },
    ],
    { pending: 1 },
  );
  const claimedId = "vch_01jzbq0000e00a4g0g0000005e";
  const claimed: Happening[] = [
    {
      eventType: ISSUED,
      occurredAt: "2027-01-04T08:00:00.000Z",
      data: { nonce: nonce(8), voucherCode: "9MZX-7Q4K-2HTB-W8RC", serial: 5, retailPriceUsd: 0.1, priceUsd: 0.1 },
    },
    {
      eventType: CLAIMED,
      occurredAt: "2027-01-05T09:10:11.120Z",
      actorConnectedId: "auth|user-ä-1",
      actorIsEmployee: true,
      data: { nonce: nonce(9), referrer: null },
    },
    {
      eventType: REDEEMED,
      occurredAt: "2027-01-05T09:10:11.120Z",
      actorConnectedId: "key_01jzbq0000e00a4g0g0000000k",
      data: {
        nonce: nonce(10),
        voucherCode: "9MZX-7Q4K-2HTB-W8RC",
        serial: 5,
        externalRef: "4712",
        redeemCode: "2HTB-W8RC-7Q4K",
        ticket: "rsv_01jzbq0000e00a4g0g0000000t",
        note: "ä",
        retailPriceUsd: 0.1,
        priceUsd: 0.1,
      },
    },
  ];
  const three = chain("issued, claimed by an employee, then redeemed out of a reservation", claimedId, claimed);
  const elsewhere = chain("", "vch_01jzbq0000e00a4g0g0000006f", claimed);
  const rootless = chain("", claimedId, claimed, { previousHash: sha256("some event before the first") });

  return {
    about:
      "Test vectors for verifiers of voucher event chains. payload is the RFC 8785 form of an event, recordHash the lower-case hex SHA-256 of its UTF-8 bytes. Hash payloads as given; never parse and write them again. Generated by `npm run vectors`.",
    findings: FINDINGS,
    chains: [issuedOnly, redeemed, voided, three, pending],
    broken: [
      broken(three, "a payload was changed by one character", { sequence: 2, finding: "recordHash" }, (events) =>
        changed(events, 2, ({ payload }) => ({ payload: String(payload).replace("user-ä-1", "user-ä-2") })),
      ),
      broken(redeemed, "a note was changed in the last event", { sequence: 2, finding: "recordHash" }, (events) =>
        changed(events, 2, ({ payload }) => ({ payload: String(payload).replace("Tisch 4", "Tisch 5") })),
      ),
      broken(
        redeemed,
        "a note was normalised to composed characters",
        { sequence: 2, finding: "recordHash" },
        (events) => changed(events, 2, ({ payload }) => ({ payload: String(payload).normalize("NFC") })),
      ),
      broken(three, "a payload was written again with white space", { sequence: 1, finding: "recordHash" }, (events) =>
        changed(events, 1, ({ payload }) => ({ payload: JSON.stringify(JSON.parse(String(payload)), null, 1) })),
      ),
      broken(three, "a payload was written again with \\u escapes", { sequence: 2, finding: "recordHash" }, (events) =>
        changed(events, 2, ({ payload }) => ({ payload: String(payload).replace("ä", "\\u00e4") })),
      ),
      broken(
        three,
        "a payload was written again with its keys in another order",
        { sequence: 3, finding: "recordHash" },
        (events) =>
          changed(events, 3, ({ payload }) => ({
            payload: JSON.stringify(Object.fromEntries(Object.entries(JSON.parse(String(payload))).reverse())),
          })),
      ),
      broken(three, "a recordHash is another event's", { sequence: 2, finding: "recordHash" }, (events) =>
        changed(events, 2, () => ({ recordHash: events[0]?.recordHash ?? null })),
      ),
      broken(three, "an event was removed from the middle", { sequence: 2, finding: "sequence" }, (events) =>
        events.filter((event) => event.sequence !== 2),
      ),
      broken(three, "the first event was removed", { sequence: 1, finding: "sequence" }, (events) => events.slice(1)),
      broken(three, "two events changed places", { sequence: 2, finding: "sequence" }, (events) =>
        [0, 2, 1].flatMap((index) => events[index] ?? []),
      ),
      broken(three, "an event appears twice", { sequence: 3, finding: "sequence" }, (events) =>
        [0, 1, 1, 2].flatMap((index) => events[index] ?? []),
      ),
      broken(
        three,
        "an event was removed from the middle and the next one renumbered",
        { sequence: 2, finding: "previousHash" },
        (events) => [0, 2].flatMap((index, place) => ({ ...(events[index] as VectorEvent), sequence: place + 1 })),
      ),
      broken(
        three,
        "an event was changed and hashed again, so that the next one does not follow it",
        { sequence: 3, finding: "previousHash" },
        (events) =>
          changed(events, 2, ({ payload }) => {
            const forged = String(payload).replace('"referrer":null', '"referrer":"a friend"');
            return { payload: forged, recordHash: sha256(forged) };
          }),
      ),
      broken(
        three,
        "an event was replaced by the same event of another voucher",
        { sequence: 2, finding: "previousHash" },
        (events) => changed(events, 2, () => elsewhere.events[1] as VectorEvent),
      ),
      broken(
        three,
        "the previousHash beside a payload was changed",
        { sequence: 2, finding: "previousHash" },
        (events) => changed(events, 2, () => ({ previousHash: GENESIS_HASH })),
      ),
      broken(
        three,
        "the first event follows something other than 64 zeros",
        { sequence: 1, finding: "previousHash" },
        () => rootless.events,
      ),
    ],
  };
}

/** Renders the file. The result is always the same. */
export function renderVectors(): string {
  return `${JSON.stringify(makeVectors(), null, 2)}\n`;
}

if (import.meta.main) writeFileSync(VECTORS_FILE, renderVectors());
