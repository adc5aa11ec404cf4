import { html } from "../html.ts";
import type { PageTexts } from "./page-texts.ts";

const UNUSED = "It has not been redeemed.";

export const EN: PageTexts = {
  frame: {
    skip: "Skip to content",
    site: "Site",
    guide: "Guide",
    reference: "API reference",
    version: (version) => `Partner Voucher API, version ${version}`,
    sandbox: html`<strong>Sandbox.</strong> This is a test voucher. It has no value.`,
    from: (product, brand) => html`${product} from ${brand}`,
    months: (months) => (months === 1 ? "1 month" : `${months} months`),
    more: "More",
  },
  error: {
    headings: {
      400: "Invalid address",
      401: "Please sign in",
      403: "Not allowed",
      404: "Page not found",
      429: "Too many requests",
      503: "Temporarily unavailable",
    },
    otherHeading: "Something went wrong",
    unknownVoucher: "Voucher not found",
    notLogged: "Not in the log yet",
    looksAgain: "This page looks again by itself.",
    checkAnother: "Check another voucher",
    report: "If you report this, include the request id:",
    start: "Go to the start page",
  },
  check: {
    title: "Check a voucher",
    lead:
      "See what happened to a voucher, and whether its history is intact. " +
      "Receipts usually have the link or the id.",
    label: "Verify link or voucher id",
    button: "Check",
    notAnId:
      "This is neither a verify link nor a voucher id. The id begins with vch_. A voucher's code cannot be " +
      "checked here: ask the shop.",
  },
  link: {
    title: (product, brand) => `${product} from ${brand}`,
    description: (product, brand) => `A free voucher for ${product} from ${brand}.`,
    lead: (brand) => html`A referrer of ${brand} shares this link with you. With it you get a voucher for free.`,
    open: ["Available", "Each person gets one voucher."],
    windowClosed: ["Not open", "This offer is not open at the moment. Come back later."],
    soldOut: ["None left", "No vouchers are left at the moment."],
    now: "Now",
    worth: "Worth",
    lasts: "Lasts",
    useBy: "Use it by",
    goOn: (host) => `Continue to ${host}`,
    how: "How to claim",
    signIn: (brand) => html`Sign in to the app or shop in which you collect vouchers of ${brand}.`,
    enter: "Open this link there, or enter its code:",
    yours: "The voucher is yours. If you claim again, you get the same one.",
    onPhone: "On your phone",
    camera: "Point your phone's camera at this code to open this page there.",
    forApp: "For the app",
    claims: (token) => html`The app claims with the token of its signed-in user in ${token}.`,
    reference: "The API reference describes the answer.",
  },
  listings: {
    title: "Marketplace",
    description: "Vouchers that can be bought.",
    lead: "Vouchers on offer. You buy them in the app or shop in which you collect vouchers.",
    none: "There are no listings here.",
    insteadOf: (price) => `instead of ${price}`,
    lasting: (months) => `for ${months}`,
    referrersOnly: "For referrers only",
    available: (count, more, until) => html`Available: ${more ? "more than " : ""}${count}. Use it by ${until}.`,
    next: "More vouchers",
  },
  events: {
    "voucher.instance.issued": { title: "Issued", sentence: "The voucher was created.", outcome: UNUSED },
    "voucher.instance.claimed": { title: "Claimed", sentence: "A user claimed the voucher.", outcome: UNUSED },
    "voucher.instance.bought": { title: "Bought", sentence: "A user bought the voucher.", outcome: UNUSED },
    "voucher.instance.redeemed": {
      title: "Redeemed",
      sentence: "The voucher was used at a checkout. It cannot be used again.",
    },
    "voucher.instance.voided": { title: "Cancelled", sentence: "The issuer cancelled the voucher. It cannot be used." },
    "voucher.instance.expired": { title: "Expired", sentence: "The voucher was not used before its end date." },
    "voucher.instance.erased": { title: "Erased", sentence: "The content of earlier entries was erased." },
  },
  chain: {
    erased: (when, by) =>
      when === null
        ? html`Erased by entry ${by}, the record's hash is kept.`
        : html`Erased on ${when}, the record's hash is kept.`,
    lost: "Its content is missing or was changed, and no later entry says that it was erased.",
    title: (id, sandbox) => `${sandbox ? "Sandbox: voucher" : "Voucher"} history ${id}`,
    description: "What happened to a voucher, entry by entry, and whether its history is intact.",
    heading: "Voucher history",
    voucher: "Voucher",
    noScript:
      "With JavaScript, this page checks the chain of hashes in your browser and shows your local time. Without " +
      "it, compare by eye: the previous hash of each entry must be the hash of the entry above it.",
    happened: "What happened",
    noneAfter: (sequence) => `There are no entries after number ${sequence}.`,
    columns: { number: "Number", what: "What happened", when: "When", seal: "Seal", leaf: "Leaf", hashes: "Hashes" },
    sealed: "Sealed",
    pending: "Pending",
    notSealedYet: "Not sealed yet",
    notInLog: "Not in the log yet",
    leafNumber: (index) => `Leaf ${index}`,
    proof: "Proof",
    ofEntry: (sequence) => `of entry ${sequence}`,
    hash: "Hash",
    previousHash: "Previous hash",
    excerpt: (first, last) => `Entries ${first} to ${last} of a longer history.`,
    on: (event, time) => html`${event} on ${time}.`,
    unsealed: (count) =>
      `${count === 1 ? "One entry is" : `${count} entries are`} not sealed yet. Sealing usually happens within ` +
      "seconds.",
    lookAgain: "Look again",
    checkpoint: (leaves) => `checkpoint of ${leaves} ${leaves === 1 ? "leaf" : "leaves"}`,
    allLogged: (log, checkpoint) => html`Every entry here is in the log ${log}, up to its ${checkpoint}.`,
    someLogged: (missing, log, checkpoint) =>
      html`${missing.length === 1 ? "Entry" : "Entries"} ${missing.join(", ")} \
${missing.length === 1 ? "is" : "are"} not yet in the log ${log}, up to its ${checkpoint}. \
It usually gets there within seconds.`,
    noneLogged: (log, checkpoint) =>
      html`No entry here is yet in the log ${log}, up to its ${checkpoint}. It usually gets there within seconds.`,
    serves: (log, checkpoint) => html`The log ${log} serves its ${checkpoint}.`,
    continues: (sequence) => `Continues from entry ${sequence}, which has the hash`,
    earlier: "Earlier entries",
    later: "Later entries",
    pages: "Pages of the history",
    payloadHeading: "Check a payload",
    payloadAbout:
      "A payload is the exact text of one entry, as the API returns it to the voucher's partner. Paste it to see " +
      "whether it is what was sealed. It stays on this page: nothing is sent.",
    payloadLabel: "Payload of one entry",
    payloadButton: "Hash and compare",
    receiptHeading: "Do you hold a receipt?",
    receiptAbout:
      "Paste a receipt of any voucher, or the proof of an entry above, to see what it proves. It stays on this " +
      "page: nothing is sent.",
    receiptFile: "The same as a file",
    receiptFileAbout: "works from your disk, without this service.",
    meaning: "What this page proves, and what it does not",
    links:
      "Each entry is sealed with a hash, a fingerprint of its content, and contains the hash of the previous " +
      "entry. Changing, removing or inserting an entry later breaks this chain of hashes.",
    hashes:
      "The hashes are SHA-256. They are public; the content of the entries is not, because it includes the " +
      "voucher's code. Anyone who has the text of an entry can hash it and compare it with the hash here. Anyone " +
      "who noted a hash earlier can check that it has not changed. This page cannot prove that no event was left " +
      "out before it was recorded.",
    tree:
      "The log is one tree over the entries of all vouchers, which others keep and compare. A receipt or a proof " +
      "shows that an entry is in it.",
    treeVerify: "Verify one here, or",
    treeTool: "with a tool of your own",
    preserved: (time) =>
      html`The text of each entry is preserved unchanged since ${time}. The same chain for programs:`,
  },
  receipt: {
    label: "Receipt",
    policy: "Policy: the log and the witnesses that you trust",
    served:
      "This is the policy that the service serves. Compare its keys with your contract, or paste your own copy: a " +
      "policy that comes with the proof proves nothing.",
    button: "Verify the receipt",
  },
  portal: {
    name: "Portal",
    signIn:
      "Enter an API key of your organization as the password; the user name can be anything. The key must be able " +
      "to look vouchers up, and must not be able to redeem them.",
    overview: "Overview",
    redemptions: "Redemptions",
    webhooks: "Webhooks",
    sandbox: html`<strong>Sandbox.</strong> These are test vouchers. They have no value.`,
    find: "Find an order",
    findHelp: "By your order reference, a voucher's code or a redeem code.",
    findButton: "Find",
    yourOrganization: "Your organization",
    upTo: (time) => html`Redemptions up to ${time}.`,
    utc: "Days and months are in UTC.",
    total: (redemptions, count, value) => `${count} ${redemptions === 1 ? "redemption" : "redemptions"}, ${value}`,
    today: (day) => `Today, ${day}`,
    yesterday: (day) => `Yesterday, ${day}`,
    month: (month) => `This month, ${month}`,
    eachOfToday: "Each of today",
    eachOfYesterday: "Each of yesterday",
    days: (count) => `${count} days`,
    plot: "Redemptions per day, with the numbers of the table",
    perDay: "Redemptions per day",
    highest: (until, count) => `Redemptions per day until ${until}. The highest bar is ${count}.`,
    columns: {
      day: "Day",
      redemptions: "Redemptions",
      sum: "Sum",
      product: "Product",
      key: "Key",
      redeemed: "Redeemed",
      reference: "Reference",
      value: "Value",
      redeemCode: "Redeem code",
      status: "Status",
      validUntil: "Valid until",
      order: "Order",
    },
    by: (period, column) => `${period}, by ${column.toLowerCase()}`,
    others: (count) => `${count} others`,
    none: "There are none.",
    ofDay: (day) => `Redemptions of ${day}`,
    onDay: "on this day in UTC.",
    endsAt: (time) => html`up to ${time}. The day ends at 00:00 UTC.`,
    csv: "The day as CSV",
    anotherDay: "Another day",
    show: "Show",
    dayBefore: "The day before",
    dayAfter: "The day after",
    eachOfMonth: "Each day of this month",
    wholeMonth: "The whole month",
    ofMonth: (month) => `Redemptions of ${month}`,
    inMonth: "in this month in UTC.",
    monthEnds: (time) => html`up to ${time}. The month is not over.`,
    monthCsv: "The month as CSV",
    anotherMonth: "Another month",
    monthBefore: "The month before",
    monthAfter: "The month after",
    next: "Later redemptions of this day",
    facts: { voucher: "Voucher", publicHistory: "Public history", serial: (serial) => `serial ${serial}` },
    payload: "Payload",
    entry: (sequence) => `Entry ${sequence}`,
    byActor: "by",
    receipt: "Receipt",
    noReceipt:
      "There is no receipt yet: the transparency log does not have this redemption. That usually takes seconds, " +
      "where the service has a log.",
    receiptAbout: "Proves the redemption without this service.",
    download: "Download the receipt",
    noScript: "Verifying it on this page needs JavaScript.",
    otherTools: "There are other tools",
    nothingFound: "Nothing found",
    found: "Found",
    vouchersFound: "Vouchers found",
    noOrder: "none",
    noReference: "No order of your organization has this reference, and no voucher of it has this code.",
    search: "Search",
    statuses: { Active: "Active", Redeemed: "Redeemed", Voided: "Voided", Expired: "Expired" },
    endpoints: "Webhook endpoints",
    endpointFacts: { state: "State", enabled: "Enabled", disabled: "Disabled.", failingSince: "Failing since" },
    reasons: {
      partner: "The partner disabled it.",
      operator: "An operator disabled it; only an operator can enable it.",
      gone: "It answered 410. The partner can enable it again.",
      failing: "It had nothing but failures for five days. The partner can enable it again.",
    },
    lastDeliveries: (name) => `Last deliveries to ${name}`,
    deliveryColumns: {
      event: "Event",
      happened: "Happened",
      state: "State",
      attempts: "Attempts",
      lastAnswer: "Last answer",
    },
  },
};
