import { html } from "../html.ts";
import type { PageTexts } from "./page-texts.ts";

const UNUSED = "De voucher is niet ingewisseld.";

export const NL: PageTexts = {
  frame: {
    skip: "Naar de inhoud",
    site: "Site",
    guide: "Handleiding (Engels)",
    reference: "API-referentie (Engels)",
    version: (version) => `Partner Voucher API, versie ${version}`,
    sandbox: html`<strong>Sandbox.</strong> Dit is een testvoucher. Die heeft geen waarde.`,
    from: (product, brand) => html`${product} van ${brand}`,
    months: (months) => (months === 1 ? "1 maand" : `${months} maanden`),
    more: "Meer",
  },
  error: {
    headings: {
      400: "Ongeldig adres",
      401: "Meld u aan",
      403: "Niet toegestaan",
      404: "Pagina niet gevonden",
      429: "Te veel aanvragen",
      503: "Tijdelijk niet beschikbaar",
    },
    otherHeading: "Er is iets misgegaan",
    unknownVoucher: "Voucher niet gevonden",
    notLogged: "Nog niet in het logboek",
    looksAgain: "Deze pagina kijkt vanzelf opnieuw.",
    checkAnother: "Een andere voucher controleren",
    report: "Vermeld het nummer van de aanvraag als u dit meldt:",
    start: "Naar de startpagina",
  },
  check: {
    title: "Een voucher controleren",
    lead:
      "Zie wat er met een voucher is gebeurd en of de geschiedenis ongeschonden is. De link of het kenmerk staat " +
      "meestal op de kassabon.",
    label: "Verificatielink of kenmerk van de voucher",
    button: "Controleren",
    notAnId:
      "Dit is geen verificatielink en geen kenmerk van een voucher. Het kenmerk begint met vch_. De code van een " +
      "voucher kan hier niet worden gecontroleerd: vraag het in de winkel.",
  },
  link: {
    title: (product, brand) => `${product} van ${brand}`,
    description: (product, brand) => `Een gratis voucher voor ${product} van ${brand}.`,
    lead: (brand) => html`Een aanbeveler van ${brand} deelt deze link met u. Daarmee krijgt u gratis een voucher.`,
    open: ["Beschikbaar", "Iedere persoon krijgt één voucher."],
    windowClosed: ["Niet open", "Dit aanbod is op dit moment niet open. Kom later terug."],
    soldOut: ["Op", "Er zijn op dit moment geen vouchers meer."],
    now: "Nu",
    worth: "Waarde",
    lasts: "Duur",
    useBy: "Te gebruiken tot",
    goOn: (host) => `Verder naar ${host}`,
    how: "Zo krijgt u de voucher",
    signIn: (brand) => html`Meld u aan bij de app of winkel waarin u vouchers van ${brand} verzamelt.`,
    enter: "Open deze link daar, of voer de code van de link in:",
    yours: "De voucher is van u. Als u die nog eens ophaalt, krijgt u dezelfde.",
    onPhone: "Op uw telefoon",
    camera: "Richt de camera van uw telefoon op deze code om deze pagina daar te openen.",
    forApp: "Voor de app",
    claims: (token) => html`De app haalt de voucher op met het token van de aangemelde gebruiker in ${token}.`,
    reference: "De API-referentie beschrijft het antwoord.",
  },
  listings: {
    title: "Marktplaats",
    description: "Vouchers die te koop zijn.",
    lead: "Vouchers in de aanbieding. U koopt ze in de app of winkel waarin u vouchers verzamelt.",
    none: "Hier is geen aanbod.",
    insteadOf: (price) => `in plaats van ${price}`,
    lasting: (months) => `voor ${months}`,
    referrersOnly: "Alleen voor aanbevelers",
    available: (count, more, until) =>
      html`Beschikbaar: ${more ? "meer dan " : ""}${count}. Te gebruiken tot ${until}.`,
    next: "Meer vouchers",
  },
  events: {
    "voucher.instance.issued": { title: "Uitgegeven", sentence: "De voucher is aangemaakt.", outcome: UNUSED },
    "voucher.instance.claimed": {
      title: "Opgehaald",
      sentence: "Een gebruiker heeft de voucher opgehaald.",
      outcome: UNUSED,
    },
    "voucher.instance.bought": {
      title: "Gekocht",
      sentence: "Een gebruiker heeft de voucher gekocht.",
      outcome: UNUSED,
    },
    "voucher.instance.redeemed": {
      title: "Ingewisseld",
      sentence: "De voucher is bij een aankoop gebruikt. Die kan niet opnieuw worden gebruikt.",
    },
    "voucher.instance.voided": {
      title: "Geannuleerd",
      sentence: "De uitgever heeft de voucher geannuleerd. Die kan niet worden gebruikt.",
    },
    "voucher.instance.expired": {
      title: "Verlopen",
      sentence: "De voucher is niet vóór de einddatum gebruikt.",
    },
    "voucher.instance.erased": { title: "Gewist", sentence: "De inhoud van eerdere vermeldingen is gewist." },
  },
  chain: {
    erased: (when, by) =>
      when === null
        ? html`Gewist door vermelding ${by}, de hash blijft bewaard.`
        : html`Gewist op ${when}, de hash van de vermelding blijft bewaard.`,
    lost: "De inhoud ontbreekt of is gewijzigd, en geen latere vermelding zegt dat die is gewist.",
    title: (id, sandbox) => `${sandbox ? "Sandbox: geschiedenis" : "Geschiedenis"} van voucher ${id}`,
    description: "Wat er met een voucher is gebeurd, stap voor stap, en of de geschiedenis ongeschonden is.",
    heading: "Geschiedenis van de voucher",
    voucher: "Voucher",
    noScript:
      "Met JavaScript controleert deze pagina de keten van hashes in uw browser en toont die uw lokale tijd. " +
      "Zonder JavaScript vergelijkt u zelf: de vorige hash van elke vermelding moet de hash van de vermelding " +
      "erboven zijn.",
    happened: "Wat er is gebeurd",
    noneAfter: (sequence) => `Na nummer ${sequence} zijn er geen vermeldingen.`,
    columns: {
      number: "Nummer",
      what: "Wat er is gebeurd",
      when: "Wanneer",
      seal: "Zegel",
      leaf: "Blad",
      hashes: "Hashes",
    },
    sealed: "Verzegeld",
    pending: "In afwachting",
    notSealedYet: "Nog niet verzegeld",
    notInLog: "Nog niet in het logboek",
    leafNumber: (index) => `Blad ${index}`,
    proof: "Bewijs",
    ofEntry: (sequence) => `van vermelding ${sequence}`,
    hash: "Hash",
    previousHash: "Vorige hash",
    excerpt: (first, last) => `Vermeldingen ${first} tot en met ${last} van een langere geschiedenis.`,
    on: (event, time) => html`${event} op ${time}.`,
    unsealed: (count) =>
      `${count === 1 ? "Eén vermelding is" : `${count} vermeldingen zijn`} nog niet verzegeld. Dat duurt meestal ` +
      "maar enkele seconden.",
    lookAgain: "Opnieuw kijken",
    checkpoint: (leaves) => `controlepunt met ${leaves} ${leaves === 1 ? "blad" : "bladeren"}`,
    allLogged: (log, checkpoint) =>
      html`Elke vermelding hier staat in het logboek ${log}, tot en met het ${checkpoint}.`,
    someLogged: (missing, log, checkpoint) =>
      html`${missing.length === 1 ? "Vermelding" : "Vermeldingen"} ${missing.join(", ")} \
${missing.length === 1 ? "staat" : "staan"} nog niet in het logboek ${log}, tot en met het ${checkpoint}. \
Dat duurt meestal maar enkele seconden.`,
    noneLogged: (log, checkpoint) =>
      html`Nog geen vermelding hier staat in het logboek ${log}, tot en met het ${checkpoint}. Dat duurt meestal maar \
enkele seconden.`,
    serves: (log, checkpoint) => html`Het logboek ${log} publiceert een ${checkpoint}.`,
    continues: (sequence) => `Vervolg op vermelding ${sequence}, met de hash`,
    earlier: "Eerdere vermeldingen",
    later: "Latere vermeldingen",
    pages: "Pagina's van de geschiedenis",
    payloadHeading: "De tekst van een vermelding controleren",
    payloadAbout:
      "De payload is de precieze tekst van een vermelding, zoals de API die aan de partner van de voucher geeft. " +
      "Plak die hier om te zien of precies die is verzegeld. De tekst blijft op deze pagina: er wordt niets " +
      "verstuurd.",
    payloadLabel: "Payload van een vermelding",
    payloadButton: "Hash berekenen en vergelijken",
    receiptHeading: "Hebt u een ontvangstbewijs?",
    receiptAbout:
      "Plak het ontvangstbewijs van een voucher, of het bewijs van een vermelding hierboven, om te zien wat het " +
      "bewijst. Het blijft op deze pagina: er wordt niets verstuurd.",
    receiptFile: "Hetzelfde als bestand",
    receiptFileAbout: "werkt vanaf uw schijf, zonder deze dienst.",
    meaning: "Wat deze pagina bewijst, en wat niet",
    links:
      "Elke vermelding is verzegeld met een hash, een vingerafdruk van de inhoud, en bevat de hash van de vorige " +
      "vermelding. Als later een vermelding wordt gewijzigd, verwijderd of ingevoegd, breekt deze keten van " +
      "hashes.",
    hashes:
      "De hashes zijn SHA-256. Ze zijn openbaar; de inhoud van de vermeldingen niet, want die bevat de code van " +
      "de voucher. Wie de tekst van een vermelding heeft, kan de hash ervan berekenen en met de hash hier " +
      "vergelijken. Wie eerder een hash heeft genoteerd, kan controleren dat die niet is veranderd. Deze pagina " +
      "kan niet bewijzen dat er geen gebeurtenis is weggelaten voordat die werd vastgelegd.",
    tree:
      "Het logboek is één boom van de vermeldingen van alle vouchers, die anderen bewaren en vergelijken. Een " +
      "ontvangstbewijs of een bewijs laat zien dat een vermelding erin staat.",
    treeVerify: "Controleer het hier, of",
    treeTool: "met een eigen hulpmiddel",
    preserved: (time) =>
      html`De tekst van elke vermelding is sinds ${time} ongewijzigd bewaard. Dezelfde keten voor programma's:`,
  },
  receipt: {
    label: "Ontvangstbewijs",
    policy: "Beleid: het logboek en de getuigen die u vertrouwt",
    served:
      "Dit is het beleid dat de dienst publiceert. Vergelijk de sleutels met uw contract, of plak uw eigen kopie: " +
      "een beleid dat met het bewijs meekomt, bewijst niets.",
    button: "Ontvangstbewijs controleren",
  },
  portal: {
    name: "Portaal",
    signIn:
      "Voer een API-sleutel van uw organisatie in als wachtwoord; de gebruikersnaam is vrij te kiezen. De sleutel " +
      "moet vouchers kunnen opzoeken en mag ze niet kunnen inwisselen.",
    overview: "Overzicht",
    redemptions: "Inwisselingen",
    webhooks: "Webhooks",
    sandbox: html`<strong>Sandbox.</strong> Dit zijn testvouchers. Ze hebben geen waarde.`,
    find: "Een bestelling zoeken",
    findHelp: "Op uw bestelreferentie, de code van een voucher of een inwisselcode.",
    findButton: "Zoeken",
    yourOrganization: "Uw organisatie",
    upTo: (time) => html`Inwisselingen tot ${time}.`,
    utc: "Dagen en maanden zijn in UTC.",
    total: (redemptions, count, value) => `${count} ${redemptions === 1 ? "inwisseling" : "inwisselingen"}, ${value}`,
    today: (day) => `Vandaag, ${day}`,
    yesterday: (day) => `Gisteren, ${day}`,
    month: (month) => `Deze maand, ${month}`,
    eachOfToday: "Alle van vandaag",
    eachOfYesterday: "Alle van gisteren",
    days: (count) => `${count} dagen`,
    plot: "Inwisselingen per dag, met de getallen van de tabel",
    perDay: "Inwisselingen per dag",
    highest: (until, count) => `Inwisselingen per dag tot en met ${until}. De hoogste balk is ${count}.`,
    columns: {
      day: "Dag",
      redemptions: "Inwisselingen",
      sum: "Som",
      product: "Product",
      key: "Sleutel",
      redeemed: "Ingewisseld",
      reference: "Referentie",
      value: "Waarde",
      redeemCode: "Inwisselcode",
      status: "Status",
      validUntil: "Geldig tot",
      order: "Bestelling",
    },
    by: (period, column) => `${period}, per ${column.toLowerCase()}`,
    others: (count) => `${count} andere`,
    none: "Er zijn er geen.",
    ofDay: (day) => `Inwisselingen van ${day}`,
    onDay: "op deze dag in UTC.",
    endsAt: (time) => html`tot ${time}. De dag eindigt om 00:00 UTC.`,
    csv: "De dag als CSV",
    anotherDay: "Een andere dag",
    show: "Tonen",
    dayBefore: "De dag ervoor",
    dayAfter: "De dag erna",
    eachOfMonth: "Elke dag van deze maand",
    wholeMonth: "De hele maand",
    ofMonth: (month) => `Inwisselingen van maand ${month}`,
    inMonth: "in deze maand in UTC.",
    monthEnds: (time) => html`tot ${time}. De maand is nog niet voorbij.`,
    monthCsv: "De maand als CSV",
    anotherMonth: "Een andere maand",
    monthBefore: "De maand ervoor",
    monthAfter: "De maand erna",
    next: "Latere inwisselingen van deze dag",
    facts: { voucher: "Voucher", publicHistory: "Openbare geschiedenis", serial: (serial) => `volgnummer ${serial}` },
    payload: "Payload",
    entry: (sequence) => `Vermelding ${sequence}`,
    byActor: "door",
    receipt: "Ontvangstbewijs",
    noReceipt:
      "Er is nog geen ontvangstbewijs: het openbare logboek heeft deze inwisseling nog niet. Dat duurt meestal " +
      "maar enkele seconden, als de dienst een logboek heeft.",
    receiptAbout: "Bewijst de inwisseling zonder deze dienst.",
    download: "Ontvangstbewijs downloaden",
    noScript: "Om het op deze pagina te controleren is JavaScript nodig.",
    otherTools: "Er zijn andere hulpmiddelen",
    nothingFound: "Niets gevonden",
    found: "Gevonden",
    vouchersFound: "Gevonden vouchers",
    noOrder: "geen",
    noReference: "Geen bestelling van uw organisatie heeft deze referentie, en geen voucher ervan heeft deze code.",
    search: "Zoeken",
    statuses: { Active: "Geldig", Redeemed: "Ingewisseld", Voided: "Geannuleerd", Expired: "Verlopen" },
    endpoints: "Webhook-eindpunten",
    endpointFacts: {
      state: "Toestand",
      enabled: "Ingeschakeld",
      disabled: "Uitgeschakeld.",
      failingSince: "Mislukt sinds",
    },
    reasons: {
      partner: "De partner heeft het uitgeschakeld.",
      operator: "Een beheerder heeft het uitgeschakeld; alleen een beheerder kan het inschakelen.",
      gone: "Het antwoordde met 410. De partner kan het weer inschakelen.",
      failing: "Vijf dagen lang is alles mislukt. De partner kan het weer inschakelen.",
    },
    lastDeliveries: (name) => `Laatste leveringen aan ${name}`,
    deliveryColumns: {
      event: "Gebeurtenis",
      happened: "Gebeurd",
      state: "Toestand",
      attempts: "Pogingen",
      lastAnswer: "Laatste antwoord",
    },
  },
};
