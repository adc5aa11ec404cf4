import type { components } from "./api.ts";
import { type Call, OutcomeUnknown } from "./call.ts";

type Schemas = components["schemas"];

type Pages =
  | "Brands"
  | "Products"
  | "Batches"
  | "BatchVouchers"
  | "FoundVouchers"
  | "IssuedListings"
  | "Contracts"
  | "Links";
type Item<Page extends Pages> = Schemas[`${Page}Page`]["items"][number];

const of = (collection: string, id: string, part: string) => `${collection}/${encodeURIComponent(id)}/${part}`;

/** The calls of a back office. The key needs `voucher.issue`, and issuing needs a `timeoutMs` of a minute. */
export function issuerCalls(call: Call, patienceMs: number) {
  const get = <Answer>(path: string) => call<Answer>("GET", `/issuer/${path}`);
  const repeated = <Answer>(path: string, body: object = {}) => call<Answer>("POST", `/issuer/${path}`, body);
  /** Makes a call without repeating it, because a repeat would be refused or take effect again. */
  const once = <Answer>(path: string, body: object = {}) =>
    call<Answer>("POST", `/issuer/${path}`, body, { repeats: false });
  const batch = (id: string) => get<Schemas["Batch"]>(`batches/${encodeURIComponent(id)}`);
  async function* each<Item>(path: string, filters: Record<string, string> = {}): AsyncGenerator<Item> {
    let query: Record<string, string> = { ...filters, limit: "1000" };
    for (;;) {
      const { items, nextCursor } = await get<{ items: Item[]; nextCursor: string | null }>(
        `${path}?${new URLSearchParams(query)}`,
      );
      yield* items;
      if (nextCursor === null) return;
      query = { ...query, cursor: nextCursor };
    }
  }
  return {
    brands: () => each<Item<"Brands">>("brands"),
    products: (only: { brand?: string } = {}) => each<Item<"Products">>("products", only),
    batches: (only: { brand?: string; product?: string; issueRef?: string } = {}) =>
      each<Item<"Batches">>("batches", only),
    listings: (only: { product?: string; batch?: string } = {}) => each<Item<"IssuedListings">>("listings", only),
    contracts: (only: { brand?: string; user?: string; status?: string } = {}) =>
      each<Item<"Contracts">>("contracts", only),
    links: (only: { contract?: string; product?: string; user?: string } = {}) => each<Item<"Links">>("links", only),
    /** The voucher of the organization with this code, or null if there is none. */
    findVoucher: async (code: string): Promise<Item<"FoundVouchers"> | null> => {
      const { items } = await get<Schemas["FoundVouchersPage"]>(`vouchers?${new URLSearchParams({ code })}`);
      return items[0] ?? null;
    },
    /** A batch with the number of its vouchers in each status. */
    batch,
    /** The codes of a batch, in order of serials. */
    vouchers: (batchId: string) => each<Item<"BatchVouchers">>(of("batches", batchId, "vouchers")),
    createProduct: (brandId: string, product: Partial<Schemas["CreateProductRequest"]>) =>
      once<Schemas["CreateProductResult"]>(of("brands", brandId, "products"), product),
    /** Issues one batch under `issueRef`, even if repeated. `otherBatch` is set if that batch has other content. */
    issueBatch: (
      productId: string,
      batch: Partial<Schemas["IssueBatchRequest"]> & Pick<Schemas["IssueBatchRequest"], "issueRef">,
    ) => repeated<Schemas["IssueBatchResult"]>(of("products", productId, "batches"), batch),
    createListing: (batchId: string) => once<Schemas["CreateListingResult"]>(of("batches", batchId, "listings")),
    ...changesOf(repeated, batch, patienceMs),
    offerContract: (brandId: string, contract: { user: string; endsAt?: string | null }) =>
      once<Schemas["OfferContractResult"]>(of("brands", brandId, "contracts"), contract),
    acceptContract: (id: string) => once<Schemas["AcceptContractResult"]>(of("contracts", id, "accept")),
    declineContract: (id: string) => once<Schemas["DeclineContractResult"]>(of("contracts", id, "decline")),
    endContract: (id: string) => once<Schemas["EndContractResult"]>(of("contracts", id, "end")),
    createLink: (contractId: string, product: string) =>
      once<Schemas["CreateLinkResult"]>(of("contracts", contractId, "links"), { product }),
  };
}

/** Posts a body, and repeats the call until it gets a response. */
type Repeated = <Answer>(path: string, body?: object) => Promise<Answer>;

/** The result of a call that changes a part of a batch. */
type Portion<Done extends string> = Record<Done | "remaining", number> & { damaged?: number };

