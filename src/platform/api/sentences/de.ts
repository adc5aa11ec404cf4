import type { Sentences } from "./sentences.ts";

export const DE: Sentences = {
  errors: {
    invalid_http:
      "Die Anfrage kam beschädigt an. Versuchen Sie es noch einmal. Klappt es wieder nicht, wenden Sie sich an " +
      "Ihren technischen Support.",
    headers_too_large: "Die Anfrage ist zu lang. Wenden Sie sich an Ihren technischen Support.",
    request_timeout: "Die Anfrage kam nicht rechtzeitig an. Bitte versuchen Sie es noch einmal.",
    invalid_json: "Die Anfrage ist nicht lesbar. Wenden Sie sich an Ihren technischen Support.",
    invalid_request: "externalRef fehlt.",
    body_too_large: "Die Anfrage ist zu lang. Wenden Sie sich an Ihren technischen Support.",
    unsupported_encoding:
      "Die Anfrage hat eine Form, die hier nicht angenommen wird. Wenden Sie sich an Ihren technischen Support.",
    missing_key:
      "Sie sind beim Gutscheindienst nicht angemeldet. Wenden Sie sich an die Person, die diese Kasse oder diesen " +
      "Shop eingerichtet hat.",
    unknown_key:
      "Diese Anmeldung beim Gutscheindienst ist falsch oder nicht mehr gültig. Wenden Sie sich an die Person, die " +
      "diese Kasse oder diesen Shop eingerichtet hat.",
    missing_scope:
      "Diese Anmeldung ist dazu nicht berechtigt. Wenden Sie sich an die Person, die diese Kasse oder diesen Shop " +
      "eingerichtet hat.",
    missing_token: "Sie sind nicht angemeldet. Bitte melden Sie sich an.",
    invalid_token: "Ihre Anmeldung ist ungültig oder abgelaufen. Bitte melden Sie sich erneut an.",
    missing_password: "Melden Sie sich mit Ihrem Namen und Ihrem Token als Passwort an, oder mit dem Betriebs-Token.",
    wrong_password: "Dieser Name und dieses Token gehören nicht zusammen, oder das Token gilt nicht mehr.",
    missing_role: "Ihre Rolle erlaubt das nicht. Bitten Sie um eine höhere.",
    cross_site:
      "Diese Anfrage kam von der Seite einer anderen Website. Öffnen Sie diese Seite selbst und versuchen Sie es " +
      "dort noch einmal.",
    portal_needs_read_key:
      "Für das Portal brauchen Sie eine Anmeldung, die Gutscheine abfragen, aber nicht einlösen kann. Lassen Sie " +
      "sich vom Betreiber eine geben und starten Sie den Browser neu, um sich damit anzumelden.",
    referrers_only:
      "Diesen Gutschein können nur Empfehler mit einem laufenden Vertrag erhalten. Bitten Sie einen Empfehler um " +
      "seinen Link.",
    key_without_organization:
      "Diese Anmeldung gehört noch zu keiner Organisation. Bitten Sie den Betreiber, sie zu vervollständigen.",
    address_not_allowed:
      "Diese Anmeldung darf über diese Internetverbindung nicht verwendet werden. Wenden Sie sich an die Person, " +
      "die diese Kasse oder diesen Shop eingerichtet hat.",
    sandbox_only:
      "Das geht nur mit Testgutscheinen, und diese Anmeldung ist für echte. Verwenden Sie die Anmeldung Ihrer Sandbox.",
    not_found: "Unter dieser Adresse gibt es nichts. Prüfen Sie die Adresse.",
    voucher_not_found:
      "Keiner Ihrer Gutscheine hat diesen Code. Prüfen Sie den Code und geben Sie ihn noch einmal ein.",
    entity_not_found: "Kein Gutschein hat diese Kennung. Prüfen Sie den Link oder die Kennung.",
    redemption_not_found: "Unter dieser Bestellnummer wurde nichts eingelöst. Prüfen Sie die Bestellnummer.",
    listing_not_found: "Dieses Angebot gibt es nicht. Gehen Sie zurück zur Liste und wählen Sie ein anderes.",
    product_not_found: "Dieses Produkt gibt es nicht. Gehen Sie zurück und wählen Sie ein anderes.",
    link_not_found: "Dieser Link ist ungültig oder abgelaufen. Bitten Sie um einen neuen.",
    webhook_not_found: "Ihre Organisation hat keinen Webhook-Endpunkt mit dieser Kennung.",
    webhooks_off: "Webhooks sind hier nicht eingeschaltet. Wenden Sie sich an den Betreiber.",
    method_not_allowed: "Diese Adresse lässt sich so nicht verwenden. Wenden Sie sich an Ihren technischen Support.",
    voucher_used: "Dieser Gutschein wurde bereits eingelöst. Es ist ein anderes Zahlungsmittel nötig.",
    voucher_voided: "Der Herausgeber hat diesen Gutschein storniert. Es ist ein anderes Zahlungsmittel nötig.",
    voucher_expired: "Dieser Gutschein ist abgelaufen. Es ist ein anderes Zahlungsmittel nötig.",
    reservation_ended:
      "Das hat etwas zu lange gedauert, die Reservierung ist beendet. Geben Sie den Code des Gutscheins noch " +
      "einmal ein.",
    token_mismatch:
      "Der Gutschein ist nicht oder nicht mehr mit diesen Angaben reserviert. Bitte zeigen Sie den Code aus dem " +
      "Webshop noch einmal vor.",
    voucher_reserved:
      "Dieser Gutschein wird gerade bei einem anderen Kauf verwendet. Schließen Sie diesen ab, brechen Sie ihn " +
      "ab, oder versuchen Sie es in ein paar Minuten noch einmal.",
    not_logged_yet:
      "Dieser Eintrag steht noch nicht im öffentlichen Verzeichnis. Das dauert meist nur Sekunden: Bitte " +
      "versuchen Sie es noch einmal.",
    payload_erased:
      "Der Inhalt dieses Eintrags wurde gelöscht, darum gibt es keinen Beleg. Frühere Belege bleiben gültig.",
    webhook_limit:
      "Mehr Webhook-Endpunkte, oder frühere Geheimnisse eines Endpunkts, sind nicht möglich. Löschen Sie einen " +
      "Endpunkt, oder wechseln Sie das Geheimnis später.",
    webhook_disabled: "Der Betreiber hat diesen Webhook-Endpunkt abgeschaltet. Nur er kann ihn wieder einschalten.",
    sold_out: "Es sind keine Gutscheine mehr da.",
    window_closed: "Dieses Angebot ist zurzeit nicht offen. Bitte kommen Sie später wieder.",
    already_exists: "Das gibt es schon.",
    wrong_status: "Das geht in seinem jetzigen Zustand nicht.",
    rate_limited: "Das waren zu viele Anfragen. Bitte versuchen Sie es gleich noch einmal.",
    too_many_misses:
      "Es wurden zu viele unbekannte Codes eingegeben. Warten Sie eine Minute, prüfen Sie den Code und geben Sie " +
      "ihn noch einmal ein.",
    redeem_timeout:
      "Der Gutschein konnte nicht rechtzeitig eingelöst werden. Bei diesem Versuch wurde nichts eingelöst. Bitte " +
      "versuchen Sie es noch einmal.",
    redeem_unknown:
      "Es steht noch nicht fest, ob dieser Gutschein eingelöst wurde. Versuchen Sie es mit derselben Bestellung " +
      "noch einmal: Sie löst nie zweimal ein.",
    voucher_busy: "Dieser Gutschein wird gerade geändert. Bitte versuchen Sie es noch einmal.",
    overloaded: "Der Gutscheindienst ist ausgelastet. Bitte versuchen Sie es gleich noch einmal.",
    unavailable: "Der Gutscheindienst ist zurzeit nicht erreichbar. Bitte versuchen Sie es gleich noch einmal.",
    internal_error:
      "Beim Gutscheindienst ist etwas schiefgegangen. Versuchen Sie es noch einmal. Klappt es wieder nicht, " +
      "wenden Sie sich an Ihren technischen Support.",
  },
  inDetail: {
    reservationsUnavailable:
      "Gutscheine können zurzeit nicht reserviert werden. Bitte versuchen Sie es gleich noch einmal.",
    signInUnchecked: "Ihre Anmeldung kann zurzeit nicht geprüft werden. Bitte versuchen Sie es gleich noch einmal.",
    endpointDisabled: "Dieser Webhook-Endpunkt ist abgeschaltet. Schalten Sie ihn zuerst ein.",
    sandboxFull: (max) =>
      `Diese Sandbox hat mehr als ${max.toLocaleString("de")} laufende Reservierungen. Geben Sie zuerst einige davon ` +
      "frei.",
    webhooksFull: (max) => `Es sind höchstens ${max} Webhook-Endpunkte möglich. Löschen Sie zuerst einen davon.`,
    earlierSecretsFull: (max) =>
      `Höchstens ${max} frühere Geheimnisse eines Webhook-Endpunkts können noch signieren. Wechseln Sie das ` +
      "Geheimnis später.",
    filesFull: (max) =>
      `Höchstens ${max} Dateien werden gleichzeitig an Sie gesendet. Warten Sie, bis eine davon angekommen ist.`,
    fileTooLarge: (megabytes) =>
      `Die Datei hätte mehr als ${megabytes} MB. Wählen Sie einen kürzeren Zeitraum, oder lesen Sie die Liste Seite ` +
      "für Seite.",
    fileTooSlow: (seconds) =>
      `Die Datei konnte nicht innerhalb von ${seconds} Sekunden erstellt werden. Wählen Sie einen kürzeren Zeitraum, ` +
      "oder versuchen Sie es später noch einmal.",
    notVoided: {
      voucher_used: "Dieser Gutschein wurde bereits eingelöst und kann nicht mehr storniert werden.",
      voucher_voided: "Dieser Gutschein ist bereits storniert.",
      voucher_expired: "Dieser Gutschein ist bereits abgelaufen und kann nicht mehr storniert werden.",
    },
    notOwn: "Ihre Organisation hat nichts mit dieser Kennung oder diesem Code.",
    exists: {
      productKey: (key) => `Die Marke hat schon ein Produkt mit dem Schlüssel ${key}.`,
      listing: "Die Charge wird schon angeboten.",
      contract:
        "Dieser Benutzer hat schon einen offenen Vertrag mit dieser Marke. Lehnen Sie ihn zuerst ab, oder " +
        "beenden Sie ihn.",
    },
    contractCannotBecome: (wanted, status) => `Der Vertrag ist ${status} und kann nicht ${wanted} werden.`,
    noProductOfContract: (contract, product) =>
      `Es gibt keinen Vertrag ${contract}, dessen Marke das Produkt ${product} hat.`,
    keyEnded: {
      nothingDone: "Diese Anmeldung endete, bevor alles erledigt war. Es wurde nichts geändert.",
      voided: (count) =>
        `Diese Anmeldung endete, bevor alles erledigt war. Dieser Aufruf hat ${count} Gutscheine storniert.`,
    },
  },
  nothingReleased: "Dieser Gutschein ist nicht oder nicht mehr reserviert. Es ist nichts weiter zu tun.",
  problems: {
    aField: "Ein Feld",
    aFieldName: "Ein Feldname",
    required: "fehlt",
    notText: "muss Text sein",
    empty: "darf nicht leer sein",
    unstorable: "enthält Zeichen, die nicht erlaubt sind (NUL oder die Hälfte eines Paars)",
    tooLong: (max) => `darf höchstens ${max} Zeichen lang sein`,
    controlCharacters: "darf keine Steuerzeichen enthalten",
    noPathSegment: "darf nicht . oder .. sein, weil keine Adresse damit enden kann",
    erased: "darf nicht mit erased: beginnen, weil gelöschte Texte so beginnen",
    notWhole: (min, max) => `muss eine ganze Zahl von ${min} bis ${max} sein`,
    notOneValue: "muss ein einzelner Wert sein",
    noTime: (example) =>
      `muss ein Zeitpunkt mit Zeitzone sein, zum Beispiel ${example}, höchstens auf die Millisekunde genau`,
    blankInTime: "hat ein Leerzeichen vor der Zeitzone: Schreiben Sie ein Pluszeichen als %2B",
    noYear: "muss in den Jahren 2000 bis 2999 liegen",
    noMonth: "muss ein Monat sein, zum Beispiel 2026-11",
    noDay: "muss ein Tag sein, zum Beispiel 2026-11-24",
    noCursor: "ist keine Fortsetzungsmarke dieser Liste",
    differsFromCursor: "ist ein anderer Wert als der von cursor",
    noCsv: "hat keine Antwort als CSV",
    noVerifyLink: "muss ein Prüflink oder eine Kennung sein",
    notObject: "muss ein Objekt sein",
    notTrueOrFalse: "muss true oder false sein",
    notOneOf: (values) => `muss einer dieser Werte sein: ${values.join(", ")}`,
    noEventTypes: (types) => `muss eine Liste von Ereignisarten sein: ${types.join(", ")}`,
    repeatedType: "darf jede Ereignisart nur einmal nennen",
    noEventIds: "muss eine Liste von Ereigniskennungen sein",
    noEventId: "hat einen Eintrag, der keine Ereigniskennung ist",
    tooMany: (max) => `darf höchstens ${max} Einträge haben`,
    noUrl: "muss eine Adresse wie https://shop.example.com/hooks sein",
    notHttps: "muss mit https:// beginnen",
    urlWithUser: "darf keinen Benutzernamen und kein Passwort haben",
    urlWithFragment: "darf kein Fragment haben",
    urlPort: "muss den Port 443 oder 8443 haben",
    urlHost: "muss einen öffentlichen Host haben",
    noMoment: "muss ein Datum wie 2027-12-31 sein oder ein Zeitpunkt mit Zeitzone wie 2027-12-31T18:00Z",
    noDollars: "muss ein Betrag in Dollar sein, zum Beispiel 19.90",
    noDuration: "muss eine Dauer wie 30m, 24h oder 7d sein",
    noNetworks: "muss aus Adressen oder Netzen wie 10.0.0.0/8 bestehen",
    noChoice: "braucht mindestens eine Auswahl",
    isPast: (time) => `liegt in der Vergangenheit: ${time}`,
    earlierThan: (name) => `muss vor ${name} liegen`,
    laterThan: (name) => `muss nach ${name} liegen`,
    needWindow: (times, windows) => `${times} brauchen ein Fenster: Geben Sie ${windows} an`,
  },
  wholes: {
    codeOrTicket: "code oder ticket fehlt",
    codeAndTicket: "code und ticket dürfen nicht zusammen angegeben werden",
    codeOrId: "code oder id fehlt",
    codeAndId: "code und id dürfen nicht zusammen angegeben werden",
    idsOrTimes: "es fehlen entweder eventIds oder from und to",
    fromBeforeTo: "from muss vor to liegen",
  },
};
