import { html } from "../html.ts";
import type { PageTexts } from "./page-texts.ts";

const UNUSED = "Er wurde nicht eingelöst.";

export const DE: PageTexts = {
  frame: {
    skip: "Zum Inhalt springen",
    site: "Website",
    guide: "Leitfaden (englisch)",
    reference: "API-Referenz (englisch)",
    version: (version) => `Partner Voucher API, Version ${version}`,
    sandbox: html`<strong>Sandbox.</strong> Dies ist ein Testgutschein. Er hat keinen Wert.`,
    from: (product, brand) => html`${product} von ${brand}`,
    months: (months) => (months === 1 ? "1 Monat" : `${months} Monate`),
    more: "Mehr",
  },
  error: {
    headings: {
      400: "Ungültige Adresse",
      401: "Bitte melden Sie sich an",
      403: "Nicht erlaubt",
      404: "Seite nicht gefunden",
      429: "Zu viele Anfragen",
      503: "Vorübergehend nicht verfügbar",
    },
    otherHeading: "Etwas ist schiefgegangen",
    unknownVoucher: "Gutschein nicht gefunden",
    notLogged: "Noch nicht im Verzeichnis",
    looksAgain: "Diese Seite sieht von selbst wieder nach.",
    checkAnother: "Einen anderen Gutschein prüfen",
    report: "Wenn Sie das melden, nennen Sie die Anfragenummer:",
    start: "Zur Startseite",
  },
  check: {
    title: "Gutschein prüfen",
    lead:
      "Sehen Sie, was mit einem Gutschein geschehen ist und ob sein Verlauf unversehrt ist. Den Link oder die " +
      "Kennung finden Sie meist auf dem Kassenbon.",
    label: "Prüflink oder Kennung des Gutscheins",
    button: "Prüfen",
    notAnId:
      "Das ist weder ein Prüflink noch die Kennung eines Gutscheins. Die Kennung beginnt mit vch_. Der Code eines " +
      "Gutscheins lässt sich hier nicht prüfen: Fragen Sie im Shop nach.",
  },
  link: {
    title: (product, brand) => `${product} von ${brand}`,
    description: (product, brand) => `Ein kostenloser Gutschein für ${product} von ${brand}.`,
    lead: (brand) =>
      html`Ein Empfehler von ${brand} teilt diesen Link mit Ihnen. Damit erhalten Sie kostenlos einen Gutschein.`,
    open: ["Verfügbar", "Jede Person erhält einen Gutschein."],
    windowClosed: ["Nicht offen", "Dieses Angebot ist zurzeit nicht offen. Kommen Sie später wieder."],
    soldOut: ["Vergriffen", "Zurzeit sind keine Gutscheine mehr da."],
    now: "Zurzeit",
    worth: "Wert",
    lasts: "Dauer",
    useBy: "Einlösbar bis",
    goOn: (host) => `Weiter zu ${host}`,
    how: "So erhalten Sie ihn",
    signIn: (brand) => html`Melden Sie sich in der App oder dem Shop an, in dem Sie Gutscheine von ${brand} sammeln.`,
    enter: "Öffnen Sie dort diesen Link oder geben Sie seinen Code ein:",
    yours: "Der Gutschein gehört Ihnen. Wenn Sie ihn noch einmal abrufen, erhalten Sie denselben.",
    onPhone: "Auf Ihrem Telefon",
    camera: "Richten Sie die Kamera Ihres Telefons auf diesen Code, um diese Seite dort zu öffnen.",
    forApp: "Für die App",
    claims: (token) => html`Die App ruft den Gutschein mit dem Token des angemeldeten Benutzers in ${token} ab.`,
    reference: "Die API-Referenz beschreibt die Antwort.",
  },
  listings: {
    title: "Marktplatz",
    description: "Gutscheine, die man kaufen kann.",
    lead: "Gutscheine im Angebot. Sie kaufen sie in der App oder dem Shop, in dem Sie Gutscheine sammeln.",
    none: "Hier gibt es keine Angebote.",
    insteadOf: (price) => `statt ${price}`,
    lasting: (months) => `für ${months}`,
    referrersOnly: "Nur für Empfehler",
    available: (count, more, until) => html`Verfügbar: ${more ? "mehr als " : ""}${count}. Einlösbar bis ${until}.`,
    next: "Weitere Gutscheine",
  },
  events: {
    "voucher.instance.issued": { title: "Ausgegeben", sentence: "Der Gutschein wurde erstellt.", outcome: UNUSED },
    "voucher.instance.claimed": {
      title: "Abgerufen",
      sentence: "Ein Benutzer hat den Gutschein abgerufen.",
      outcome: UNUSED,
    },
    "voucher.instance.bought": {
      title: "Gekauft",
      sentence: "Ein Benutzer hat den Gutschein gekauft.",
      outcome: UNUSED,
    },
    "voucher.instance.redeemed": {
      title: "Eingelöst",
      sentence: "Der Gutschein wurde bei einem Kauf verwendet. Er kann nicht noch einmal verwendet werden.",
    },
    "voucher.instance.voided": {
      title: "Storniert",
      sentence: "Der Herausgeber hat den Gutschein storniert. Er kann nicht verwendet werden.",
    },
    "voucher.instance.expired": { title: "Abgelaufen", sentence: "Der Gutschein wurde nicht rechtzeitig verwendet." },
    "voucher.instance.erased": { title: "Gelöscht", sentence: "Der Inhalt früherer Einträge wurde gelöscht." },
  },
  chain: {
    erased: (when, by) =>
      when === null
        ? html`Gelöscht durch Eintrag ${by}, der Hash des Eintrags bleibt.`
        : html`Gelöscht am ${when}, der Hash des Eintrags bleibt.`,
    lost: "Sein Inhalt fehlt oder wurde geändert, und kein späterer Eintrag sagt, dass er gelöscht wurde.",
    title: (id, sandbox) => `${sandbox ? "Sandbox: " : ""}Verlauf des Gutscheins ${id}`,
    description: "Was mit einem Gutschein geschehen ist, Eintrag für Eintrag, und ob sein Verlauf unversehrt ist.",
    heading: "Verlauf des Gutscheins",
    voucher: "Gutschein",
    noScript:
      "Mit JavaScript prüft diese Seite die Kette der Hashes in Ihrem Browser und zeigt Ihre Ortszeit. Ohne " +
      "JavaScript vergleichen Sie selbst: Der vorige Hash jedes Eintrags muss der Hash des Eintrags darüber sein.",
    happened: "Was geschehen ist",
    noneAfter: (sequence) => `Nach Nummer ${sequence} gibt es keine Einträge.`,
    columns: {
      number: "Nummer",
      what: "Was geschehen ist",
      when: "Wann",
      seal: "Siegel",
      leaf: "Blatt",
      hashes: "Hashes",
    },
    sealed: "Versiegelt",
    pending: "Ausstehend",
    notSealedYet: "Noch nicht versiegelt",
    notInLog: "Noch nicht im Verzeichnis",
    leafNumber: (index) => `Blatt ${index}`,
    proof: "Beweis",
    ofEntry: (sequence) => `von Eintrag ${sequence}`,
    hash: "Hash",
    previousHash: "Voriger Hash",
    excerpt: (first, last) => `Einträge ${first} bis ${last} eines längeren Verlaufs.`,
    on: (event, time) => html`${event} am ${time}.`,
    unsealed: (count) =>
      `${count === 1 ? "Ein Eintrag ist" : `${count} Einträge sind`} noch nicht versiegelt. Das geschieht meist ` +
      "innerhalb von Sekunden.",
    lookAgain: "Noch einmal nachsehen",
    checkpoint: (leaves) => `Prüfpunkt mit ${leaves} ${leaves === 1 ? "Blatt" : "Blättern"}`,
    allLogged: (log, checkpoint) => html`Jeder Eintrag hier steht im Verzeichnis ${log}, bis zu seinem ${checkpoint}.`,
    someLogged: (missing, log, checkpoint) =>
      html`${missing.length === 1 ? "Eintrag" : "Einträge"} ${missing.join(", ")} \
${missing.length === 1 ? "steht" : "stehen"} noch nicht im Verzeichnis ${log}, bis zu seinem ${checkpoint}. \
Das dauert meist nur Sekunden.`,
    noneLogged: (log, checkpoint) =>
      html`Noch kein Eintrag hier steht im Verzeichnis ${log}, bis zu seinem ${checkpoint}. Das dauert meist nur \
Sekunden.`,
    serves: (log, checkpoint) => html`Das Verzeichnis ${log} veröffentlicht seinen ${checkpoint}.`,
    continues: (sequence) => `Fortsetzung von Eintrag ${sequence} mit dem Hash`,
    earlier: "Frühere Einträge",
    later: "Spätere Einträge",
    pages: "Seiten des Verlaufs",
    payloadHeading: "Den Text eines Eintrags prüfen",
    payloadAbout:
      "Die Payload ist der genaue Text eines Eintrags, wie ihn die API dem Partner des Gutscheins liefert. Fügen " +
      "Sie sie ein, um zu sehen, ob genau sie versiegelt wurde. Sie bleibt auf dieser Seite: Nichts wird " +
      "gesendet.",
    payloadLabel: "Payload eines Eintrags",
    payloadButton: "Hash berechnen und vergleichen",
    receiptHeading: "Haben Sie einen Beleg?",
    receiptAbout:
      "Fügen Sie den Beleg eines Gutscheins oder den Beweis eines Eintrags von oben ein, um zu sehen, was er " +
      "beweist. Er bleibt auf dieser Seite: Nichts wird gesendet.",
    receiptFile: "Dasselbe als Datei",
    receiptFileAbout: "läuft von Ihrer Festplatte, ohne diesen Dienst.",
    meaning: "Was diese Seite beweist und was nicht",
    links:
      "Jeder Eintrag ist mit einem Hash versiegelt, einem Fingerabdruck seines Inhalts, und enthält den Hash des " +
      "vorigen Eintrags. Wird ein Eintrag später geändert, entfernt oder eingefügt, bricht diese Kette der " +
      "Hashes.",
    hashes:
      "Die Hashes sind SHA-256. Sie sind öffentlich, der Inhalt der Einträge nicht, denn er enthält den Code des " +
      "Gutscheins. Wer den Text eines Eintrags hat, kann dessen Hash berechnen und mit dem Hash hier vergleichen. " +
      "Wer sich früher einen Hash notiert hat, kann prüfen, dass er sich nicht geändert hat. Diese Seite kann " +
      "nicht beweisen, dass vor der Aufzeichnung kein Ereignis ausgelassen wurde.",
    tree:
      "Das Verzeichnis ist ein Baum über die Einträge aller Gutscheine, den andere aufbewahren und vergleichen. Ein " +
      "Beleg oder ein Beweis zeigt, dass ein Eintrag darin steht.",
    treeVerify: "Prüfen Sie ihn hier oder",
    treeTool: "mit einem eigenen Werkzeug",
    preserved: (time) =>
      html`Der Text jedes Eintrags ist seit dem ${time} unverändert erhalten. Dieselbe Kette für Programme:`,
  },
  receipt: {
    label: "Beleg",
    policy: "Richtlinie: das Verzeichnis und die Zeugen, denen Sie vertrauen",
    served:
      "Das ist die Richtlinie, die der Dienst veröffentlicht. Vergleichen Sie deren Schlüssel mit Ihrem Vertrag " +
      "oder fügen Sie Ihre eigene Kopie ein: Eine Richtlinie, die mit dem Beweis kommt, beweist nichts.",
    button: "Beleg prüfen",
  },
  portal: {
    name: "Portal",
    signIn:
      "Geben Sie einen API-Schlüssel Ihrer Organisation als Passwort ein; der Benutzername ist beliebig. Der " +
      "Schlüssel muss Gutscheine abfragen können und darf sie nicht einlösen können.",
    overview: "Übersicht",
    redemptions: "Einlösungen",
    webhooks: "Webhooks",
    sandbox: html`<strong>Sandbox.</strong> Dies sind Testgutscheine. Sie haben keinen Wert.`,
    find: "Bestellung suchen",
    findHelp: "Nach Ihrer Bestellnummer, dem Code eines Gutscheins oder einem Einlösecode.",
    findButton: "Suchen",
    yourOrganization: "Ihre Organisation",
    upTo: (time) => html`Einlösungen bis ${time}.`,
    utc: "Tage und Monate gelten in UTC.",
    total: (redemptions, count, value) => `${count} ${redemptions === 1 ? "Einlösung" : "Einlösungen"}, ${value}`,
    today: (day) => `Heute, ${day}`,
    yesterday: (day) => `Gestern, ${day}`,
    month: (month) => `Dieser Monat, ${month}`,
    eachOfToday: "Alle von heute",
    eachOfYesterday: "Alle von gestern",
    days: (count) => `${count} Tage`,
    plot: "Einlösungen je Tag, mit den Zahlen der Tabelle",
    perDay: "Einlösungen je Tag",
    highest: (until, count) => `Einlösungen je Tag bis ${until}. Der höchste Balken ist ${count}.`,
    columns: {
      day: "Tag",
      redemptions: "Einlösungen",
      sum: "Summe",
      product: "Produkt",
      key: "Schlüssel",
      redeemed: "Eingelöst",
      reference: "Bestellnummer",
      value: "Wert",
      redeemCode: "Einlösecode",
      status: "Status",
      validUntil: "Gültig bis",
      order: "Bestellung",
    },
    by: (period, column) => `${period}, nach ${column}`,
    others: (count) => `${count} weitere`,
    none: "Es gibt keine.",
    ofDay: (day) => `Einlösungen vom ${day}`,
    onDay: "an diesem Tag in UTC.",
    endsAt: (time) => html`bis ${time}. Der Tag endet um 00:00 UTC.`,
    csv: "Der Tag als CSV",
    anotherDay: "Ein anderer Tag",
    show: "Anzeigen",
    dayBefore: "Der Tag davor",
    dayAfter: "Der Tag danach",
    eachOfMonth: "Alle Tage dieses Monats",
    wholeMonth: "Der ganze Monat",
    ofMonth: (month) => `Einlösungen im Monat ${month}`,
    inMonth: "in diesem Monat in UTC.",
    monthEnds: (time) => html`bis ${time}. Der Monat ist nicht zu Ende.`,
    monthCsv: "Der Monat als CSV",
    anotherMonth: "Ein anderer Monat",
    monthBefore: "Der Monat davor",
    monthAfter: "Der Monat danach",
    next: "Spätere Einlösungen dieses Tages",
    facts: {
      voucher: "Gutschein",
      publicHistory: "Öffentlicher Verlauf",
      serial: (serial) => `laufende Nummer ${serial}`,
    },
    payload: "Payload",
    entry: (sequence) => `Eintrag ${sequence}`,
    byActor: "von",
    receipt: "Beleg",
    noReceipt:
      "Es gibt noch keinen Beleg: Das öffentliche Verzeichnis hat diese Einlösung noch nicht. Das dauert meist " +
      "nur Sekunden, wenn der Dienst ein Verzeichnis führt.",
    receiptAbout: "Beweist die Einlösung ohne diesen Dienst.",
    download: "Beleg herunterladen",
    noScript: "Um ihn auf dieser Seite zu prüfen, ist JavaScript nötig.",
    otherTools: "Es gibt andere Werkzeuge",
    nothingFound: "Nichts gefunden",
    found: "Gefunden",
    vouchersFound: "Gefundene Gutscheine",
    noOrder: "keine",
    noReference:
      "Keine Bestellung Ihrer Organisation hat diese Bestellnummer, und keiner ihrer Gutscheine hat diesen Code.",
    search: "Suche",
    statuses: { Active: "Gültig", Redeemed: "Eingelöst", Voided: "Storniert", Expired: "Abgelaufen" },
    endpoints: "Webhook-Endpunkte",
    endpointFacts: {
      state: "Zustand",
      enabled: "Eingeschaltet",
      disabled: "Abgeschaltet.",
      failingSince: "Fehlerhaft seit",
    },
    reasons: {
      partner: "Der Partner hat ihn abgeschaltet.",
      operator: "Ein Betreiber hat ihn abgeschaltet; nur ein Betreiber kann ihn einschalten.",
      gone: "Er hat mit 410 geantwortet. Der Partner kann ihn wieder einschalten.",
      failing: "Fünf Tage lang ist jede Zustellung fehlgeschlagen. Der Partner kann ihn wieder einschalten.",
    },
    lastDeliveries: (name) => `Letzte Zustellungen an ${name}`,
    deliveryColumns: {
      event: "Ereignis",
      happened: "Geschehen",
      state: "Zustand",
      attempts: "Versuche",
      lastAnswer: "Letzte Antwort",
    },
  },
};
