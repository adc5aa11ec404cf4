import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { type ChainHead, type StoredEvent, verifyChain } from "../../src/domain/chain.ts";
import { verifyServedChain } from "../support/independent-verifier.ts";
import {
  FINDINGS,
  type Finding,
  renderVectors,
  VECTORS_FILE,
  type VectorChain,
  type Vectors,
} from "../support/write-vectors.ts";

const PUBLISHED = readFileSync(VECTORS_FILE, "utf8");
const { chains, broken, findings }: Vectors = JSON.parse(PUBLISHED);

/** How the service's own verifier and the independent one put each finding. */
const OWN_WORDS: Record<Finding, RegExp> = {
  sequence: /^event \d+ is missing$/,
  recordHash: /^recordHash is not/,
  previousHash: /^(previousHash is not|the payload's previousHash)/,
};
const INDEPENDENT_WORDS: Record<Finding, (position: number) => RegExp> = {
  sequence: (position) => new RegExp(`^position ${position} holds sequence `),
  recordHash: (position) => new RegExp(`^event ${position} hashes to `),
  previousHash: (position) => new RegExp(`^event ${position} (names another predecessor|does not follow)`),
};

/** The rows that would be served like this, and a head that fits them. */
function stored(chain: VectorChain): [voucherId: string, head: ChainHead, events: StoredEvent[]] {
  const lastSealed = chain.events.findLast((event) => event.sealStatus === "Sealed");
  return [
    chain.entityId,
    {
      lastSequence: chain.events.length,
      sealedSequence: lastSealed?.sequence ?? 0,
      sealedHash: lastSealed?.recordHash ?? null,
    },
    chain.events.map(({ occurredAt, ...event }) => ({
      ...event,
      voucherId: chain.entityId,
      occurredAt: new Date(occurredAt),
    })),
  ];
}

describe("the published chain vectors", () => {
  it("the published chain vectors are what generating them again yields, byte for byte", () => {
    expect(renderVectors()).toBe(PUBLISHED);
    expect(renderVectors()).toBe(renderVectors());
  });

  it("the published chain vectors are not written by importing their generator, and do not depend on time zone or language", () => {
    const module = fileURLToPath(new URL("../support/write-vectors.ts", import.meta.url));
    const print = `const { renderVectors } = await import(${JSON.stringify(module)}); process.stdout.write(renderVectors());`;
    const env = { ...process.env, TZ: "Pacific/Chatham", LC_ALL: "tr_TR.UTF-8" };
    const options = { env, encoding: "utf8", maxBuffer: 10_000_000 } as const;
    expect(execFileSync(process.execPath, ["--input-type=module", "-e", print], options)).toBe(PUBLISHED);
    expect(readFileSync(VECTORS_FILE, "utf8")).toBe(PUBLISHED);
  });

  it("the published chain vectors contain good chains and every kind of broken one, each under its own name", () => {
    const names = [...chains, ...broken].map((chain) => chain.name);
    expect(new Set(names).size).toBe(names.length);
    expect(names).not.toContain("");
    expect(new Set(broken.map((chain) => chain.expected.finding))).toEqual(new Set(Object.keys(FINDINGS)));
    expect(findings).toEqual(FINDINGS);
    const payloads = chains.flatMap((chain) => chain.events.map((event) => event.payload ?? ""));
    for (const inside of ["🎟️", "乾杯", '\\"Käse', "\\\\", "\\n", "\\t", "e\u0301", "\u2028"]) {
      expect(
        payloads.some((payload) => payload.includes(inside)),
        inside,
      ).toBe(true);
    }
    for (const price of [
      '"priceUsd":0,',
      '"priceUsd":19.9,',
      '"retailPriceUsd":1000,',
      '"retailPriceUsd":9999999999.99,',
    ]) {
      expect(
        payloads.some((payload) => payload.replaceAll("}", ",").includes(price)),
        price,
      ).toBe(true);
    }
  });

  it("the published chain vectors tell beside each payload what the payload says", () => {
    for (const chain of chains) {
      for (const { payload, sealStatus, recordHash, ...beside } of chain.events) {
        if (sealStatus === "Pending") continue;
        expect(recordHash).toMatch(/^[0-9a-f]{64}$/);
        const { data, v, entityType, entityId, ...said } = JSON.parse(payload ?? "");
        expect(said).toEqual(beside);
        expect({ v, entityType, entityId }).toEqual({ v: 1, entityType: chain.entityType, entityId: chain.entityId });
        expect(data.nonce).toMatch(/^[0-9a-f]{32}$/);
      }
    }
  });

  describe.each(chains)("of a good chain: $name", (chain) => {
    it("satisfy the independent verifier", () => {
      expect(verifyServedChain(chain.events)).toBeNull();
    });

    it("satisfy the service's own verifier", () => {
      expect(verifyChain(...stored(chain))).toBeNull();
    });
  });

  describe.each(broken)("of a broken chain: $name", ({ expected, ...chain }) => {
    it("are found out by the independent verifier, at the expected place", () => {
      expect(verifyServedChain(chain.events)).toMatch(INDEPENDENT_WORDS[expected.finding](expected.sequence));
    });

    it("are found out by the service's own verifier, at the expected place", () => {
      expect(verifyChain(...stored(chain))).toEqual({
        sequence: expected.sequence,
        problem: expect.stringMatching(OWN_WORDS[expected.finding]),
      });
    });
  });
});
