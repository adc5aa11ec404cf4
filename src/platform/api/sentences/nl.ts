import type { Sentences } from "./sentences.ts";

export const NL: Sentences = {
  errors: {
    invalid_http:
      "De aanvraag is beschadigd aangekomen. Probeer het opnieuw en meld het aan uw technische ondersteuning als " +
      "het weer misgaat.",
    headers_too_large: "De aanvraag is te lang. Meld dit aan uw technische ondersteuning.",
    request_timeout: "De aanvraag is niet op tijd aangekomen. Probeer het opnieuw.",
    invalid_json: "De aanvraag is niet leesbaar. Meld dit aan uw technische ondersteuning.",
    invalid_request: "externalRef is verplicht.",
    body_too_large: "De aanvraag is te lang. Meld dit aan uw technische ondersteuning.",
    unsupported_encoding:
      "De aanvraag heeft een vorm die hier niet wordt aanvaard. Meld dit aan uw technische ondersteuning.",
    missing_key:
      "U bent niet aangemeld bij de voucherdienst. Vraag het aan de persoon die deze kassa of winkel heeft ingericht.",
    unknown_key:
      "Deze aanmelding bij de voucherdienst is onjuist of niet meer geldig. Vraag het aan de persoon die deze " +
      "kassa of winkel heeft ingericht.",
    missing_scope:
      "Met deze aanmelding mag dat niet. Vraag het aan de persoon die deze kassa of winkel heeft ingericht.",
    missing_token: "U bent niet aangemeld. Meld u aan.",
    invalid_token: "Uw aanmelding is ongeldig of verlopen. Meld u opnieuw aan.",
    missing_password:
      "Meld u aan met uw naam en uw token als wachtwoord, of met het operations-token onder een willekeurige naam.",
    wrong_password: "Deze naam en dit token horen niet bij elkaar, of het token is niet meer geldig.",
    missing_role: "Met uw rol mag dat niet. Vraag om een hogere rol.",
    cross_site:
      "Deze aanvraag kwam van een pagina van een andere site. Open deze pagina rechtstreeks en probeer het daar " +
      "opnieuw.",
    portal_needs_read_key:
      "Voor het portaal hebt u een aanmelding nodig die vouchers kan opzoeken en niet kan inwisselen. Vraag de " +
      "beheerder erom en start de browser opnieuw om die te gebruiken.",
    referrers_only:
      "Alleen aanbevelers met een lopend contract kunnen deze voucher krijgen. Vraag een aanbeveler om de link.",
    key_without_organization:
      "Deze aanmelding hoort nog niet bij een organisatie. Vraag de beheerder om dat in orde te maken.",
    address_not_allowed:
      "Deze aanmelding mag via deze internetverbinding niet worden gebruikt. Vraag het aan de persoon die deze " +
      "kassa of winkel heeft ingericht.",
    sandbox_only:
      "Dit kan alleen met testvouchers, en deze aanmelding is voor echte. Gebruik de aanmelding van uw sandbox.",
    not_found: "Op dit adres is niets te vinden. Controleer het adres.",
    voucher_not_found: "Geen van uw vouchers heeft deze code. Controleer de code en voer die opnieuw in.",
    entity_not_found: "Geen enkele voucher heeft dit kenmerk. Controleer de link of het kenmerk.",
    redemption_not_found: "Onder deze referentie is niets ingewisseld. Controleer de referentie.",
    listing_not_found: "Dit aanbod bestaat niet. Ga terug naar de lijst en kies een ander.",
    product_not_found: "Dit product bestaat niet. Ga terug en kies een ander.",
    link_not_found: "Deze link is ongeldig of verlopen. Vraag om een nieuwe.",
    webhook_not_found: "Uw organisatie heeft geen webhook-eindpunt met dit kenmerk.",
    webhooks_off: "Webhooks staan hier niet aan. Neem contact op met de beheerder.",
    method_not_allowed: "Dit adres kan niet op deze manier worden gebruikt. Meld dit aan uw technische ondersteuning.",
    voucher_used: "Deze voucher is al gebruikt. Er is een ander betaalmiddel nodig.",
    voucher_voided: "De uitgever heeft deze voucher geannuleerd. Er is een ander betaalmiddel nodig.",
    voucher_expired: "Deze voucher is verlopen. Er is een ander betaalmiddel nodig.",
    reservation_ended:
      "Het duurde iets te lang en de reservering is beëindigd. Voer de code van de voucher opnieuw in.",
    token_mismatch:
      "Deze voucher is niet of niet meer met deze gegevens gereserveerd. Laat de code uit de webwinkel opnieuw zien.",
    voucher_reserved:
      "Deze voucher wordt bij een andere aankoop gebruikt. Rond die af, breek die af, of probeer het over een " +
      "paar minuten opnieuw.",
    not_logged_yet:
      "Deze vermelding staat nog niet in het openbare logboek. Dat duurt meestal maar enkele seconden: probeer " +
      "het opnieuw.",
    payload_erased: "De inhoud van deze vermelding is gewist, dus er is geen bewijs. Eerdere bewijzen blijven geldig.",
    webhook_limit:
      "Meer webhook-eindpunten, of eerdere geheimen van een eindpunt, zijn niet mogelijk. Verwijder een eindpunt, " +
      "of wissel het geheim later.",
    webhook_disabled:
      "De beheerder heeft dit webhook-eindpunt uitgeschakeld. Alleen de beheerder kan het weer inschakelen.",
    sold_out: "Er zijn geen vouchers meer.",
    window_closed: "Dit aanbod is op dit moment niet open. Kom later terug.",
    already_exists: "Dit bestaat al.",
    wrong_status: "Dit kan niet in de huidige toestand.",
    rate_limited: "Er waren te veel aanvragen. Probeer het zo meteen opnieuw.",
    too_many_misses:
      "Er zijn te veel onbekende codes ingevoerd. Wacht een minuut, controleer de code en voer die opnieuw in.",
    redeem_timeout:
      "De voucher kon niet op tijd worden ingewisseld. Bij deze poging is niets ingewisseld. Probeer het opnieuw.",
    redeem_unknown:
      "We weten nog niet of deze voucher is ingewisseld. Probeer het opnieuw met dezelfde bestelling: die wisselt " +
      "nooit twee keer in.",
    voucher_busy: "Deze voucher wordt op dit moment gewijzigd. Probeer het opnieuw.",
    overloaded: "De voucherdienst is druk. Probeer het zo meteen opnieuw.",
    unavailable: "De voucherdienst is op dit moment niet beschikbaar. Probeer het zo meteen opnieuw.",
    internal_error:
      "Er is iets misgegaan bij de voucherdienst. Probeer het opnieuw en meld het aan uw technische ondersteuning " +
      "als het weer misgaat.",
  },
  inDetail: {
    reservationsUnavailable: "Vouchers kunnen op dit moment niet worden gereserveerd. Probeer het zo meteen opnieuw.",
    signInUnchecked: "Uw aanmelding kan op dit moment niet worden gecontroleerd. Probeer het zo meteen opnieuw.",
    endpointDisabled: "Dit webhook-eindpunt is uitgeschakeld. Schakel het eerst in.",
    sandboxFull: (max) =>
      `Deze sandbox heeft meer dan ${max.toLocaleString("nl")} lopende reserveringen. Geef er eerst een aantal vrij.`,
    webhooksFull: (max) => `Er kunnen hoogstens ${max} webhook-eindpunten zijn. Verwijder er eerst een.`,
    earlierSecretsFull: (max) =>
      `Hoogstens ${max} eerdere geheimen van een webhook-eindpunt kunnen nog ondertekenen. Wissel het geheim later.`,
    filesFull: (max) =>
      `Er worden hoogstens ${max} bestanden tegelijk naar u gestuurd. Wacht tot een daarvan is aangekomen.`,
    fileTooLarge: (megabytes) =>
      `Het bestand zou meer dan ${megabytes} MB hebben. Kies een kortere periode, of lees de lijst pagina voor pagina.`,
    fileTooSlow: (seconds) =>
      `Het bestand kon niet binnen ${seconds} seconden worden gemaakt. Kies een kortere periode, of probeer het ` +
      "later opnieuw.",
    notVoided: {
      voucher_used: "Deze voucher is al gebruikt en kan niet meer worden geannuleerd.",
      voucher_voided: "Deze voucher is al geannuleerd.",
      voucher_expired: "Deze voucher is al verlopen en kan niet meer worden geannuleerd.",
    },
    notOwn: "Uw organisatie heeft niets met dit id of deze code.",
    exists: {
      productKey: (key) => `Het merk heeft al een product met de sleutel ${key}.`,
      listing: "De batch wordt al aangeboden.",
      contract: "Deze gebruiker heeft al een open contract met dit merk. Wijs het eerst af, of beëindig het.",
    },
    contractCannotBecome: (wanted, status) => `Het contract is ${status} en kan niet ${wanted} worden.`,
    noProductOfContract: (contract, product) =>
      `Er is geen contract ${contract} waarvan het merk het product ${product} heeft.`,
    keyEnded: {
      nothingDone: "Deze aanmelding eindigde voordat alles klaar was. Er is niets gewijzigd.",
      voided: (count) =>
        `Deze aanmelding eindigde voordat alles klaar was. Deze aanroep heeft ${count} vouchers geannuleerd.`,
    },
  },
  nothingReleased: "Deze voucher is niet of niet meer gereserveerd. U hoeft verder niets te doen.",
  problems: {
    aField: "Een veld",
    aFieldName: "Een veldnaam",
    required: "is verplicht",
    notText: "moet tekst zijn",
    empty: "mag niet leeg zijn",
    unstorable: "bevat tekens die niet zijn toegestaan (NUL of de helft van een paar)",
    tooLong: (max) => `mag hoogstens ${max} tekens lang zijn`,
    controlCharacters: "mag geen stuurtekens bevatten",
    noPathSegment: "mag niet . of .. zijn, omdat geen enkel adres daarop kan eindigen",
    erased: "mag niet met erased: beginnen, omdat gewiste teksten zo beginnen",
    notWhole: (min, max) => `moet een geheel getal van ${min} tot en met ${max} zijn`,
    notOneValue: "moet één waarde zijn",
    noTime: (example) => `moet een tijdstip met tijdzone zijn, zoals ${example}, hoogstens tot op de milliseconde`,
    blankInTime: "heeft een spatie voor de tijdzone: schrijf een plusteken als %2B",
    noYear: "moet in de jaren 2000 tot en met 2999 liggen",
    noMonth: "moet een maand zijn, zoals 2026-11",
    noDay: "moet een dag zijn, zoals 2026-11-24",
    noCursor: "is geen cursor van deze lijst",
    differsFromCursor: "wijkt af van de waarde van de cursor",
    noCsv: "heeft geen antwoord als CSV",
    noVerifyLink: "moet een verificatielink of een kenmerk zijn",
    notObject: "moet een object zijn",
    notTrueOrFalse: "moet true of false zijn",
    notOneOf: (values) => `moet een van deze waarden zijn: ${values.join(", ")}`,
    noEventTypes: (types) => `moet een lijst van gebeurtenistypen zijn: ${types.join(", ")}`,
    repeatedType: "mag elk gebeurtenistype maar één keer noemen",
    noEventIds: "moet een lijst van kenmerken van gebeurtenissen zijn",
    noEventId: "heeft een onderdeel dat geen kenmerk van een gebeurtenis is",
    tooMany: (max) => `mag hoogstens ${max} onderdelen hebben`,
    noUrl: "moet een adres zijn zoals https://shop.example.com/hooks",
    notHttps: "moet beginnen met https://",
    urlWithUser: "mag geen gebruikersnaam of wachtwoord bevatten",
    urlWithFragment: "mag geen fragment bevatten",
    urlPort: "moet poort 443 of 8443 hebben",
    urlHost: "moet een openbare host hebben",
    noMoment: "moet een datum zoals 2027-12-31 zijn, of een tijdstip met tijdzone zoals 2027-12-31T18:00Z",
    noDollars: "moet een bedrag in dollars zijn, zoals 19.90",
    noDuration: "moet een duur zoals 30m, 24h of 7d zijn",
    noNetworks: "moet uit adressen of netwerken zoals 10.0.0.0/8 bestaan",
    noChoice: "heeft minstens één keuze nodig",
    isPast: (time) => `ligt in het verleden: ${time}`,
    earlierThan: (name) => `moet vóór ${name} liggen`,
    laterThan: (name) => `moet na ${name} liggen`,
    needWindow: (times, windows) => `${times} hebben een venster nodig: geef ${windows} op`,
  },
  wholes: {
    codeOrTicket: "code of ticket is verplicht",
    codeAndTicket: "code en ticket mogen niet samen worden opgegeven",
    codeOrId: "code of id is verplicht",
    codeAndId: "code en id mogen niet samen worden opgegeven",
    idsOrTimes: "eventIds, of from en to, zijn verplicht",
    fromBeforeTo: "from moet vóór to liggen",
  },
};