/** The calls that change brands and issued vouchers. */
function changesOf(repeated: Repeated, batch: (id: string) => Promise<Schemas["Batch"]>, patienceMs: number) {
  const inPortions = async <Done extends string>(batchId: string, verb: string, done: Done, body: object) => {
    let changed = 0;
    const { damaged } = await untilNoneRemains(
      async () => {
        const answer = await repeated<Portion<Done>>(of("batches", batchId, verb), body);
        changed += answer[done];
        return answer;
      },
      `of the batch ${batchId} are not ${done} yet`,
      patienceMs,
    );
    return { [done]: changed, ...(damaged !== undefined && { damaged }) } as Omit<Portion<Done>, "remaining">;
  };
  return {
    renameBrand: (id: string, name: string) =>
      repeated<Schemas["RenameBrandResult"]>(of("brands", id, "rename"), { name }),
    /** `logo` is a PNG, JPEG or WebP file in Base64. Fields that are left out stay unchanged. */
    changeBrand: (id: string, change: Partial<Schemas["ChangeBrandRequest"]>) =>
      repeated<Schemas["ChangeBrandResult"]>(of("brands", id, "change"), change),
    /** Gives a voucher a later end, even if it has expired. A repeat with the same end succeeds. */
    extendVoucher: (voucher: ({ code: string } | { id: string }) & { validUntil: string; reason?: string }) =>
      repeated<Schemas["ExtendedVoucher"]>("vouchers/extend", voucher),
    /**
     * Repeats the call until no voucher remains. Returns how many vouchers were extended, as far as responses have
     * arrived.
     * @throws OutcomeUnknown in the same case as `voidBatch`.
     */
    extendBatch: (batchId: string, validUntil: string, reason: string | null = null) =>
      inPortions(batchId, "extend", "extended", { validUntil, reason }),
    /** Suspends a voucher until it is resumed. A repeat succeeds. */
    suspendVoucher: (voucher: ({ code: string } | { id: string }) & { reason: string }) =>
      repeated<Schemas["SuspendedVoucher"]>("vouchers/suspend", voucher),
    /** Ends the suspension of a voucher. A repeat succeeds. */
    resumeVoucher: (voucher: ({ code: string } | { id: string }) & { reason?: string }) =>
      repeated<Schemas["ResumedVoucher"]>("vouchers/resume", voucher),
    /**
     * Suspends a batch. All its vouchers are suspended from the first response on. Repeats the call like `extendBatch`.
     */
    suspendBatch: (batchId: string, reason: string) => inPortions(batchId, "suspend", "suspended", { reason }),
    /** Resumes a batch, one voucher after another. Repeats the call like `extendBatch`. */
    resumeBatch: (batchId: string, reason: string | null = null) =>
      inPortions(batchId, "resume", "resumed", { reason }),
    voidVoucher: (voucher: ({ code: string } | { id: string }) & { reason?: string }) =>
      repeated<Schemas["VoidedVoucher"]>("vouchers/void", voucher),
    /**
     * Repeats the call until no voucher remains. Returns how many vouchers were voided meanwhile, including those that
     * other calls voided, and how many have another final status. The function reads these numbers from the batch,
     * because a response may be lost.
     * @throws OutcomeUnknown when some vouchers remain and none was voided for `patienceMs`, because other calls lock
     * them. Call again.
     */
    voidBatch: (batchId: string, reason: string | null = null) =>
      voidAll(
        () => batch(batchId),
        () => repeated<Schemas["VoidedBatch"]>(of("batches", batchId, "void"), { reason }),
        patienceMs,
      ),
  };
}

async function voidAll(
  read: () => Promise<Schemas["Batch"]>,
  voidSome: () => Promise<Schemas["VoidedBatch"]>,
  patienceMs: number,
): Promise<{ voided: number; alreadyFinal: number; damaged?: number }> {
  const before = await read();
  const { damaged = 0 } = await untilNoneRemains(voidSome, `of the batch ${before.id} are not voided yet`, patienceMs);
  const voided = (await read()).voided - before.voided;
  return { voided, alreadyFinal: before.count - voided - damaged, ...(damaged > 0 && { damaged }) };
}

/** Repeats a call that changes a part of a batch until no voucher remains. Returns the last response. */
async function untilNoneRemains<Answer extends { remaining: number }>(
  changeSome: () => Promise<Answer>,
  what: string,
  patienceMs: number,
): Promise<Answer> {
  let least = Number.POSITIVE_INFINITY;
  for (let giveUpAt = 0; ; ) {
    const answer = await changeSome();
    if (answer.remaining < least) giveUpAt = performance.now() + patienceMs;
    least = Math.min(least, answer.remaining);
    if (least === 0) return answer;
    if (performance.now() > giveUpAt) throw new OutcomeUnknown(`${answer.remaining} vouchers ${what}`);
  }
}
