import { expect, it } from "vitest";
import { parseCheckpoint } from "#tlog/checkpoint.ts";
import { findPublished } from "../../src/transparency/db/log-checkpoints.ts";
import { assertInvariants } from "../support/invariants.ts";
import { KeptNotes } from "../support/kept-notes.ts";
import { dieAt, naiveTreeRoot, startWitness } from "../support/log-setup.ts";
import { useLog } from "../support/use-log.ts";

const { servers, db, files, issue, begin, open, run } = useLog();

it("a sequencer killed at any statement loses and doubles no leaf, and signs no contradiction", async () => {
  await begin();
  await issue(300);
  const notes = new KeptNotes();
  let survived = 0;
  for (let statement = 1; survived < 2; statement++) {
    await issue(7);
    const { url } = await startWitness(servers, files, 0, { before: (note) => notes.keep(note) });
    files.setWitnesses([url]);
    const sequencer = open();
    const sent = await dieAt(sequencer.pool, statement);
    const report = await sequencer.run().catch(() => null);
    if (report !== null && sent() < statement) survived += 1;
    notes.keepAnchor(files.anchor);
    expect(await run()).toMatchObject({ refused: null });
    expect(await publishedRoot()).toBe(await naiveTreeRoot(db));
    await servers.closeOpened();
  }
  expect(notes.count).toBeGreaterThan(10);
  expect(await notes.findProblems(db)).toEqual([]);
  await assertInvariants(db);
});

async function publishedRoot(): Promise<string> {
  const root = parseCheckpoint((await findPublished(db))?.note ?? "")?.root ?? new Uint8Array();
  return Buffer.from(root).toString("hex");
}
