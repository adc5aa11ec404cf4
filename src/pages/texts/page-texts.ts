import type { EventType } from "../../core/chain/chain.ts";
import type { Html } from "../html.ts";

/** An event type in words for the public. */
export interface EventWords {
  title: string;
  sentence: string;
  /** The state after the event, if the voucher is still unused. */
  outcome?: string;
}

/**
 * The texts of the pages for the portal, links and verification in one language. Sentences of errors are in
 * `src/platform/api/sentences`.
 */
export interface PageTexts {
  frame: {
    skip: string;
    site: string;
    guide: string;
    reference: string;
    version(version: string): string;
    sandbox: Html;
    from(product: Html | string, brand: Html | string): Html;
    months(months: number): string;
    more: string;
  };
  error: {
    headings: Record<400 | 401 | 403 | 404 | 429 | 503, string>;
    otherHeading: string;
    unknownVoucher: string;
    notLogged: string;
    looksAgain: string;
    checkAnother: string;
    report: string;
    start: string;
  };
  check: { title: string; lead: string; label: string; button: string; notAnId: string };
  link: {
    title(product: string, brand: string): string;
    description(product: string, brand: string): string;
    lead(brand: Html): Html;
    open: [badge: string, sentence: string];
    windowClosed: [badge: string, sentence: string];
    soldOut: [badge: string, sentence: string];
    now: string;
    worth: string;
    lasts: string;
    useBy: string;
    goOn(host: string): string;
    how: string;
    signIn(brand: Html): Html;
    enter: string;
    yours: string;
    onPhone: string;
    camera: string;
    forApp: string;
    claims(token: Html): Html;
    reference: string;
  };
  listings: {
    title: string;
    description: string;
    lead: string;
    none: string;
    insteadOf(price: string): string;
    lasting(months: string): string;
    referrersOnly: string;
    available(count: number, more: boolean, until: Html): Html;
    next: string;
  };
  events: Record<EventType, EventWords>;
  chain: {
    /** The sentence about an erased entry: the time of the erasing entry, or null, and the erasing entry's number. */
    erased(when: Html | null, by: number): Html;
    /** The sentence about an entry that was not erased, but whose payload is not the one that was sealed. */
    lost: string;
    title(id: string, sandbox: boolean): string;
    description: string;
    heading: string;
    voucher: string;
    noScript: string;
    happened: string;
    noneAfter(sequence: number): string;
    columns: { number: string; what: string; when: string; seal: string; leaf: string; hashes: string };
    sealed: string;
    pending: string;
    notSealedYet: string;
    notInLog: string;
    leafNumber(index: number): string;
    proof: string;
    ofEntry(sequence: number): string;
    hash: string;
    previousHash: string;
    excerpt(first: number, last: number): string;
    on(event: string, time: Html): Html;
    unsealed(count: number): string;
    lookAgain: string;
    checkpoint(leaves: number): string;
    allLogged(log: Html, checkpoint: Html): Html;
    someLogged(missing: readonly number[], log: Html, checkpoint: Html): Html;
    noneLogged(log: Html, checkpoint: Html): Html;
    serves(log: Html, checkpoint: Html): Html;
    continues(sequence: number): string;
    earlier: string;
    later: string;
    pages: string;
    payloadHeading: string;
    payloadAbout: string;
    payloadLabel: string;
    payloadButton: string;
    receiptHeading: string;
    receiptAbout: string;
    receiptFile: string;
    receiptFileAbout: string;
    meaning: string;
    links: string;
    hashes: string;
    tree: string;
    treeVerify: string;
    treeTool: string;
    preserved(time: Html): Html;
  };
  receipt: { label: string; policy: string; served: string; button: string };
  portal: {
    name: string;
    signIn: string;
    overview: string;
    redemptions: string;
    webhooks: string;
    sandbox: Html;
    find: string;
    findHelp: string;
    findButton: string;
    yourOrganization: string;
    upTo(time: Html): Html;
    utc: string;
    total(redemptions: number, count: string, value: string): string;
    today(day: string): string;
    yesterday(day: string): string;
    month(month: string): string;
    eachOfToday: string;
    eachOfYesterday: string;
    days(count: number): string;
    plot: string;
    perDay: string;
    highest(until: string, count: string): string;
    columns: {
      day: string;
      redemptions: string;
      sum: string;
      product: string;
      key: string;
      redeemed: string;
      reference: string;
      value: string;
      redeemCode: string;
      status: string;
      validUntil: string;
      order: string;
    };
    by(period: string, column: string): string;
    others(count: string): string;
    none: string;
    eachOfMonth: string;
    wholeMonth: string;
    ofMonth(month: string): string;
    inMonth: string;
    monthEnds(time: Html): Html;
    monthCsv: string;
    anotherMonth: string;
    monthBefore: string;
    monthAfter: string;
    ofDay(day: string): string;
    onDay: string;
    endsAt(time: Html): Html;
    csv: string;
    anotherDay: string;
    show: string;
    dayBefore: string;
    dayAfter: string;
    next: string;
    facts: { voucher: string; publicHistory: string; serial(serial: number): string };
    payload: string;
    entry(sequence: number): string;
    byActor: string;
    receipt: string;
    noReceipt: string;
    receiptAbout: string;
    download: string;
    noScript: string;
    otherTools: string;
    nothingFound: string;
    found: string;
    vouchersFound: string;
    noOrder: string;
    noReference: string;
    search: string;
    statuses: Record<"Active" | "Redeemed" | "Voided" | "Expired", string>;
    endpoints: string;
    endpointFacts: { state: string; enabled: string; disabled: string; failingSince: string };
    reasons: Record<"partner" | "operator" | "failing" | "gone", string>;
    lastDeliveries(name: string): string;
    deliveryColumns: { event: string; happened: string; state: string; attempts: string; lastAnswer: string };
  };
}
