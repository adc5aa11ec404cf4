import { readVoucher } from "../services/admin/read-supply.ts";
import { voidVoucher } from "../services/admin/void-voucher.ts";
import { action, type Noun } from "./command.ts";
import { formatUsd, formatUtcWithZone, pluralize } from "./format.ts";
import { formatFields } from "./layout.ts";
import { name } from "./option-parsers.ts";
import { paint } from "./paint.ts";

export const voucher: Noun = {
  name: "voucher",
  description: "single vouchers",
  addVerbs(noun) {
    action<{ org: string }>(
      noun
        .command("show <code>")
        .description("show a voucher")
        .requiredOption("--org <id>", "the organization that owns it"),
      ["voucher show 7Q4K-9MZX-2HTB-W8RC --org org_…"],
      async (ctx, options, code = "") => {
        const found = await readVoucher(ctx, options.org, code);
        ctx.print(found, () => describeVoucher(found));
      },
    );
    action<{ org: string; reason?: string }>(
      noun
        .command("void <code>")
        .description("void an active voucher permanently and end its reservation")
        .requiredOption("--org <id>", "the organization that owns it")
        .option("--reason <reason>", "why; kept in the voucher's sealed history", name),
      ['voucher void 7Q4K-9MZX-2HTB-W8RC --org org_… --reason "printed twice"'],
      async (ctx, options, code = "") => {
        const voided = await voidVoucher(ctx, options.org, code, options.reason ?? null);
        // Loaded only here: loading BullMQ takes longer than running any command.
        const { announceVoid } = await import("./announce-void.ts");
        const announced = await announceVoid(ctx, voided);
        const late = announced ? "" : "\nThe workers will seal the event in its history later.";
        ctx.print({ id: voided.voucherId, status: "Voided" }, () => `Voucher ${voided.voucherId} is voided.${late}`);
      },
    );
  },
};

const STATUS_STYLE = { Active: "green", Redeemed: "cyan", Voided: "red", Expired: "yellow" } as const;

function describeVoucher({ voucher, reservation, sandbox }: Awaited<ReturnType<typeof readVoucher>>): string {
  const { status } = voucher;
  return formatFields(`Voucher ${paint("bold", voucher.id)} is ${paint(STATUS_STYLE[status], status)}`, {
    Sandbox: sandbox ? "for tests, has no value" : null,
    Product: `${voucher.productName} (${voucher.productKey}), ${voucher.type} of ${voucher.brand}`,
    Serial: String(voucher.serial),
    Price: `${formatUsd(voucher.priceUsd)}, list price ${formatUsd(voucher.retailPriceUsd)}`,
    Duration: voucher.benefitMonths === 0 ? null : pluralize(voucher.benefitMonths, "month"),
    "Usage unit": voucher.usageUnitLabel,
    "Valid until": formatUtcWithZone(voucher.validUntil),
    Redeemed: voucher.redeemedAt && formatUtcWithZone(voucher.redeemedAt),
    Reserved: reservation && `until ${formatUtcWithZone(reservation.expiresAt)} by ${reservation.keyId}`,
  });
}
