import { createReadStream, rmSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Stage } from "./stage.ts";
import { type Partner, runVoucherctl } from "./voucherctl.ts";

const VALID_UNTIL = "2040-01-01T00:00:00Z";

/** A batch that was issued. */
export interface IssuedBatch {
  codes: string[];
  /** How long the command took. */
  seconds: number;
}

let batches = 0;

/**
 * Issues vouchers and brings the tables into the state in which Postgres would have them a little later.
 * @param keep how many codes to return at most, drawn evenly from the batch.
 */
export async function issueVouchers(
  stage: Pick<Stage, "ctl" | "db" | "directory">,
  partner: Partner,
  count: number,
  { keep = count, windows = [] }: { keep?: number; windows?: readonly string[] } = {},
): Promise<IssuedBatch> {
  batches += 1;
  const file = join(stage.directory, `batch-${batches}.csv`);
  const { seconds } = await runVoucherctl(
    stage.ctl,
    ...["batch", "issue", "--product", partner.productId, "--count", String(count)],
    ...["--valid-until", VALID_UNTIL, "--out", file, ...windows],
  );
  const every = Math.max(1, Math.floor(count / keep));
  const codes: string[] = [];
  let row = 0;
  for await (const line of createInterface({ input: createReadStream(file, "utf8") })) {
    if (row > 0 && row % every === 0) codes.push(line.split(",")[1] as string);
    row += 1;
  }
  rmSync(file);
  await stage.db.query("VACUUM (ANALYZE)");
  await stage.db.query("CHECKPOINT");
  return { codes, seconds };
}
