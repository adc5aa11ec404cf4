import { findVouchersEverywhere, readAnyVoucherHistory } from "../acts/across-organizations.ts";
import { readVoucher } from "../acts/read-voucher.ts";
import { readVoucherHistory } from "../acts/read-voucher-history.ts";
import { findVoucherId } from "../acts/void-voucher.ts";
import { extendVoucher } from "../acts/voucher/extend.ts";
import { resumeVoucher, suspendVoucher } from "../acts/voucher/suspend.ts";
import { voidVoucher } from "../acts/voucher/void.ts";
import { reasonIn } from "../core/chain/chain.ts";
import type { FoundVoucher, VoucherHistory } from "../core/look-up/api/voucher-history.ts";
import { findVouchers, type VoucherQuery } from "../core/look-up/find-vouchers.ts";
import type { VoucherStatus } from "../core/voucher/voucher.ts";
import { INTEGER_MAX } from "../platform/api/fields.ts";
import { readAddress } from "../platform/config.ts";
import { type CommandFace, verbOf } from "./act-verb.ts";
import { type Noun, verb } from "./command.ts";
import { UsageError } from "./exit-code.ts";
import {
  formatFields,
  formatTable,
  formatUsd,
  formatUtc,
  formatUtcWithZone,
  paint,
  pluralize,
  saySuspension,
  type TableRow,
} from "./format.ts";
import { integer, option, required } from "./options.ts";

const OWNER = required("<id>", "the organization that owns it");
const REF = option("<reference>", "the partner's reference of its redemption");

/** How a command line names a voucher of an organization. */
const BY_CODE: CommandFace<never> = {
  options: { org: OWNER },
  target: {
    // Users may also give an id. The audit trail omits arguments that are named `<code>`.
    argument: "<code>",
    find: (ctx, { org }, codeOrId) => findVoucherId(ctx, String(org), codeOrId),
  },
};

export const voucher: Noun = {
  name: "voucher",
  description: "single vouchers",
  verbs: {
    "show <code>": verb({
      description: "show a voucher",
      options: { org: OWNER },
      examples: ["7Q4K-9MZX-2HTB-W8RC --org org_…"],
      async run(ctx, { org }, code) {
        const found = await readVoucher(ctx, org, code);
        ctx.print(found, () => describeVoucher(found));
      },
    }),
    find: verb({
      description: "find vouchers in all organizations by code, ticket, id or reference",
      options: {
        code: option("<code>", "the code, in any spelling"),
        ticket: option("<ticket>", "the ticket of a reservation"),
        id: option("<id>", "the voucher's id"),
        ref: REF,
        redeemCode: option("<code>", "the redeem code that the customer got"),
        batch: option("<id>", "its batch, together with --serial"),
        serial: option("<n>", "its serial within --batch", integer(1, INTEGER_MAX)),
        org: option("<id>", "search one organization only"),
      },
      examples: ["--ref order-20261121-0007", "--batch bat_… --serial 1042"],
      async run(ctx, { org, batch, serial, ref: externalRef, code, ticket, id, redeemCode }) {
        const query = queryOf({ code, ticket, id, externalRef, redeemCode }, batch, serial);
        const items = await (org === undefined ? findVouchersEverywhere(ctx, query) : findVouchers(ctx, org, query));
        ctx.print({ items }, () => describeFound(items));
      },
    }),
    "history [code]": verb({
      description: "show a voucher's complete history, by its id, its code, a ticket or --ref",
      options: {
        ref: REF,
        org: option("<id>", "the organization that owns it, if several have this code or reference"),
      },
      examples: ["vch_…", "--ref order-20261121-0007 --json"],
      async run(ctx, { ref, org }, code?: string) {
        if ((code === undefined) === (ref === undefined)) throw new UsageError("Give an id, code or ticket, or --ref.");
        const query = ref === undefined ? (code ?? "") : { by: "externalRef" as const, value: ref };
        const config = readAddress(ctx.host.readEnvironment());
        const history = await (org === undefined
          ? readAnyVoucherHistory({ ...ctx, config }, query)
          : readVoucherHistory({ ...ctx, config }, org, query));
        ctx.print(history, () => describeHistory(history));
      },
    }),
    ...verbOf(extendVoucher, BY_CODE),
    ...verbOf(suspendVoucher, BY_CODE),
    ...verbOf(resumeVoucher, BY_CODE),
    ...verbOf(voidVoucher, BY_CODE),
  },
};

