import { afterAll, expect, it } from "vitest";
import { erasePerson } from "../../src/acts/erase-person.ts";
import { voidById } from "../../src/acts/void-voucher.ts";
import { beginTlog, makeTlogFiles, openSequencer } from "../support/log-setup.ts";
import { issueVouchers, provisioning } from "../support/supply.ts";
import { useDatabase } from "../support/use-service.ts";
import { useVoucherctl } from "../support/voucherctl.ts";

const { servers, db, partner } = useDatabase();
const files = makeTlogFiles();
afterAll(() => files.remove());

const event = (set: string) => `UPDATE voucher_events SET ${set} WHERE voucher_id = $1 AND sequence = 3`;
const headBefore = `UPDATE vouchers AS v SET sealed_sequence = 2, sealed_hash = e.record_hash
  FROM voucher_events AS e WHERE v.id = $1 AND e.voucher_id = v.id AND e.sequence = 2`;
/** Changes a text in the third event's payload, and makes the new payload's hash the chain's last hash. */
const rewritten = (before: string, after: string) => {
  const text = `replace(payload, '${before}', '${after}')`;
  const head = `UPDATE vouchers AS v SET sealed_hash = e.record_hash
    FROM voucher_events AS e WHERE v.id = $1 AND e.voucher_id = v.id AND e.sequence = 3`;
  return [event(`payload = ${text}, record_hash = sha256(convert_to(${text}, 'UTF8'))`), head];
};
/** Makes the third event name these sequences as erased. */
const erasing = (sequences: string) => rewritten('"erasedSequences":[2]', `"erasedSequences":${sequences}`);
const NO_SEAL = "payload = NULL, record_hash = NULL, previous_hash = NULL, log_slot = NULL";

/** Where the verifier reports a chain as broken, and why. */
const LOST = { sequence: 2, problem: "no later event says that the payload was erased" };
const EARLY = { sequence: 3, problem: "it erases an event that is not an earlier one" };
const CHANGED = { sequence: 3, problem: "recordHash is not the hash of the payload" };

/** The database owner's changes of the event that erases event 2, and where each breaks the chain. */
const FALSE_ERASURES: Record<string, { sequence: number; problem: string; statements: string[] }> = {
  "there is none": {
    ...LOST,
    statements: [
      headBefore,
      "UPDATE vouchers SET last_sequence = 2 WHERE id = $1",
      "DELETE FROM voucher_events WHERE voucher_id = $1 AND sequence = 3",
    ],
  },
  "it names another event, and nothing says that the payload was erased": {
    ...LOST,
    statements: [
      "UPDATE voucher_events SET erased_by = NULL WHERE voucher_id = $1 AND sequence = 2",
      ...erasing("[1]"),
    ],
  },
  "it names another event": { ...LOST, statements: erasing("[1]") },
  "it is Pending": { ...LOST, statements: [event(`seal_status = 'Pending', data = '{}', ${NO_SEAL}`), headBefore] },
  "it has no payload": { ...LOST, statements: [event("payload = NULL, erased_by = 4")] },
  "it has another type": { ...LOST, statements: [event("event_type = 'voucher.instance.voided'")] },
  "its payload has another type": {
    ...LOST,
    statements: rewritten('"eventType":"voucher.instance.erased"', '"eventType":"voucher.instance.voided"'),
  },
  "it names itself": { ...EARLY, statements: erasing("[2,3]") },
  "it names a later event": { ...EARLY, statements: erasing("[2,4]") },
  "it names a text": { ...EARLY, statements: erasing('[2,"one"]') },
  "its payload was changed": {
    ...CHANGED,
    statements: [event(`payload = replace(payload, '"serial":', '"serial":1')`)],
  },
  "its payload is not JSON": { ...LOST, statements: [event("payload = '{'")] },
};

it("chain verify and log audit accept genuine erasures, and report each forged erasure", async () => {
  const voucherctl = useVoucherctl(servers);
  await beginTlog(db, files);
  const cases = Object.entries(FALSE_ERASURES);
  const vouchers = await issueVouchers(db, partner, cases.length + 1);
  for (const { id } of vouchers) {
    await voidById(provisioning(db), id, "a reason");
    await erasePerson(provisioning(db), { by: "voucher", voucherId: id }, null);
  }
  await openSequencer(servers, files).run();
  const count = vouchers.length;
  expect(await voucherctl.json("chain verify --all")).toMatchObject({ erased: count, broken: [] });
  expect(await voucherctl.json("log audit")).toMatchObject({ erased: count, problemCount: 0 });

  await db.query(`
    ALTER TABLE voucher_events DISABLE TRIGGER USER;
    ALTER TABLE voucher_events DROP CONSTRAINT voucher_events_hash_matches_payload;
    ALTER TABLE voucher_events DROP CONSTRAINT voucher_events_sealed_complete;
    ALTER TABLE voucher_events DROP CONSTRAINT voucher_events_erased;
    ALTER TABLE vouchers DISABLE TRIGGER USER`);
  for (const [index, [what, { statements }]] of cases.entries()) {
    for (const statement of statements) {
      expect((await db.query(statement, [vouchers[index]?.id])).rowCount, what).toBe(1);
    }
  }
  const run = async (command: string) => {
    const { exitCode, stdout } = await voucherctl.run(`${command} --json`);
    expect(exitCode).toBe(1);
    return JSON.parse(stdout);
  };
  const { broken } = await run("chain verify --all");
  const found = (voucherId: string | undefined) =>
    broken.find((one: { voucherId: string }) => one.voucherId === voucherId);
  for (const [index, [what, { sequence, problem }]] of cases.entries()) {
    expect(found(vouchers[index]?.id), what).toMatchObject({ sequence, problem });
  }
  expect(broken).toHaveLength(cases.length);
  const { problems } = await run("log audit");
  for (const [index, [what]] of cases.entries()) {
    // The audit may also report problems of the erasing event.
    const lost = `event 2 of ${vouchers[index]?.id} has no payload, and no later event says that it was erased`;
    expect(problems, what).toContain(lost);
  }
  expect(problems.filter((problem: string) => problem.includes(vouchers.at(-1)?.id ?? ""))).toEqual([]);
});
