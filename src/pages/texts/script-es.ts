import type { ScriptTexts } from "./script-texts.ts";

export const SCRIPT_ES: ScriptTexts = {
  "Entry {0} is missing before it.": "Antes de ella falta la entrada {0}.",
  "Its hash is not a SHA-256 hash.": "Su huella no es una huella SHA-256.",
  "It is not sealed, but has a hash.": "No está sellada, pero tiene una huella.",
  "It is sealed, but the previous entry is not.": "Está sellada, pero la entrada anterior no lo está.",
  "It is the first entry, but its previous hash is not 64 zeros.":
    "Es la primera entrada, pero su huella anterior no son 64 ceros.",
  "Its previous hash is not the hash of entry {0}.": "Su huella anterior no es la de la entrada {0}.",
  "It erases an entry that is not an earlier one.": "Borra una entrada que no es anterior.",
  "Its content is missing or was changed, and no later entry says that it was erased.":
    "Falta su contenido o se modificó, y ninguna entrada posterior dice que se borró.",
  "It was erased, but no later entry says so.": "Se borró, pero ninguna entrada posterior lo dice.",
  "The start of the chain": "El comienzo de la cadena",
  "Linked to entry {0}": "Enlazada con la entrada {0}",
  "This history is broken. Do not rely on it.": "Este historial está roto. No se fíe de él.",
  "Entry {0}: {1}": "Entrada {0}: {1}",
  "The sealed entries are intact.": "Las entradas selladas están intactas.",
  "The history is intact.": "El historial está intacto.",
  "Every link on this page is valid.": "Todos los enlaces de esta página son válidos.",
  "Your browser checked this just now.": "Su navegador acaba de comprobarlo.",
  "Entry 1 starts the chain.": "La entrada 1 comienza la cadena.",
  "Entry 1 starts the chain, and each later entry contains the hash of the previous one.":
    "La entrada 1 comienza la cadena, y cada entrada posterior contiene la huella de la anterior.",
  "Entry {0} contains the hash of the previous entry.": "La entrada {0} contiene la huella de la entrada anterior.",
  "Entries {0} to {1} each contain the hash of the previous entry.":
    "Cada una de las entradas {0} a {1} contiene la huella de la entrada anterior.",
  "{0} your time": "{0}, hora de usted",
  "{0} local time": "{0}, hora local",
  "This page looks again by itself.": "Esta página vuelve a comprobarlo por sí sola.",
  "voucher id": "identificador del vale",
  "Copy {0}": "Copiar: {0}",
  "Copy {0} of entry {1}": "Copiar: {0} de la entrada {1}",
  "Its SHA-256 is the hash of entry {0}.": "Su SHA-256 es la huella de la entrada {0}.",
  "Its sequence number is {0}.": "Su número de orden es {0}.",
  "Its previous hash is the one in the chain.": "Su huella anterior es la de la cadena.",
  "It is about this voucher.": "Trata de este vale.",
  "Its event and time are those in the chain.": "Su suceso y su hora son los de la cadena.",
  "This is entry {0}, “{1}”, exactly as it was sealed": "Esta es la entrada {0}, «{1}», exactamente como se selló",
  "This is the text of entry {0}, but the chain on this page differs":
    "Este es el texto de la entrada {0}, pero la cadena de esta página es distinta",
  "This is not the payload of an entry": "Esto no es la carga de una entrada",
  "It has the hash of no entry on this page and is not the text of an entry. \
Copy the whole payload field and nothing else.":
    "Ninguna entrada de esta página tiene su huella, y no es el texto de una entrada. Copie todo el campo payload " +
    "y nada más.",
  "It names {0}, but this is the history of {1}.": "Nombra a {0}, pero este es el historial de {1}.",
  "This payload is about another voucher": "Esta carga trata de otro vale",
  "Paste it on the page of the history that shows this entry.":
    "Péguela en la página del historial que muestra esta entrada.",
  "This entry is not on this page": "Esta entrada no está en esta página",
  "This entry is not sealed yet": "Esta entrada todavía no está sellada",
  "That entry has no hash yet.": "Esa entrada todavía no tiene huella.",
  "This is not what was sealed as entry {0}": "Esto no es lo que se selló como entrada {0}",
  "But its hash is not that entry's. One changed character is enough, and so is reformatted JSON: \
paste the text exactly as the API returned it.":
    "Pero su huella no es la de esa entrada. Basta con un carácter cambiado, y también con un JSON con otro " +
    "formato: pegue el texto exactamente como lo devolvió la API.",
  "This browser cannot compute hashes here": "Este navegador no puede calcular huellas aquí",
  "Browsers compute hashes on secure connections only, and this page was loaded over plain http. \
Open its https address.":
    "Los navegadores solo calculan huellas en conexiones seguras, y esta página se cargó por http sin cifrar. " +
    "Abra su dirección https.",
  "There is nothing to hash. Paste a payload first.": "No hay nada que calcular. Pegue primero una carga.",
  "SHA-256 of what you pasted": "SHA-256 de lo que ha pegado",
  "Go to entry {0}": "Ir a la entrada {0}",
  "It is entry {0} of the history on this page.": "Es la entrada {0} del historial de esta página.",
  "It is about another voucher: {0}.": "Trata de otro vale: {0}.",
  unknown: "desconocido",
  "Its entry {0} is not on this page, or not sealed.": "Su entrada {0} no está en esta página, o no está sellada.",
  "It is not entry {0} of the history on this page, which has another hash.":
    "No es la entrada {0} del historial de esta página, que tiene otra huella.",
  "{0} saw it at {1}.": "{0} lo vio: {1}.",
  "It says that {0} saw it at {1}.": "Dice que {0} lo vio: {1}.",
  "The policy has no witness that saw it: the operator could show another log to others.":
    "Las reglas no tienen ningún testigo que lo haya visto: el operador podría mostrar otro registro a otros.",
  "Leaf {0} is in the checkpoint of {1} with 1 leaf.": "La hoja {0} está en el punto de control de {1}, con 1 hoja.",
  "Leaf {0} is in the checkpoint of {1} with {2} leaves.":
    "La hoja {0} está en el punto de control de {1}, con {2} hojas.",
  "The checkpoint is signed by the key of {0} in the policy.":
    "El punto de control está firmado con la clave de {0} que figura en las reglas.",
  "The signatures were not verified.": "Las firmas no se han comprobado.",
  Event: "Suceso",
  When: "Cuándo",
  Voucher: "Vale",
  "{0}, entry {1}": "{0}, entrada {1}",
  Reference: "Referencia",
  "Price in USD": "Precio en USD",
  Note: "Nota",
  Sandbox: "Entorno de pruebas",
  "true: the voucher is for tests and has no value": "true: el vale es para pruebas y no tiene ningún valor",
  "Yes: ": "Sí: ",
  "No: ": "No: ",
  "Note: ": "Aviso: ",
  "This receipt contradicts the history on this page. Keep it.":
    "Este recibo contradice el historial de esta página. Guárdelo.",
  "This browser cannot verify signatures. The receipt is not verified":
    "Este navegador no puede comprobar firmas. El recibo no está comprobado",
  "This receipt is valid under this policy, but it is of another voucher":
    "Este recibo es válido según estas reglas, pero es de otro vale",
  "This receipt is valid under this policy": "Este recibo es válido según estas reglas",
  "Ed25519 signatures need Chrome or Edge 137, Firefox 129 or Safari 17. Or use a script of the guide.":
    "Las firmas Ed25519 necesitan Chrome o Edge 137, Firefox 129 o Safari 17. También puede usar un programa de " +
    "la guía.",
  "What the event says": "Qué dice el suceso",
  "The exact text": "El texto exacto",
  "There is nothing to verify. Paste a receipt first.": "No hay nada que comprobar. Pegue primero un recibo.",
  "Whom do you trust? Paste your copy of the policy, or the log's key.":
    "¿En quién confía? Pegue su copia de las reglas, o la clave del registro.",
  "A receipt begins with the line c2sp.org/tlog-proof@v1. Copy its whole text.":
    "Un recibo empieza con la línea c2sp.org/tlog-proof@v1. Copie todo su texto.",
  "This is not a receipt": "Esto no es un recibo",
  "The policy cannot be read. The receipt is not verified":
    "Las reglas no se pueden leer. El recibo no está comprobado",
  "This receipt is of a log that the policy does not name. Do not rely on it":
    "Este recibo es de un registro que las reglas no nombran. No se fíe de él",
  "This receipt is not valid. Do not rely on it": "Este recibo no es válido. No se fíe de él",
  "This browser cannot verify receipts here": "Este navegador no puede comprobar recibos aquí",
  "Browsers compute hashes and signatures on secure connections only. Open the https address of this page.":
    "Los navegadores solo calculan huellas y firmas en conexiones seguras. Abra la dirección https de esta página.",
  Copy: "Copiar",
  Copied: "Copiado",
  "Press Ctrl+C": "Pulse Ctrl+C",
  "this code": "este código",
};