const STATUS_STYLE = {
  Active: "green",
  Redeemed: "cyan",
  Voided: "red",
  Expired: "yellow",
  Suspended: "yellow",
} as const satisfies Record<VoucherStatus, string>;

type SearchField = Exclude<VoucherQuery["by"], "serial">;

function queryOf(
  fields: Record<SearchField, string | undefined>,
  batchId: string | undefined,
  serial: number | undefined,
): VoucherQuery {
  const given = Object.entries(fields).flatMap(([by, value]): VoucherQuery[] =>
    value === undefined ? [] : [{ by: by as SearchField, value }],
  );
  if ((batchId === undefined) !== (serial === undefined)) throw new UsageError("--batch and --serial go together.");
  if (batchId !== undefined && serial !== undefined) given.push({ by: "serial", batchId, serial });
  const [query] = given;
  if (query === undefined || given.length > 1) {
    throw new UsageError("Give one of --code, --ticket, --id, --ref, --redeem-code, or --batch with --serial.");
  }
  return query;
}

function describeFound(items: readonly FoundVoucher[]): string {
  const rows = items.map(({ id, status, serial, code, externalRef, productName, brand, ...item }) => {
    const reference = externalRef === null ? "" : `for ${externalRef}; `;
    const batchAndOwner = `${item.batchId}, ${item.organizationId}${item.sandbox ? ", a sandbox" : ""}`;
    return {
      cells: [id, paint(STATUS_STYLE[status], status), String(serial), code],
      note: `${reference}${productName} of ${brand}, ${batchAndOwner}`,
    };
  });
  return formatTable(["VOUCHER", "STATUS", "SERIAL", "CODE"], rows, "No voucher was found.");
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
    ...reservations.flatMap((reservation) => {
      const { ticket, state, startedAt, endedAt, endReason } = reservation;
      const until = formatUtc(new Date(reservation.expiresAt));
      const opened = {
        at: startedAt,
        cells: ["reserved", ""],
        note: `${ticket} by ${keyOf(reservation)} until ${until}`,
      };
      if (endedAt === null || state === "Consumed") return [opened];
      const note = [ticket, endReason].filter(Boolean).join(": ");
      return [opened, { at: endedAt, cells: [`reservation ${state.toLowerCase()}`, ""], note }];
    }),
  ].sort((a, b) => a.at.localeCompare(b.at));
  const title = formatFields(
    `Voucher ${paint("bold", voucher.id)} is ${paint(STATUS_STYLE[voucher.status], voucher.status)}`,
    {
      Code: voucher.code,
      Product: `${voucher.productName} (${voucher.productKey}) of ${voucher.brand}`,
      Batch: `${voucher.batchId}, serial ${voucher.serial}`,
      Organization: `${voucher.organizationId}${voucher.sandbox ? ", a sandbox" : ""}`,
      "Valid until": formatUtcWithZone(new Date(voucher.validUntil)),
      Suspended: saySuspension(voucher),
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

/** What an operator needs to know about an event in addition to its type. */
function describeEvent(
  { eventType, actorConnectedId, payload }: VoucherHistory["events"][number],
  redemption: { externalRef: string; key: string; ticket: string | null } | null,
): string {
  if (eventType === "voucher.instance.redeemed" && redemption !== null) {
    const { externalRef, key, ticket } = redemption;
    return `for ${externalRef} by ${key}${ticket === null ? "" : ` with ${ticket}`}`;
  }
  return [actorConnectedId && `by ${actorConnectedId}`, reasonIn(payload)].filter(Boolean).join(": ");
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
