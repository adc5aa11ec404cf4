import type { ScriptTexts } from "./script-texts.ts";

export const SCRIPT_FR: ScriptTexts = {
  "Entry {0} is missing before it.": "L'entrée {0} manque avant elle.",
  "Its hash is not a SHA-256 hash.": "Son empreinte n'est pas une empreinte SHA-256.",
  "It is not sealed, but has a hash.": "Elle n'est pas scellée, mais elle a une empreinte.",
  "It is sealed, but the previous entry is not.": "Elle est scellée, mais l'entrée précédente ne l'est pas.",
  "It is the first entry, but its previous hash is not 64 zeros.":
    "C'est la première entrée, mais son empreinte précédente n'est pas faite de 64 zéros.",
  "Its previous hash is not the hash of entry {0}.": "Son empreinte précédente n'est pas celle de l'entrée {0}.",
  "It erases an entry that is not an earlier one.": "Elle efface une entrée qui n'est pas antérieure.",
  "Its content is missing or was changed, and no later entry says that it was erased.":
    "Son contenu manque ou a été modifié, et aucune entrée ultérieure ne dit qu'il a été effacé.",
  "It was erased, but no later entry says so.": "Elle a été effacée, mais aucune entrée ultérieure ne le dit.",
  "The start of the chain": "Le début de la chaîne",
  "Linked to entry {0}": "Liée à l'entrée {0}",
  "This history is broken. Do not rely on it.": "Cet historique est rompu. Ne vous y fiez pas.",
  "Entry {0}: {1}": "Entrée {0}\u00a0: {1}",
  "The sealed entries are intact.": "Les entrées scellées sont intactes.",
  "The history is intact.": "L'historique est intact.",
  "Every link on this page is valid.": "Tous les liens de cette page sont valables.",
  "Your browser checked this just now.": "Votre navigateur vient de le vérifier.",
  "Entry 1 starts the chain.": "L'entrée 1 commence la chaîne.",
  "Entry 1 starts the chain, and each later entry contains the hash of the previous one.":
    "L'entrée 1 commence la chaîne, et chaque entrée suivante contient l'empreinte de la précédente.",
  "Entry {0} contains the hash of the previous entry.": "L'entrée {0} contient l'empreinte de l'entrée précédente.",
  "Entries {0} to {1} each contain the hash of the previous entry.":
    "Les entrées {0} à {1} contiennent chacune l'empreinte de l'entrée précédente.",
  "{0} your time": "{0}, votre heure",
  "{0} local time": "{0}, heure locale",
  "This page looks again by itself.": "Cette page vérifie à nouveau d'elle-même.",
  "voucher id": "identifiant du bon",
  "Copy {0}": "Copier\u00a0: {0}",
  "Copy {0} of entry {1}": "Copier\u00a0: {0} de l'entrée {1}",
  "Its SHA-256 is the hash of entry {0}.": "Son SHA-256 est l'empreinte de l'entrée {0}.",
  "Its sequence number is {0}.": "Son numéro d'ordre est {0}.",
  "Its previous hash is the one in the chain.": "Son empreinte précédente est celle de la chaîne.",
  "It is about this voucher.": "Elle concerne ce bon.",
  "Its event and time are those in the chain.": "Son événement et son heure sont ceux de la chaîne.",
  "This is entry {0}, “{1}”, exactly as it was sealed":
    "C'est l'entrée {0}, «\u00a0{1}\u00a0», exactement telle qu'elle a été scellée",
  "This is the text of entry {0}, but the chain on this page differs":
    "C'est le texte de l'entrée {0}, mais la chaîne de cette page diffère",
  "This is not the payload of an entry": "Ce n'est pas la charge utile d'une entrée",
  "It has the hash of no entry on this page and is not the text of an entry. \
Copy the whole payload field and nothing else.":
    "Aucune entrée de cette page n'a son empreinte, et ce n'est pas le texte d'une entrée. Copiez tout le champ " +
    "payload et rien d'autre.",
  "It names {0}, but this is the history of {1}.": "Elle nomme {0}, mais ceci est l'historique de {1}.",
  "This payload is about another voucher": "Cette charge utile concerne un autre bon",
  "Paste it on the page of the history that shows this entry.":
    "Collez-la sur la page de l'historique qui montre cette entrée.",
  "This entry is not on this page": "Cette entrée n'est pas sur cette page",
  "This entry is not sealed yet": "Cette entrée n'est pas encore scellée",
  "That entry has no hash yet.": "Cette entrée n'a pas encore d'empreinte.",
  "This is not what was sealed as entry {0}": "Ce n'est pas ce qui a été scellé comme entrée {0}",
  "But its hash is not that entry's. One changed character is enough, and so is reformatted JSON: \
paste the text exactly as the API returned it.":
    "Mais son empreinte n'est pas celle de cette entrée. Un seul caractère modifié suffit, de même que du JSON " +
    "remis en forme. Collez le texte exactement tel que l'API l'a renvoyé.",
  "This browser cannot compute hashes here": "Ce navigateur ne peut pas calculer d'empreintes ici",
  "Browsers compute hashes on secure connections only, and this page was loaded over plain http. \
Open its https address.":
    "Les navigateurs ne calculent des empreintes que sur des connexions sécurisées, et cette page a été chargée " +
    "en simple http. Ouvrez son adresse https.",
  "There is nothing to hash. Paste a payload first.": "Il n'y a rien à calculer. Collez d'abord une charge utile.",
  "SHA-256 of what you pasted": "SHA-256 du texte collé",
  "Go to entry {0}": "Aller à l'entrée {0}",
  "It is entry {0} of the history on this page.": "C'est l'entrée {0} de l'historique de cette page.",
  "It is about another voucher: {0}.": "Il concerne un autre bon\u00a0: {0}.",
  unknown: "inconnu",
  "Its entry {0} is not on this page, or not sealed.": "Son entrée {0} n'est pas sur cette page, ou n'est pas scellée.",
  "It is not entry {0} of the history on this page, which has another hash.":
    "Ce n'est pas l'entrée {0} de l'historique de cette page, qui a une autre empreinte.",
  "{0} saw it at {1}.": "{0} l'a vu\u00a0: {1}.",
  "It says that {0} saw it at {1}.": "Il indique que {0} l'a vu\u00a0: {1}.",
  "The policy has no witness that saw it: the operator could show another log to others.":
    "Les règles n'ont aucun témoin qui l'ait vu. L'exploitant pourrait montrer un autre journal à d'autres.",
  "Leaf {0} is in the checkpoint of {1} with 1 leaf.":
    "La feuille {0} est dans le point de contrôle de {1}, qui a 1 feuille.",
  "Leaf {0} is in the checkpoint of {1} with {2} leaves.":
    "La feuille {0} est dans le point de contrôle de {1}, qui a {2} feuilles.",
  "The checkpoint is signed by the key of {0} in the policy.":
    "Le point de contrôle est signé par la clé de {0} indiquée dans les règles.",
  "The signatures were not verified.": "Les signatures n'ont pas été vérifiées.",
  Event: "Événement",
  When: "Quand",
  Voucher: "Bon",
  "{0}, entry {1}": "{0}, entrée {1}",
  Reference: "Référence",
  "Price in USD": "Prix en USD",
  Note: "Remarque",
  Sandbox: "Bac à sable",
  "true: the voucher is for tests and has no value": "true, le bon sert aux tests et n'a aucune valeur",
  "Yes: ": "Oui\u00a0: ",
  "No: ": "Non\u00a0: ",
  "Note: ": "À noter\u00a0: ",
  "This receipt contradicts the history on this page. Keep it.":
    "Ce reçu contredit l'historique de cette page. Conservez-le.",
  "This browser cannot verify signatures. The receipt is not verified":
    "Ce navigateur ne peut pas vérifier les signatures. Le reçu n'est pas vérifié",
  "This receipt is valid under this policy, but it is of another voucher":
    "Ce reçu est valable selon ces règles, mais il concerne un autre bon",
  "This receipt is valid under this policy": "Ce reçu est valable selon ces règles",
  "Ed25519 signatures need Chrome or Edge 137, Firefox 129 or Safari 17. Or use a script of the guide.":
    "Les signatures Ed25519 demandent Chrome ou Edge 137, Firefox 129 ou Safari 17. Vous pouvez aussi utiliser un " +
    "script du guide.",
  "What the event says": "Ce que dit l'événement",
  "The exact text": "Le texte exact",
  "There is nothing to verify. Paste a receipt first.": "Il n'y a rien à vérifier. Collez d'abord un reçu.",
  "Whom do you trust? Paste your copy of the policy, or the log's key.":
    "À qui faites-vous confiance\u00a0? Collez votre copie des règles, ou la clé du journal.",
  "A receipt begins with the line c2sp.org/tlog-proof@v1. Copy its whole text.":
    "Un reçu commence par la ligne c2sp.org/tlog-proof@v1. Copiez tout son texte.",
  "This is not a receipt": "Ce n'est pas un reçu",
  "The policy cannot be read. The receipt is not verified": "Les règles sont illisibles. Le reçu n'est pas vérifié",
  "This receipt is of a log that the policy does not name. Do not rely on it":
    "Ce reçu vient d'un journal que les règles ne nomment pas. Ne vous y fiez pas",
  "This receipt is not valid. Do not rely on it": "Ce reçu n'est pas valable. Ne vous y fiez pas",
  "This browser cannot verify receipts here": "Ce navigateur ne peut pas vérifier de reçus ici",
  "Browsers compute hashes and signatures on secure connections only. Open the https address of this page.":
    "Les navigateurs ne calculent des empreintes et des signatures que sur des connexions sécurisées. Ouvrez " +
    "l'adresse https de cette page.",
  Copy: "Copier",
  Copied: "Copié",
  "Press Ctrl+C": "Appuyez sur Ctrl+C",
  "this code": "ce code",
};
