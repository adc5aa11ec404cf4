import { type Exchange, type History, refOf, type Violation } from "./history.ts";
import type { Records } from "./records.ts";
import { isConfirmed, openReport } from "./rules.ts";

/**
 * Checks issues and voids of batches, and ends of contracts. `voucher-register.ts` checks what a void does to each
 * voucher.
 */
export function checkIssuers(history: History, { batches, endedContracts }: Records): Violation[] {
  const { violations, report } = openReport();
  for (const [ref, issues] of Map.groupBy(
    history.of("issue"),
    ({ ask }) => `${ask.key.organizationId} ${ask.issueRef}`,
  )) {
    const confirmed = issues.filter(isConfirmed);
    const untrue = confirmed.filter(({ ask, body }) => {
      return body.count !== ask.count || body.otherBatch || batches.get(body.id)?.vouchers !== ask.count;
    });
    if (untrue.length > 0) report("an issued batch has its vouchers", ref, untrue);
    if (new Set(confirmed.map(({ body }) => body.id)).size > 1)
      report("a reference issues one batch", `${ref} issued several`, confirmed);
    const first = confirmed.filter(({ body }) => body.alreadyIssued === false);
    if (first.length > 1) report("an issue is new once", `${ref}: several answers call it new`, first);
    for (const repeat of confirmed.filter(({ body }) => body.alreadyIssued === true))
      if (
        !issues.some((other) => other !== repeat && other.invokedMs < repeat.returnedMs && other.failure !== "refused")
      )
        report("a repeated issue has a first one", `${ref}: no other call can have issued it`, [repeat]);
  }
  for (const codes of history.of("codes").filter(isConfirmed)) {
    const serials = codes.body.items.map(({ serial }: { serial: number }) => serial).join(" ");
    const wanted = Array.from({ length: codes.ask.count }, (_, at) => at + 1).join(" ");
    if (serials !== wanted) report("a batch shows all of its vouchers", `it shows the serials ${serials}`, [codes]);
  }
  const voids = Map.groupBy(history.of("voidBatch").filter(isConfirmed), ({ ask }) => ask.batch.id);
  for (const [id, ofBatch] of voids) {
    const sumOf = ({ body: { voided, alreadyFinal, remaining } }: Exchange) => voided + alreadyFinal + remaining;
    const wrong = ofBatch.filter((call) => sumOf(call) !== call.ask.batch.vouchers.length);
    if (wrong.length > 0) report("a void of a batch counts each voucher once", id, wrong);
    const told = ofBatch.reduce((sum, { body }) => sum + body.voided, 0);
    const voided = batches.get(id)?.voided ?? 0;
    if (told > voided) report("a voided voucher stays voided", `${id}: ${told} were told, ${voided} are`, ofBatch);
    const last = ofBatch.filter(({ body }) => body.remaining === 0);
    const active = batches.get(id)?.active ?? 0;
    if (last.length > 0 && active > 0) report("a voided batch has no Active voucher", `${id}: ${active} are`, last);
  }
  const ends = history.of("endContract").filter((end) => isConfirmed(end) || end.code === "wrong_status");
  for (const [id, ofContract] of Map.groupBy(ends, ({ ask }) => ask.contractId))
    if (!endedContracts.has(id)) report("an ended contract stays ended", id, ofContract);
  return violations;
}

/** Checks that lists show no erased reference. Other rules check that an erased reference keeps its redemption. */
export function checkErasures(history: History, records: Records): Violation[] {
  const { violations, report } = openReport();
  const lists = history.of("list").filter(isConfirmed);
  const erasures = history.of("erase");
  const begun = new Map(erasures.toReversed().map(({ ask, invokedMs }) => [refOf(ask), invokedMs]));
  /** The first confirmed erasure of each reference, if its redemption was confirmed before the erasure began. */
  const told = new Map<string, Exchange>();
  for (const erasure of erasures.filter(isConfirmed)) {
    const ref = refOf(erasure.ask);
    const wasRedeemed = history
      .of("redeem")
      .some((one) => one.status === 200 && one.returnedMs < erasure.invokedMs && refOf(one.ask) === ref);
    const wasOnOldFiles = history.setBacks.some(
      ({ fromMs, untilMs }) => fromMs < erasure.returnedMs && untilMs > erasure.invokedMs,
    );
    if (wasRedeemed && !wasOnOldFiles && !told.has(ref)) told.set(ref, erasure);
  }
  for (const list of lists) {
    for (const { externalRef, wasErased = false } of list.body.redemptions) {
      const ref = `${list.ask.key.organizationId} ${externalRef}`;
      const erasure = told.get(ref);
      if (!wasErased && erasure !== undefined && erasure.returnedMs < list.invokedMs)
        report("an erased reference is not shown again", ref, [erasure, list]);
      const isEarly = wasErased ? (begun.get(ref) ?? 0) > list.returnedMs : externalRef.startsWith("erased:");
      if (isEarly) report("a reference is shown erased only after its erasure began", ref, [list]);
    }
  }
  for (const [ref, erasure] of told)
    if (records.redemptionsByRef.get(ref)?.wasErased !== true)
      report("an erasure stays", `${ref}: the database has the reference, or no redemption under it`, [erasure]);
  return violations;
}
