import { expect, it } from "vitest";
import { EVENT_TYPES } from "../../src/core/chain/chain.ts";
import { WEBHOOK_EVENT_TYPES } from "../../src/webhooks/api/webhooks.ts";
import { FanOut } from "../../src/webhooks/fan-out.ts";

it("each notification causes a new read of the webhook outbox, even during the end of a read", async () => {
  // Gives a run that finds nothing time to end, which takes fewer turns than these.
  for (let turns = 0; turns < 40; turns++) {
    let looks = 0;
    const ctx = {
      webhookReads: {
        run: async () => {
          looks += 1;
          return { more: false, due: [], locked: new Set() };
        },
      },
      webhookRequests: { tryAdd: async () => undefined },
    };
    const fanOut = new FanOut(ctx as unknown as ConstructorParameters<typeof FanOut>[0]);
    fanOut.nudge();
    for (let turn = 0; turn < turns; turn++) await undefined;
    const before = looks;
    fanOut.nudge();
    await new Promise(setImmediate);
    expect({ turns, looks }).toEqual({ turns, looks: before + 1 });
    await fanOut.close();
  }
});

it("a webhook endpoint can subscribe to each event type except issued and erased", () => {
  const sent: readonly string[] = WEBHOOK_EVENT_TYPES;
  const missing = EVENT_TYPES.filter((type) => !sent.includes(type) && !sent.includes(type.replace(".instance.", ".")));
  expect(missing).toEqual(["voucher.instance.issued", "voucher.instance.erased"]);
});
