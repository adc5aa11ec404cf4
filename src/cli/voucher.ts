import { readAddress } from "../config.ts";
import { INTEGER_MAX } from "../contract/fields.ts";
import type { FoundVouchers, VoucherHistory } from "../contract/voucher-history.ts";
import { withLastStart } from "../local/directory.ts";
import { findVouchers, type VoucherQuery } from "../services/admin/find-vouchers.ts";
import { readVoucher } from "../services/admin/read-voucher.ts";
import { readVoucherHistory } from "../services/admin/read-voucher-history.ts";
import { voidVoucher } from "../services/admin/void-voucher.ts";
import { action, type Noun } from "./command.ts";
import { confirmLoss, withYes } from "./confirm.ts";
import { UsageError } from "./exit-code.ts";
import { formatUsd, formatUtc, formatUtcWithZone, pluralize } from "./format.ts";
import { formatFields, formatTable, type TableRow } from "./layout.ts";
import { integer, name } from "./option-parsers.ts";
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
    action<FindOptions>(
      noun
        .command("find")
        .description("find vouchers in all organizations by code, ticket, id or reference")
        .option("--code <code>", "the code, in any spelling")
        .option("--ticket <ticket>", "the ticket of a reservation")
        .option("--id <id>", "the voucher's id")
        .option("--ref <reference>", "the partner's reference of its redemption")
        .option("--redeem-code <code>", "the redeem code that the customer got")
        .option("--batch <id>", "its batch, together with --serial")
        .option("--serial <n>", "its serial within --batch", integer(1, INTEGER_MAX))
        .option("--org <id>", "search one organization only"),
      ["voucher find --ref order-20261121-0007", "voucher find --batch bat_… --serial 1042"],
      async (ctx, options) => {
        const found = await findVouchers(ctx, queryOf(options), options.org ?? null);
        ctx.print(found, () => describeFound(found));
      },
    );
    action<{ org?: string; ref?: string }>(
      noun
        .command("history [code]")
        .description("show a voucher's complete history, by its id, its code, a ticket or --ref")
        .option("--ref <reference>", "the partner's reference of its redemption")
        .option("--org <id>", "the organization that owns it, if several have this code or reference"),
      ["voucher history vch_…", "voucher history --ref order-20261121-0007 --json"],
      async (ctx, { ref, org }, code) => {
        if ((code === undefined) === (ref === undefined)) throw new UsageError("Give an id, code or ticket, or --ref.");
        const query = ref === undefined ? (code ?? "") : { by: "externalRef" as const, value: ref };
        const config = readAddress(withLastStart(process.env));
        const history = await readVoucherHistory({ ...ctx, config }, query, org ?? null);
        ctx.print(history, () => describeHistory(history));
      },
    );
    action<{ org: string; reason?: string; yes?: true }>(
      withYes(noun.command("void <code>"))
        .description("void an active voucher permanently and end its reservation")
        .requiredOption("--org <id>", "the organization that owns it")
        .option("--reason <reason>", "why; kept in the voucher's sealed history", name),
      ['voucher void 7Q4K-9MZX-2HTB-W8RC --org org_… --reason "printed twice"'],
      async (ctx, options, code = "") => {
        await confirmLoss(ctx, options, `This permanently voids the voucher ${code}.`);
        const voided = await voidVoucher(ctx, options.org, code, options.reason ?? null);
        // Loaded on demand, because loading BullMQ is slow.
        const { announceVoid } = await import("./announce-void.ts");
        const announced = await announceVoid(ctx, voided);
        const late = announced ? "" : "\nThe workers will seal the event in its history later.";
        ctx.print({ id: voided.voucherId, status: "Voided" }, () => `Voucher ${voided.voucherId} is voided.${late}`);
      },
    );
  },
};

const STATUS_STYLE = { Active: "green", Redeemed: "cyan", Voided: "red", Expired: "yellow" } as const;

interface FindOptions {
  code?: string;
  ticket?: string;
  id?: string;
  ref?: string;
  redeemCode?: string;
  batch?: string;
  serial?: number;
  org?: string;
}

/** What each option searches by. */
const SEARCH_FIELDS = {
  code: "code",
  ticket: "ticket",
  id: "id",
  ref: "externalRef",
  redeemCode: "redeemCode",
} as const;

