import type { ScriptTexts } from "./script-texts.ts";

export const SCRIPT_NL: ScriptTexts = {
  "Entry {0} is missing before it.": "Vermelding {0} ontbreekt ervoor.",
  "Its hash is not a SHA-256 hash.": "De hash is geen SHA-256-hash.",
  "It is not sealed, but has a hash.": "Die is niet verzegeld, maar heeft wel een hash.",
  "It is sealed, but the previous entry is not.": "Die is verzegeld, maar de vorige vermelding niet.",
  "It is the first entry, but its previous hash is not 64 zeros.":
    "Het is de eerste vermelding, maar de vorige hash bestaat niet uit 64 nullen.",
  "Its previous hash is not the hash of entry {0}.": "De vorige hash is niet de hash van vermelding {0}.",
  "It erases an entry that is not an earlier one.": "Zij wist een vermelding die niet eerder is.",
  "Its content is missing or was changed, and no later entry says that it was erased.":
    "De inhoud ontbreekt of is gewijzigd, en geen latere vermelding zegt dat die is gewist.",
  "It was erased, but no later entry says so.": "Zij is gewist, maar geen latere vermelding zegt dat.",
  "The start of the chain": "Het begin van de keten",
  "Linked to entry {0}": "Verbonden met vermelding {0}",
  "This history is broken. Do not rely on it.": "Deze geschiedenis is beschadigd. Vertrouw er niet op.",
  "Entry {0}: {1}": "Vermelding {0}: {1}",
  "The sealed entries are intact.": "De verzegelde vermeldingen zijn ongeschonden.",
  "The history is intact.": "De geschiedenis is ongeschonden.",
  "Every link on this page is valid.": "Elke schakel op deze pagina klopt.",
  "Your browser checked this just now.": "Uw browser heeft dit zojuist gecontroleerd.",
  "Entry 1 starts the chain.": "Vermelding 1 begint de keten.",
  "Entry 1 starts the chain, and each later entry contains the hash of the previous one.":
    "Vermelding 1 begint de keten, en elke latere vermelding bevat de hash van de vorige.",
  "Entry {0} contains the hash of the previous entry.": "Vermelding {0} bevat de hash van de vorige vermelding.",
  "Entries {0} to {1} each contain the hash of the previous entry.":
    "De vermeldingen {0} tot en met {1} bevatten elk de hash van de vorige vermelding.",
  "{0} your time": "{0} uw tijd",
  "{0} local time": "{0} lokale tijd",
  "This page looks again by itself.": "Deze pagina kijkt vanzelf opnieuw.",
  "voucher id": "kenmerk van de voucher",
  "Copy {0}": "{0} kopiëren",
  "Copy {0} of entry {1}": "{0} van vermelding {1} kopiëren",
  "Its SHA-256 is the hash of entry {0}.": "De SHA-256 ervan is de hash van vermelding {0}.",
  "Its sequence number is {0}.": "Het volgnummer is {0}.",
  "Its previous hash is the one in the chain.": "De vorige hash is die in de keten.",
  "It is about this voucher.": "Dit gaat over deze voucher.",
  "Its event and time are those in the chain.": "De gebeurtenis en de tijd zijn die in de keten.",
  "This is entry {0}, “{1}”, exactly as it was sealed": "Dit is vermelding {0}, “{1}”, precies zoals die is verzegeld",
  "This is the text of entry {0}, but the chain on this page differs":
    "Dit is de tekst van vermelding {0}, maar de keten op deze pagina wijkt af",
  "This is not the payload of an entry": "Dit is niet de payload van een vermelding",
  "It has the hash of no entry on this page and is not the text of an entry. \
Copy the whole payload field and nothing else.":
    "Geen vermelding op deze pagina heeft deze hash, en het is niet de tekst van een vermelding. Kopieer het hele " +
    "veld payload en verder niets.",
  "It names {0}, but this is the history of {1}.": "Hierin staat {0}, maar dit is de geschiedenis van {1}.",
  "This payload is about another voucher": "Deze payload gaat over een andere voucher",
  "Paste it on the page of the history that shows this entry.":
    "Plak die op de pagina van de geschiedenis die deze vermelding toont.",
  "This entry is not on this page": "Deze vermelding staat niet op deze pagina",
  "This entry is not sealed yet": "Deze vermelding is nog niet verzegeld",
  "That entry has no hash yet.": "Die vermelding heeft nog geen hash.",
  "This is not what was sealed as entry {0}": "Dit is niet wat als vermelding {0} is verzegeld",
  "But its hash is not that entry's. One changed character is enough, and so is reformatted JSON: \
paste the text exactly as the API returned it.":
    "Maar de hash is niet die van die vermelding. Eén gewijzigd teken is genoeg, en ook opnieuw opgemaakte JSON: " +
    "plak de tekst precies zoals de API die gaf.",
  "This browser cannot compute hashes here": "Deze browser kan hier geen hashes berekenen",
  "Browsers compute hashes on secure connections only, and this page was loaded over plain http. \
Open its https address.":
    "Browsers berekenen hashes alleen via beveiligde verbindingen, en deze pagina is via gewoon http geladen. " +
    "Open het https-adres.",
  "There is nothing to hash. Paste a payload first.": "Er valt niets te berekenen. Plak eerst een payload.",
  "SHA-256 of what you pasted": "SHA-256 van wat u hebt geplakt",
  "Go to entry {0}": "Naar vermelding {0}",
  "It is entry {0} of the history on this page.": "Het is vermelding {0} van de geschiedenis op deze pagina.",
  "It is about another voucher: {0}.": "Het gaat over een andere voucher: {0}.",
  unknown: "onbekend",
  "Its entry {0} is not on this page, or not sealed.":
    "Vermelding {0} ervan staat niet op deze pagina, of is niet verzegeld.",
  "It is not entry {0} of the history on this page, which has another hash.":
    "Het is niet vermelding {0} van de geschiedenis op deze pagina, die een andere hash heeft.",
  "{0} saw it at {1}.": "{0} heeft het gezien: {1}.",
  "It says that {0} saw it at {1}.": "Er staat dat {0} het heeft gezien: {1}.",
  "The policy has no witness that saw it: the operator could show another log to others.":
    "Het beleid heeft geen getuige die het heeft gezien: de beheerder kan anderen een ander logboek tonen.",
  "Leaf {0} is in the checkpoint of {1} with 1 leaf.": "Blad {0} staat in het controlepunt van {1} met 1 blad.",
  "Leaf {0} is in the checkpoint of {1} with {2} leaves.":
    "Blad {0} staat in het controlepunt van {1} met {2} bladeren.",
  "The checkpoint is signed by the key of {0} in the policy.":
    "Het controlepunt is ondertekend met de sleutel van {0} in het beleid.",
  "The signatures were not verified.": "De handtekeningen zijn niet gecontroleerd.",
  Event: "Gebeurtenis",
  When: "Wanneer",
  Voucher: "Voucher",
  "{0}, entry {1}": "{0}, vermelding {1}",
  Reference: "Referentie",
  "Price in USD": "Prijs in USD",
  Note: "Opmerking",
  Sandbox: "Sandbox",
  "true: the voucher is for tests and has no value": "true: de voucher is voor tests en heeft geen waarde",
  "Yes: ": "Ja: ",
  "No: ": "Nee: ",
  "Note: ": "Let op: ",
  "This receipt contradicts the history on this page. Keep it.":
    "Dit ontvangstbewijs is in strijd met de geschiedenis op deze pagina. Bewaar het.",
  "This browser cannot verify signatures. The receipt is not verified":
    "Deze browser kan geen handtekeningen controleren. Het ontvangstbewijs is niet gecontroleerd",
  "This receipt is valid under this policy, but it is of another voucher":
    "Dit ontvangstbewijs is geldig volgens dit beleid, maar hoort bij een andere voucher",
  "This receipt is valid under this policy": "Dit ontvangstbewijs is geldig volgens dit beleid",
  "Ed25519 signatures need Chrome or Edge 137, Firefox 129 or Safari 17. Or use a script of the guide.":
    "Ed25519-handtekeningen vereisen Chrome of Edge 137, Firefox 129 of Safari 17. Of gebruik een script van de " +
    "handleiding.",
  "What the event says": "Wat de gebeurtenis zegt",
  "The exact text": "De precieze tekst",
  "There is nothing to verify. Paste a receipt first.": "Er valt niets te controleren. Plak eerst een ontvangstbewijs.",
  "Whom do you trust? Paste your copy of the policy, or the log's key.":
    "Wie vertrouwt u? Plak uw kopie van het beleid, of de sleutel van het logboek.",
  "A receipt begins with the line c2sp.org/tlog-proof@v1. Copy its whole text.":
    "Een ontvangstbewijs begint met de regel c2sp.org/tlog-proof@v1. Kopieer de hele tekst.",
  "This is not a receipt": "Dit is geen ontvangstbewijs",
  "The policy cannot be read. The receipt is not verified":
    "Het beleid is niet leesbaar. Het ontvangstbewijs is niet gecontroleerd",
  "This receipt is of a log that the policy does not name. Do not rely on it":
    "Dit ontvangstbewijs is van een logboek dat niet in het beleid staat. Vertrouw er niet op",
  "This receipt is not valid. Do not rely on it": "Dit ontvangstbewijs is niet geldig. Vertrouw er niet op",
  "This browser cannot verify receipts here": "Deze browser kan hier geen ontvangstbewijzen controleren",
  "Browsers compute hashes and signatures on secure connections only. Open the https address of this page.":
    "Browsers berekenen hashes en handtekeningen alleen via beveiligde verbindingen. Open het https-adres van " +
    "deze pagina.",
  Copy: "Kopiëren",
  Copied: "Gekopieerd",
  "Press Ctrl+C": "Druk op Ctrl+C",
  "this code": "deze code",
};
