import { beforeAll, expect, it, onTestFinished, vi } from "vitest";
import { NORMALISED_MAX } from "../../../src/platform/text.ts";
import { OPS_TOKEN } from "../../support/browse.ts";
import { useService } from "../../support/use-service.ts";
import { type LongText, longTexts, makeSender } from "./long-texts.ts";

const service = useService({ apis: [{ OPS_TOKEN, OPS_WRITABLE: "true", ISSUER_API: "true" }], users: true });
let texts: LongText[];

beforeAll(async () => {
  texts = longTexts(await makeSender(service));
});

it("no route normalises a text, path, query or header that is longer than the longest reference", async () => {
  const { normalize } = String.prototype;
  let longest = 0;
  let calls = 0;
  const spy = vi.spyOn(String.prototype, "normalize").mockImplementation(function (this: string, form) {
    longest = Math.max(longest, Buffer.byteLength(this));
    calls += 1;
    return normalize.call(this, form);
  });
  onTestFinished(() => spy.mockRestore());
  expect((await service.till.lookUp((await service.issue()).code)).status).toBe(200);
  expect(calls).toBeGreaterThan(0);
  expect(texts.length).toBeGreaterThan(1_000);
  for (const { name, send } of texts) {
    longest = 0;
    const { status } = await send();
    expect({ name, status, longest }).toEqual({
      name,
      // The server may refuse a request with 16 KiB of headers as a whole. No request fails.
      status: expect.toSatisfy((one: number) => one >= 200 && one < 500),
      longest: expect.toSatisfy((one: number) => one <= NORMALISED_MAX),
    });
  }
});
