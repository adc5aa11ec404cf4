import type { ScriptTexts } from "./script-texts.ts";

export const SCRIPT_DE: ScriptTexts = {
  "Entry {0} is missing before it.": "Vor ihm fehlt Eintrag {0}.",
  "Its hash is not a SHA-256 hash.": "Sein Hash ist kein SHA-256-Hash.",
  "It is not sealed, but has a hash.": "Er ist nicht versiegelt, hat aber einen Hash.",
  "It is sealed, but the previous entry is not.": "Er ist versiegelt, der vorige Eintrag aber nicht.",
  "It is the first entry, but its previous hash is not 64 zeros.":
    "Er ist der erste Eintrag, aber sein voriger Hash besteht nicht aus 64 Nullen.",
  "Its previous hash is not the hash of entry {0}.": "Sein voriger Hash ist nicht der Hash von Eintrag {0}.",
  "It erases an entry that is not an earlier one.": "Er löscht einen Eintrag, der kein früherer ist.",
  "Its content is missing or was changed, and no later entry says that it was erased.":
    "Sein Inhalt fehlt oder wurde geändert, und kein späterer Eintrag sagt, dass er gelöscht wurde.",
  "It was erased, but no later entry says so.": "Er wurde gelöscht, aber kein späterer Eintrag sagt es.",
  "The start of the chain": "Der Anfang der Kette",
  "Linked to entry {0}": "Verbunden mit Eintrag {0}",
  "This history is broken. Do not rely on it.": "Dieser Verlauf ist beschädigt. Verlassen Sie sich nicht darauf.",
  "Entry {0}: {1}": "Eintrag {0}: {1}",
  "The sealed entries are intact.": "Die versiegelten Einträge sind unversehrt.",
  "The history is intact.": "Der Verlauf ist unversehrt.",
  "Every link on this page is valid.": "Jede Verbindung auf dieser Seite stimmt.",
  "Your browser checked this just now.": "Das hat Ihr Browser gerade geprüft.",
  "Entry 1 starts the chain.": "Mit Eintrag 1 beginnt die Kette.",
  "Entry 1 starts the chain, and each later entry contains the hash of the previous one.":
    "Mit Eintrag 1 beginnt die Kette, und jeder spätere Eintrag enthält den Hash des vorigen.",
  "Entry {0} contains the hash of the previous entry.": "Eintrag {0} enthält den Hash des vorigen Eintrags.",
  "Entries {0} to {1} each contain the hash of the previous entry.":
    "Die Einträge {0} bis {1} enthalten jeweils den Hash des vorigen Eintrags.",
  "{0} your time": "{0} Ihrer Zeit",
  "{0} local time": "{0} Ortszeit",
  "This page looks again by itself.": "Diese Seite sieht von selbst wieder nach.",
  "voucher id": "Kennung des Gutscheins",
  "Copy {0}": "{0} kopieren",
  "Copy {0} of entry {1}": "{0} von Eintrag {1} kopieren",
  "Its SHA-256 is the hash of entry {0}.": "Ihr SHA-256 ist der Hash von Eintrag {0}.",
  "Its sequence number is {0}.": "Ihre laufende Nummer ist {0}.",
  "Its previous hash is the one in the chain.": "Ihr voriger Hash ist der in der Kette.",
  "It is about this voucher.": "Sie handelt von diesem Gutschein.",
  "Its event and time are those in the chain.": "Ihr Ereignis und ihre Zeit sind die in der Kette.",
  "This is entry {0}, “{1}”, exactly as it was sealed": "Das ist Eintrag {0}, „{1}“, genau wie er versiegelt wurde",
  "This is the text of entry {0}, but the chain on this page differs":
    "Das ist der Text von Eintrag {0}, aber die Kette auf dieser Seite weicht ab",
  "This is not the payload of an entry": "Das ist nicht die Payload eines Eintrags",
  "It has the hash of no entry on this page and is not the text of an entry. \
Copy the whole payload field and nothing else.":
    "Kein Eintrag auf dieser Seite hat ihren Hash, und sie ist nicht der Text eines Eintrags. Kopieren Sie das " +
    "ganze Feld payload und sonst nichts.",
  "It names {0}, but this is the history of {1}.": "Sie nennt {0}, aber dies ist der Verlauf von {1}.",
  "This payload is about another voucher": "Diese Payload handelt von einem anderen Gutschein",
  "Paste it on the page of the history that shows this entry.":
    "Fügen Sie sie auf der Seite des Verlaufs ein, die diesen Eintrag zeigt.",
  "This entry is not on this page": "Dieser Eintrag steht nicht auf dieser Seite",
  "This entry is not sealed yet": "Dieser Eintrag ist noch nicht versiegelt",
  "That entry has no hash yet.": "Dieser Eintrag hat noch keinen Hash.",
  "This is not what was sealed as entry {0}": "Das ist nicht, was als Eintrag {0} versiegelt wurde",
  "But its hash is not that entry's. One changed character is enough, and so is reformatted JSON: \
paste the text exactly as the API returned it.":
    "Aber ihr Hash ist nicht der dieses Eintrags. Ein geändertes Zeichen genügt, ebenso neu formatiertes JSON: " +
    "Fügen Sie den Text genau so ein, wie ihn die API geliefert hat.",
  "This browser cannot compute hashes here": "Dieser Browser kann hier keine Hashes berechnen",
  "Browsers compute hashes on secure connections only, and this page was loaded over plain http. \
Open its https address.":
    "Browser berechnen Hashes nur über sichere Verbindungen, und diese Seite wurde über einfaches http geladen. " +
    "Öffnen Sie ihre https-Adresse.",
  "There is nothing to hash. Paste a payload first.": "Es gibt nichts zu berechnen. Fügen Sie zuerst eine Payload ein.",
  "SHA-256 of what you pasted": "SHA-256 des eingefügten Textes",
  "Go to entry {0}": "Zu Eintrag {0}",
  "It is entry {0} of the history on this page.": "Das ist Eintrag {0} des Verlaufs auf dieser Seite.",
  "It is about another voucher: {0}.": "Es geht um einen anderen Gutschein: {0}.",
  unknown: "unbekannt",
  "Its entry {0} is not on this page, or not sealed.":
    "Sein Eintrag {0} steht nicht auf dieser Seite oder ist nicht versiegelt.",
  "It is not entry {0} of the history on this page, which has another hash.":
    "Das ist nicht Eintrag {0} des Verlaufs auf dieser Seite, der einen anderen Hash hat.",
  "{0} saw it at {1}.": "{0} hat ihn gesehen: {1}.",
  "It says that {0} saw it at {1}.": "Er gibt an, dass {0} ihn gesehen hat: {1}.",
  "The policy has no witness that saw it: the operator could show another log to others.":
    "Die Richtlinie hat keinen Zeugen, der ihn gesehen hat: Der Betreiber könnte anderen ein anderes Verzeichnis " +
    "zeigen.",
  "Leaf {0} is in the checkpoint of {1} with 1 leaf.": "Blatt {0} ist im Prüfpunkt von {1} mit 1 Blatt.",
  "Leaf {0} is in the checkpoint of {1} with {2} leaves.": "Blatt {0} ist im Prüfpunkt von {1} mit {2} Blättern.",
  "The checkpoint is signed by the key of {0} in the policy.":
    "Der Prüfpunkt ist mit dem Schlüssel von {0} in der Richtlinie signiert.",
  "The signatures were not verified.": "Die Signaturen wurden nicht geprüft.",
  Event: "Ereignis",
  When: "Wann",
  Voucher: "Gutschein",
  "{0}, entry {1}": "{0}, Eintrag {1}",
  Reference: "Bestellnummer",
  "Price in USD": "Preis in USD",
  Note: "Notiz",
  Sandbox: "Sandbox",
  "true: the voucher is for tests and has no value": "true: Der Gutschein ist zum Testen und hat keinen Wert",
  "Yes: ": "Ja: ",
  "No: ": "Nein: ",
  "Note: ": "Hinweis: ",
  "This receipt contradicts the history on this page. Keep it.":
    "Dieser Beleg widerspricht dem Verlauf auf dieser Seite. Bewahren Sie ihn auf.",
  "This browser cannot verify signatures. The receipt is not verified":
    "Dieser Browser kann keine Signaturen prüfen. Der Beleg ist nicht geprüft",
  "This receipt is valid under this policy, but it is of another voucher":
    "Dieser Beleg ist nach dieser Richtlinie gültig, gehört aber zu einem anderen Gutschein",
  "This receipt is valid under this policy": "Dieser Beleg ist nach dieser Richtlinie gültig",
  "Ed25519 signatures need Chrome or Edge 137, Firefox 129 or Safari 17. Or use a script of the guide.":
    "Ed25519-Signaturen brauchen Chrome oder Edge 137, Firefox 129 oder Safari 17. Oder verwenden Sie ein Skript " +
    "des Leitfadens.",
  "What the event says": "Was das Ereignis aussagt",
  "The exact text": "Der genaue Text",
  "There is nothing to verify. Paste a receipt first.": "Es gibt nichts zu prüfen. Fügen Sie zuerst einen Beleg ein.",
  "Whom do you trust? Paste your copy of the policy, or the log's key.":
    "Wem vertrauen Sie? Fügen Sie Ihre Kopie der Richtlinie oder den Schlüssel des Verzeichnisses ein.",
  "A receipt begins with the line c2sp.org/tlog-proof@v1. Copy its whole text.":
    "Ein Beleg beginnt mit der Zeile c2sp.org/tlog-proof@v1. Kopieren Sie seinen ganzen Text.",
  "This is not a receipt": "Das ist kein Beleg",
  "The policy cannot be read. The receipt is not verified":
    "Die Richtlinie ist nicht lesbar. Der Beleg ist nicht geprüft",
  "This receipt is of a log that the policy does not name. Do not rely on it":
    "Dieser Beleg stammt von einem Verzeichnis, das die Richtlinie nicht nennt. Verlassen Sie sich nicht darauf",
  "This receipt is not valid. Do not rely on it": "Dieser Beleg ist nicht gültig. Verlassen Sie sich nicht darauf",
  "This browser cannot verify receipts here": "Dieser Browser kann hier keine Belege prüfen",
  "Browsers compute hashes and signatures on secure connections only. Open the https address of this page.":
    "Browser berechnen Hashes und Signaturen nur über sichere Verbindungen. Öffnen Sie die https-Adresse dieser Seite.",
  Copy: "Kopieren",
  Copied: "Kopiert",
  "Press Ctrl+C": "Strg+C drücken",
  "this code": "diesen Code",
};