function queryOf(options: FindOptions): VoucherQuery {
  const { batch, serial } = options;
  const given = (Object.keys(SEARCH_FIELDS) as (keyof typeof SEARCH_FIELDS)[]).flatMap((option): VoucherQuery[] => {
    const value = options[option];
    return value === undefined ? [] : [{ by: SEARCH_FIELDS[option], value }];
  });
  if (batch !== undefined && serial !== undefined) given.push({ by: "serial", batchId: batch, serial });
  else if (batch !== undefined || serial !== undefined) throw new UsageError("--batch and --serial go together.");
  const [query] = given;
  if (query === undefined || given.length > 1) {
    throw new UsageError("Give one of --code, --ticket, --id, --ref, --redeem-code, or --batch with --serial.");
  }
  return query;
}

function describeFound({ items }: FoundVouchers): string {
  if (items.length === 0) return "No voucher was found.";
  return formatTable(
    ["VOUCHER", "STATUS", "SERIAL", "CODE"],
    items.map(
      ({ id, status, serial, code, externalRef, productName, brand, batchId, organizationId, sandbox }): TableRow => {
        const reference = externalRef === null ? "" : `for ${externalRef}; `;
        return {
          cells: [id, paint(STATUS_STYLE[status], status), String(serial), code],
          note: `${reference}${productName} of ${brand}, ${batchId}, ${organizationId}${sandbox ? ", a sandbox" : ""}`,
        };
      },
    ),
  );
}

function describeHistory({ voucher, events, reservations, redemption }: VoucherHistory): string {
  const keyOf = ({ keyId, keyLabel }: { keyId: string; keyLabel: string | null }) =>
    keyLabel === null ? keyId : `${keyId} (${keyLabel})`;
  const lines: (TableRow & { at: string })[] = [
    ...events.map((event) => ({
      at: event.occurredAt,
      cells: [event.eventType.replace("voucher.instance.", ""), event.sealStatus],
      note: describeEvent(event, redemption && { ...redemption, key: keyOf(redemption) }),
    })),
    ...reservations.flatMap((reservation) => [
      {
        at: reservation.startedAt,
        cells: ["reserved", ""],
        note: `${reservation.ticket} by ${keyOf(reservation)} until ${formatUtc(new Date(reservation.expiresAt))}`,
      },
      ...(reservation.endedAt === null || reservation.state === "Consumed"
        ? []
        : [
            {
              at: reservation.endedAt,
              cells: [`reservation ${reservation.state.toLowerCase()}`, ""],
              note: [reservation.ticket, reservation.endReason].filter(Boolean).join(": "),
            },
          ]),
    ]),
  ].sort((a, b) => a.at.localeCompare(b.at));
  const title = formatFields(
    `Voucher ${paint("bold", voucher.id)} is ${paint(STATUS_STYLE[voucher.status], voucher.status)}`,
    {
      Code: voucher.code,
      Product: `${voucher.productName} (${voucher.productKey}) of ${voucher.brand}`,
      Batch: `${voucher.batchId}, serial ${voucher.serial}`,
      Organization: `${voucher.organizationId}${voucher.sandbox ? ", a sandbox" : ""}`,
      "Valid until": formatUtcWithZone(new Date(voucher.validUntil)),
      Reference: voucher.externalRef,
      "Redeem code": voucher.redeemCode,
      Verify: voucher.verifyUrl,
    },
  );
  const table = formatTable(
    ["TIME (UTC)", "WHAT", "SEAL"],
    lines.map(({ at, cells, note }) => ({ cells: [formatUtc(new Date(at)), ...cells], ...(note && { note }) })),
  );
  return `${title}\n\n${table}`;
}

/** The part of an event that an operator needs besides its type. */
function describeEvent(
  { eventType, actorConnectedId, payload }: VoucherHistory["events"][number],
  redemption: { externalRef: string; key: string; ticket: string | null } | null,
): string {
  if (eventType === "voucher.instance.redeemed" && redemption !== null) {
    const { externalRef, key, ticket } = redemption;
    return `for ${externalRef} by ${key}${ticket === null ? "" : ` with ${ticket}`}`;
  }
  const { reason } = payload === null ? {} : JSON.parse(payload).data;
  return [actorConnectedId && `by ${actorConnectedId}`, reason].filter(Boolean).join(": ");
}

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
