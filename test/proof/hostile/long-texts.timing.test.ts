import { beforeAll, expect, it, onTestFinished, vi } from "vitest";
import { NORMALISED_MAX } from "../../../src/platform/text.ts";
import { OPS_TOKEN } from "../../support/browse.ts";
import { longestTurnMs } from "../../support/longest-turn.ts";
import { useService } from "../../support/use-service.ts";
import { type LongText, longTexts, makeSender } from "./long-texts.ts";

/** Maximum CPU time of one iteration of the event loop. Milliseconds. */
const TURN_MAX_MS = 5;
/** Maximum number of measurements of a request, because garbage collection and other work disturb some of them. */
const ROUNDS_MAX = 12;

const service = useService({ apis: [{ OPS_TOKEN, OPS_WRITABLE: "true", ISSUER_API: "true" }], users: true });
let texts: LongText[];

beforeAll(async () => {
  texts = longTexts(await makeSender(service));
});

/** Watches which texts are normalised. The result gives the bytes of the longest since its last call. */
function watchNormalised(): () => number {
  const { normalize } = String.prototype;
  let longest = 0;
  const spy = vi.spyOn(String.prototype, "normalize").mockImplementation(function (this: string, form) {
    longest = Math.max(longest, Buffer.byteLength(this));
    return normalize.call(this, form);
  });
  onTestFinished(() => spy.mockRestore());
  return () => {
    const found = longest;
    longest = 0;
    return found;
  };
}

it("no long text in a path, query, field or header is normalised, or blocks the event loop for 5 ms", async () => {
  const longestNormalised = watchNormalised();
  expect((await service.till.lookUp((await service.issue()).code)).status).toBe(200);
  expect(longestNormalised()).toBeGreaterThan(0);
  expect(texts.length).toBeGreaterThan(1_000);
  const wrong: string[] = [];
  for (const { name, send } of texts) {
    let shortest = Number.POSITIVE_INFINITY;
    for (let round = 0; round < ROUNDS_MAX && shortest > TURN_MAX_MS; round += 1) {
      const turnMs = await longestTurnMs(async () => {
        const { status } = await send();
        // The server may refuse a request with 16 KiB of headers, but not with a 5xx.
        if (!(status >= 200 && status < 500)) wrong.push(`${name}: ${status}`);
      });
      shortest = Math.min(shortest, turnMs);
    }
    if (shortest > TURN_MAX_MS) wrong.push(`${name}: ${shortest.toFixed(1)} ms`);
    const bytes = longestNormalised();
    if (bytes > NORMALISED_MAX) wrong.push(`${name}: ${bytes} bytes were normalised`);
  }
  expect(wrong).toEqual([]);
});
