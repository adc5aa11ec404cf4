import { expect } from "vitest";

/** Fields of an entity. */
export type State = Record<string, unknown>;

/** Matches a moment in JSON. */
export const MOMENT = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
/** Matches an id with this prefix. */
export const idOf = (prefix: string) => expect.stringMatching(new RegExp(`^${prefix}_[0-9a-z]{26}$`));
const SECRET = expect.stringMatching(/^pvk_[0-9A-HJKMNP-TV-Z]{47}$/);
const TOKEN = expect.stringMatching(/^pvo_[0-9A-HJKMNP-TV-Z]{47}$/);
const LOGO = expect.stringMatching(/^[0-9a-f]{32}\.png$/);
const DAY = "2099-12-31T23:59:59.999Z";
const CLOSE = "2099-06-30T00:00:00.000Z";

/**
 * A command that changes an entity. Names in braces stand for entities that the tests create. `{id}` is the changed
 * entity.
 */
export interface Change {
  line: string;
  /** The expected output. Absent: the new id for the first change, any text for later ones. */
  printed?: unknown;
  /** The arguments in the audit entry. Absent: the test checks only their names. */
  given?: State;
  /** Fields changed by something else since the previous command, with their values before this command. */
  from?: State;
  /** The changed fields with their new values. Null: the command changes nothing and writes no audit entry. */
  to: State | null;
  /** A statement to run first. */
  sql?: string;
}

