import type { Command } from "commander";
import { resolveVouchers, type Voucher } from "../db/vouchers.ts";
import { CODE_SYMBOLS, hasValidCheckSymbol, normaliseCode } from "../domain/codes.ts";
import { AppError } from "../domain/errors.ts";
import type { Hold } from "../domain/hold.ts";
import { statusAt, type VoucherStatus } from "../domain/voucher.ts";
import { voucherNotFound } from "../services/resolve-voucher.ts";
import { voidVoucher } from "../services/void-voucher.ts";
import { action } from "./command.ts";
import { showDollars, showMomentUtc, showNumberOf } from "./figures.ts";
import { layFields } from "./layout.ts";
import { name } from "./option-parsers.ts";
import { paint } from "./paint.ts";

/** `voucher`: one voucher. */
export function addVoucherCommands(program: Command): void {
  const voucher = program.command("voucher").description("single vouchers");
  action<{ org: string }>(
    voucher
      .command("show <code>")
      .description("show a voucher")
      .requiredOption("--org <id>", "the organization that owns it"),
    ["voucher show 7Q4K-9MZX-2HTB-W8RC --org org_…"],
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
      const { voucher } = found;
      await ctx.print({ voucher: { ...voucher, status }, reservation }, () => describeVoucher(voucher, status, hold));
    },
  );
  action<{ org: string; reason?: string }>(
    voucher
      .command("void <code>")
      .description("void an active voucher for good, and end its reservation")
      .requiredOption("--org <id>", "the organization that owns it")
      .option("--reason <reason>", "why; kept in the voucher's sealed history", name),
    ['voucher void 7Q4K-9MZX-2HTB-W8RC --org org_… --reason "printed twice"'],
    async (ctx, options, code = "") => {
      const voided = await voidVoucher(ctx, options.org, code, options.reason ?? null);
      // Loaded only here: the queue takes longer to load than any command takes.
      const { announceVoid } = await import("./announce-void.ts");
      const announced = await announceVoid(ctx, voided);
      const late = announced ? "" : "\nThe entry in its history is sealed later, by the workers.";
      await ctx.print(
        { id: voided.voucherId, status: "Voided" },
        () => `Voucher ${voided.voucherId} is voided.${late}`,
      );
    },
  );
}

const STATUS_STYLE = { Active: "green", Redeemed: "cyan", Voided: "red", Expired: "yellow" } as const;

function describeVoucher(voucher: Voucher, status: VoucherStatus, hold: Hold | null): string {
  return layFields(`Voucher ${paint("bold", voucher.id)} is ${paint(STATUS_STYLE[status], status)}`, {
    Product: `${voucher.productName} (${voucher.productKey}), ${voucher.type} of ${voucher.brand}`,
    Serial: String(voucher.serial),
    Price: `${showDollars(voucher.priceUsd)}, list price ${showDollars(voucher.retailPriceUsd)}`,
    Term: voucher.benefitMonths === 0 ? null : showNumberOf(voucher.benefitMonths, "month"),
    "One use": voucher.usageUnitLabel,
    "Valid until": showMomentUtc(voucher.validUntil),
    Redeemed: voucher.redeemedAt && showMomentUtc(voucher.redeemedAt),
    Held: hold && `until ${showMomentUtc(hold.expiresAt)} by ${hold.keyId}`,
  });
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
