import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { ACQUISITION, MARKETPLACE_ERRORS } from "../../src/marketplace/declared.ts";
import { errorsByCode } from "../../src/platform/api/errors.ts";
import { startProgram } from "../support/child-process.ts";
import { readSnippets } from "../support/document-snippets.ts";
import { hasProgram } from "../support/has-program.ts";
import { makeReferral, newPayment, newUser, offerBatch } from "../support/marketplace.ts";
import { useService } from "../support/use-service.ts";
import { signUser } from "../support/user-tokens.ts";

// Runs the calls of docs/marketplace.md like a reader.

const { api, db, partner, issuer } = useService({ users: true });
const GUIDE = "docs/marketplace.md";

it.runIf(hasProgram("curl"))(
  `the calls of ${GUIDE} buy one voucher with a payment, and claim another voucher`,
  async () => {
    const { listingId, vouchers } = await offerBatch(db, partner, 3);
    const { code: linkCode } = await makeReferral(db, partner);
    const token = await signUser(issuer, newUser());
    const snippets = readSnippets(GUIDE).filter(({ language }) => language === "bash");
    expect(snippets).toHaveLength(1);
    const env = { API: api.url, USER_TOKEN: token, LISTING: listingId, LINK: linkCode, PAYMENT: newPayment() };
    const { exitCode, stdout, stderr } = await startProgram("bash", ["-euc", snippets[0]?.code ?? ""], env).ended;
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
    const [first, second] = vouchers;
    const bought = { id: first?.id, code: first?.code, productKey: expect.any(String) };
    expect(
      stdout
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line)),
    ).toMatchObject([
      { id: listingId, canBuy: true },
      { voucher: bought, alreadyConfirmed: false, verifyUrl: expect.stringContaining(`/${first?.id}`) },
      { voucher: bought, alreadyConfirmed: true },
      { code: linkCode, canClaim: true },
      { voucher: { id: second?.id }, alreadyConfirmed: false },
    ]);
  },
);

it(`${GUIDE} has a row for each refusal of a claim or a purchase`, () => {
  const everywhere = ["overloaded", "unavailable"];
  const refusals = errorsByCode([...ACQUISITION, ...Object.values(MARKETPLACE_ERRORS), "invalid_token"]);
  const rows = readFileSync(GUIDE, "utf8").matchAll(/^\| (\d{3}) (`\w+`(?:, `\w+`)*) \|/gm);
  const told = Array.from(rows, ([, status, codes = ""]) =>
    (codes.match(/\w+/g) ?? []).map((code) => `${status} ${code}`),
  );
  const expected = [...refusals.values()].filter(({ code }) => !everywhere.includes(code));
  expect(told.flat().toSorted()).toEqual(expected.map(({ code, status }) => `${status} ${code}`).toSorted());
});
