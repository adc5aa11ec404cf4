import type { Command } from "commander";
import { resolveVouchers } from "../db/vouchers.ts";
import { CODE_SYMBOLS, hasValidCheckSymbol, normaliseCode } from "../domain/codes.ts";
import { AppError } from "../domain/errors.ts";
import { statusAt } from "../domain/voucher.ts";
import { voucherNotFound } from "../services/resolve-voucher.ts";
import { voidVoucher } from "../services/void-voucher.ts";
import { action, name } from "./command.ts";

/** `voucher`: one voucher. */
export function addVoucherCommands(program: Command): void {
  const voucher = program.command("voucher").description("single vouchers");
  action<{ org: string }>(
    voucher
      .command("show <code>")
      .description("show a voucher")
      .requiredOption("--org <id>", "the organization that owns it"),
    async (ctx, options, code = "") => {
      const wanted = { organizationId: options.org, codeKey: normaliseCode(code), ticket: null, externalRef: null };
      const [found] = await resolveVouchers(ctx.pool, [wanted]);
      if (!found?.voucher) throw isMistyped(code) ? mistyped() : voucherNotFound();
      const status = statusAt(found.voucher, found.now);
      const { hold } = found;
      const reservation = hold && {
        ticket: hold.ticket,
        keyId: hold.keyId,
        startedAt: hold.startedAt,
        expiresAt: hold.expiresAt,
      };
      ctx.print(
        { voucher: { ...found.voucher, status }, reservation },
        [
          `Voucher ${found.voucher.id}: ${found.voucher.brand}, ${found.voucher.productName}, serial ${found.voucher.serial}`,
          `${status}, valid until ${found.voucher.validUntil.toISOString()}`,
          ...(found.voucher.redeemedAt === null ? [] : [`Redeemed at ${found.voucher.redeemedAt.toISOString()}`]),
          ...(hold === null ? [] : [`Held by key ${hold.keyId} until ${hold.expiresAt.toISOString()}`]),
        ].join("\n"),
      );
    },
  );
  action<{ org: string; reason?: string }>(
    voucher
      .command("void <code>")
      .description("void an active voucher for good, and end its reservation")
      .requiredOption("--org <id>", "the organization that owns it")
      .option("--reason <reason>", "why; kept in the voucher's sealed history", name),
    async (ctx, options, code = "") => {
      const voided = await voidVoucher(ctx, options.org, code, options.reason ?? null);
      // Loaded only here: the queue takes longer to load than any command takes.
      const { announceVoid } = await import("./announce-void.ts");
      await announceVoid(ctx, voided);
      ctx.print({ id: voided.voucherId, status: "Voided" }, `Voucher ${voided.voucherId} is voided.`);
    },
  );
}

/** Whether a code has the length of a generated one and a check symbol that does not fit. */
function isMistyped(code: string): boolean {
  return normaliseCode(code)?.length === CODE_SYMBOLS && !hasValidCheckSymbol(code);
}

function mistyped(): AppError {
  return new AppError(
    "voucher_not_found",
    "No voucher has this code. Its check symbol does not fit: it is probably mistyped.",
  );
}
