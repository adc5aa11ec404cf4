import { beforeAll, expect, it } from "vitest";
import { OPS_TOKEN } from "../../support/browse.ts";
import { longestTurnMs } from "../../support/longest-turn.ts";
import { useService } from "../../support/use-service.ts";
import { type LongText, longTexts, makeSender } from "./long-texts.ts";

/** Maximum CPU time of a turn of the event loop. Milliseconds. */
const TURN_MAX_MS = 5;
/** How often a request is measured, because other work of the process, such as garbage collection, takes some turns. */
const ROUNDS_MAX = 12;

const service = useService({ apis: [{ OPS_TOKEN, OPS_WRITABLE: "true", ISSUER_API: "true" }], users: true });
let texts: LongText[];

beforeAll(async () => {
  texts = longTexts(await makeSender(service));
});

it("no long text in a path, query, field or header blocks the event loop for 5 ms", async () => {
  const slow: string[] = [];
  for (const { name, send } of texts) {
    let shortest = Number.POSITIVE_INFINITY;
    for (let round = 0; round < ROUNDS_MAX && shortest > TURN_MAX_MS; round += 1) {
      shortest = Math.min(shortest, await longestTurnMs(send));
    }
    if (shortest > TURN_MAX_MS) slow.push(`${name}: ${shortest.toFixed(1)} ms`);
  }
  expect(slow).toEqual([]);
});