/** For each type of entity, changes of one entity, in order. */
export const CHANGES: Record<string, Change[]> = {
  Organization: [
    {
      line: "org create --name '  Café Größenwahn '",
      given: { name: "Café Größenwahn" },
      to: { name: "Café Größenwahn", sandbox: false, timeZone: "UTC", createdAt: MOMENT },
    },
    {
      line: "org change {id} --time-zone europe/berlin",
      printed: { id: "{id}", timeZone: "Europe/Berlin" },
      given: { id: "{id}", timeZone: "Europe/Berlin" },
      to: { timeZone: "Europe/Berlin" },
    },
  ],
  Brand: [
    {
      line: "brand create --org {org} --name Second",
      to: { organizationId: "{org}", name: "Second", colour: null, logo: null, createdAt: MOMENT },
    },
    {
      line: "brand rename {id} --name Third",
      printed: { id: "{id}", name: "Third" },
      given: { id: "{id}", name: "Third" },
      to: { name: "Third" },
    },
    {
      line: "brand change {id} --logo docs/images/portal.png --colour '#0A7F5A'",
      printed: { id: "{id}", colour: "#0a7f5a", logo: LOGO },
      given: { id: "{id}", colour: "#0a7f5a", logo: LOGO },
      to: { colour: "#0a7f5a", logo: LOGO },
    },
    {
      line: "brand change {id} --remove-logo --colour none",
      printed: { id: "{id}", colour: null, logo: null },
      given: { id: "{id}", removeLogo: true, colour: "none" },
      to: { colour: null, logo: null },
    },
  ],
  Product: [
    {
      line: [
        "product create --brand {brand} --key day --name 'Day pass' --type Service",
        "--retail-price-usd 9999999999.99 --price-usd 0.01 --benefit-months 12 --usage-unit-label entry",
      ].join(" "),
      to: {
        brandId: "{brand}",
        key: "day",
        name: "Day pass",
        type: "Service",
        retailPriceUsd: 9999999999.99,
        priceUsd: 0.01,
        benefitMonths: 12,
        usageUnitLabel: "entry",
        createdAt: MOMENT,
      },
    },
  ],
  ApiKey: [
    {
      line: "key create --org {org} --scope voucher.read --allow-ip 192.0.2.0/24 --expires 2099-12-31 --label 'till 1'",
      printed: { id: idOf("key"), key: SECRET },
      given: { org: "{org}", scope: ["voucher.read"], allowIp: ["192.0.2.0/24"], expires: DAY, label: "till 1" },
      to: {
        organizationId: "{org}",
        label: "till 1",
        scopes: ["voucher.read"],
        allowIps: ["192.0.2.0/24"],
        createdAt: MOMENT,
        expiresAt: DAY,
        revokedAt: null,
        maxPerDay: null,
        maxAmountPerDayUsd: null,
        secretsExpireAt: [null],
      },
    },
    {
      line: "key rotate {id} --grace 2h",
      printed: { id: "{id}", key: SECRET, oldSecretsUntil: MOMENT },
      given: { id: "{id}", grace: 7_200_000 },
      to: { secretsExpireAt: [MOMENT, null] },
    },
    {
      line: "key change {id} --max-per-day 200 --max-amount-per-day 5000",
      printed: { id: "{id}", maxPerDay: 200, maxAmountPerDayUsd: 5000 },
      given: { id: "{id}", maxPerDay: 200, maxAmountPerDay: 5000 },
      to: { maxPerDay: 200, maxAmountPerDayUsd: 5000 },
    },
    {
      line: "key change {id} --max-per-day none",
      printed: { id: "{id}", maxPerDay: null, maxAmountPerDayUsd: 5000 },
      given: { id: "{id}", maxPerDay: "none" },
      to: { maxPerDay: null },
    },
    { line: "key revoke {id}", printed: { id: "{id}", revoked: true }, to: { revokedAt: MOMENT } },
    { line: "key revoke {id}", printed: { id: "{id}", revoked: true }, to: null },
  ],
  Operator: [
    {
      line: "operator create --name 'Zoë Ötzi' --role operator --expires 2099-12-31",
      printed: { id: idOf("opr"), token: TOKEN },
      given: { name: "Zoë Ötzi", role: "operator", expires: DAY },
      to: { name: "Zoë Ötzi", role: "operator", expiresAt: DAY, revokedAt: null, tokensExpireAt: [null] },
    },
    {
      line: "operator rotate {id} --grace 1h",
      printed: { id: "{id}", token: TOKEN, oldTokensUntil: MOMENT },
      to: { tokensExpireAt: [MOMENT, null] },
    },
    { line: "operator revoke {id}", printed: { id: "{id}", revoked: true }, to: { revokedAt: MOMENT } },
    { line: "operator revoke {id}", printed: { id: "{id}", revoked: true }, to: null },
  ],
  WebhookEndpoint: [
    {
      line: "webhook create --org {org} --url https://shop.example.com/ --event-type reservation.expired",
      printed: expect.objectContaining({ id: idOf("whk"), secret: expect.stringMatching(/^whsec_/) }),
      to: {
        organizationId: "{org}",
        url: "https://shop.example.com/",
        description: "",
        enabled: true,
        eventTypes: ["reservation.expired"],
        disabledReason: null,
        disabledAt: null,
        createdAt: MOMENT,
        secretVersion: 1,
        previousSecretUntil: null,
      },
    },
    { line: "webhook rotate {id}", to: { secretVersion: 2, previousSecretUntil: MOMENT } },
    { line: "webhook disable {id}", to: { enabled: false, disabledReason: "operator", disabledAt: MOMENT } },
    { line: "webhook enable {id}", to: { enabled: true, disabledReason: null, disabledAt: null } },
    {
      line: "webhook replay {id} --event-id vch_x-2",
      from: { replayed: 0 },
      to: { replayed: 1 },
      sql: `INSERT INTO webhook_deliveries
              (endpoint_id, event_id, voucher_id, sequence, event_type, position, state, created_at, finished_at)
            VALUES ('{id}', 'vch_x-2', 'vch_x', 2, 'voucher.instance.voided', 1, 'Delivered', now(), now())`,
    },
  ],
  Batch: [
    {
      line: [
        "batch issue --product {product} --count 3 --valid-until 2099-12-31",
        "--claim --buy --closes-at 2099-06-30T02:00:00+02:00",
      ].join(" "),
      printed: { id: idOf("bat"), count: 3, firstSerial: 1, lastSerial: 3 },
      given: {
        product: "{product}",
        count: 3,
        validUntil: DAY,
        audience: "OpenToAll",
        claim: true,
        buy: true,
        closesAt: CLOSE,
      },
      to: {
        productId: "{product}",
        audience: "OpenToAll",
        voucherCount: 3,
        validUntil: DAY,
        createdAt: MOMENT,
        retailPriceUsd: 50,
        priceUsd: 40.25,
        benefitMonths: 6,
        usageUnitLabel: "visit",
        suspendedAt: null,
        windows: ["buy", "claim"],
        windowsOpenAt: [null, null],
        windowsCloseAt: [CLOSE, CLOSE],
      },
    },
    {
      line: "batch void {id} --reason 'printed twice'",
      printed: { voided: 3, alreadyFinal: 0 },
      from: { vouchersVoided: 0 },
      to: { vouchersVoided: 3 },
    },
  ],
  VoucherInstance: [
    {
      line: "voucher extend {code} --org {org} --valid-until 2099-12-31 --reason 'she was ill'",
      printed: { id: "{voucher}", validUntil: DAY, extended: true },
      given: { org: "{org}", validUntil: DAY, reason: "she was ill" },
      from: {
        organizationId: "{org}",
        batchId: "{batch}",
        serial: 1,
        redeemedAt: null,
        status: "Active",
        lastSequence: 1,
        validUntil: MOMENT,
      },
      to: { lastSequence: 2, validUntil: DAY },
    },
    {
      line: "voucher suspend {code} --org {org} --reason 'stolen'",
      printed: { id: "{voucher}", suspended: true },
      given: { org: "{org}", reason: "stolen" },
      to: { lastSequence: 3 },
    },
    {
      line: "voucher resume {code} --org {org}",
      printed: { id: "{voucher}", suspended: false },
      given: { org: "{org}" },
      to: { lastSequence: 4 },
    },
    {
      line: "voucher void {code} --org {org} --reason 'printed twice'",
      printed: { id: "{voucher}", status: "Voided" },
      given: { org: "{org}", reason: "printed twice" },
      to: { status: "Voided", lastSequence: 5 },
    },
  ],
  Member: ["employee", "owner", null].map((role) => ({
    line: `member add --org {org} --user {user} --role ${role ?? "owner"}`,
    printed: { organizationId: "{org}", user: "{user}", role: role ?? "owner" },
    to: role === null ? null : { role, createdAt: MOMENT },
  })),
  ReferrerContract: [
    {
      line: "contract offer --brand {brand} --user {user} --ends-at 2099-06-30T02:00:00+02:00",
      given: { brand: "{brand}", user: "{user}", endsAt: CLOSE },
      to: {
        brandId: "{brand}",
        userId: "{user}",
        status: "Offered",
        endsAt: CLOSE,
        offeredAt: MOMENT,
        changedAt: MOMENT,
      },
    },
    { line: "contract accept {id}", printed: { id: "{id}", status: "Active" }, to: { status: "Active" } },
    { line: "contract end {id}", printed: { id: "{id}", status: "Ended" }, to: { status: "Ended" } },
  ],
  "ReferrerContract declined": [
    {
      line: "contract decline {offered}",
      printed: { id: "{offered}", status: "Declined" },
      from: {
        brandId: "{brand}",
        userId: "{offeree}",
        status: "Offered",
        endsAt: null,
        offeredAt: MOMENT,
        changedAt: MOMENT,
      },
      to: { status: "Declined" },
    },
  ],
  ReferralLink: [
    {
      line: "link create --contract {contract} --product {product}",
      printed: {
        code: expect.stringMatching(/^[0-9a-hjkmnp-tv-z]{12}$/),
        url: expect.stringMatching(/^http.*\/r\/\w{12}$/),
      },
      to: { contractId: "{contract}", productId: "{product}", brandId: "{brand}", createdAt: MOMENT },
    },
  ],
  Listing: [{ line: "listing create --batch {batch}", to: { batchId: "{batch}", createdAt: MOMENT } }],
  "Deployment trusted": [
    {
      line: "db trust-clock",
      from: {
        id: "{deployment}",
        systemIdentifier: "{system}",
        databaseOid: "{oid}",
        closedUntil: MOMENT,
        trustedAt: null,
      },
      to: { trustedAt: MOMENT },
    },
  ],
  "Deployment adopted": [
    {
      line: "db adopt",
      from: { id: "{deployment}", systemIdentifier: "{system}", databaseOid: "{oid}" },
      to: { id: expect.stringMatching(/^[0-9a-f]{12}$/) },
    },
  ],
};

/** The ids of entities that exist before their first change. */
export const IDS: Record<string, string> = {
  Member: "{org}/{user}",
  VoucherInstance: "{voucher}",
  "ReferrerContract declined": "{offered}",
  "Deployment trusted": "{deployment}",
  "Deployment adopted": "{deployment}",
};
