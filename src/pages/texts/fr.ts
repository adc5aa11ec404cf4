import { html } from "../html.ts";
import type { PageTexts } from "./page-texts.ts";

const UNUSED = "Il n'a pas été utilisé.";

export const FR: PageTexts = {
  frame: {
    skip: "Aller au contenu",
    site: "Site",
    guide: "Guide (en anglais)",
    reference: "Référence de l'API (en anglais)",
    version: (version) => `Partner Voucher API, version ${version}`,
    sandbox: html`<strong>Bac à sable.</strong> Ceci est un bon de test. Il n'a aucune valeur.`,
    from: (product, brand) => html`${product} de ${brand}`,
    months: (months) => `${months} mois`,
    more: "Plus",
  },
  error: {
    headings: {
      400: "Adresse non valable",
      401: "Veuillez vous connecter",
      403: "Non autorisé",
      404: "Page introuvable",
      429: "Trop de demandes",
      503: "Indisponible pour le moment",
    },
    otherHeading: "Un problème est survenu",
    unknownVoucher: "Bon introuvable",
    notLogged: "Pas encore dans le journal",
    looksAgain: "Cette page vérifie à nouveau d'elle-même.",
    checkAnother: "Vérifier un autre bon",
    report: "Si vous signalez ce problème, indiquez le numéro de la demande\u00a0:",
    start: "Aller à la page d'accueil",
  },
  check: {
    title: "Vérifier un bon",
    lead:
      "Voyez ce qui est arrivé à un bon et si son historique est intact. Le lien ou l'identifiant figure en général " +
      "sur le ticket de caisse.",
    label: "Lien de vérification ou identifiant du bon",
    button: "Vérifier",
    notAnId:
      "Ce n'est ni un lien de vérification ni l'identifiant d'un bon. L'identifiant commence par vch_. Le code " +
      "d'un bon ne peut pas être vérifié ici, adressez-vous à la boutique.",
  },
  link: {
    title: (product, brand) => `${product} de ${brand}`,
    description: (product, brand) => `Un bon gratuit pour ${product} de ${brand}.`,
    lead: (brand) => html`Un parrain de ${brand} partage ce lien avec vous. Il vous donne droit à un bon gratuit.`,
    open: ["Disponible", "Chaque personne reçoit un bon."],
    windowClosed: ["Fermée", "Cette offre n'est pas ouverte pour le moment. Revenez plus tard."],
    soldOut: ["Épuisé", "Il ne reste plus de bons pour le moment."],
    now: "Actuellement",
    worth: "Valeur",
    lasts: "Durée",
    useBy: "À utiliser avant le",
    goOn: (host) => `Continuer vers ${host}`,
    how: "Comment l'obtenir",
    signIn: (brand) =>
      html`Connectez-vous à l'application ou à la boutique dans laquelle vous gardez vos bons de ${brand}.`,
    enter: "Ouvrez-y ce lien, ou saisissez son code\u00a0:",
    yours: "Le bon est à vous. Si vous le demandez à nouveau, vous recevez le même.",
    onPhone: "Sur votre téléphone",
    camera: "Visez ce code avec l'appareil photo de votre téléphone pour y ouvrir cette page.",
    forApp: "Pour l'application",
    claims: (token) => html`L'application demande le bon avec le jeton de son utilisateur connecté, dans ${token}.`,
    reference: "La référence de l'API décrit la réponse.",
  },
  listings: {
    title: "Place de marché",
    description: "Des bons à acheter.",
    lead: "Bons en vente. Vous les achetez dans l'application ou la boutique dans laquelle vous gardez vos bons.",
    none: "Il n'y a aucune offre ici.",
    insteadOf: (price) => `au lieu de ${price}`,
    lasting: (months) => `pour ${months}`,
    referrersOnly: "Réservé aux parrains",
    available: (count, more, until) =>
      html`Disponibles\u00a0: ${more ? "plus de " : ""}${count}. À utiliser avant le ${until}.`,
    next: "Autres bons",
  },
  events: {
    "voucher.instance.issued": { title: "Émis", sentence: "Le bon a été créé.", outcome: UNUSED },
    "voucher.instance.claimed": { title: "Obtenu", sentence: "Un utilisateur a obtenu le bon.", outcome: UNUSED },
    "voucher.instance.bought": { title: "Acheté", sentence: "Un utilisateur a acheté le bon.", outcome: UNUSED },
    "voucher.instance.redeemed": {
      title: "Utilisé",
      sentence: "Le bon a été utilisé lors d'un achat. Il ne peut plus être utilisé.",
    },
    "voucher.instance.voided": {
      title: "Annulé",
      sentence: "L'émetteur a annulé le bon. Il ne peut pas être utilisé.",
    },
    "voucher.instance.expired": { title: "Expiré", sentence: "Le bon n'a pas été utilisé avant sa date de fin." },
    "voucher.instance.erased": { title: "Effacé", sentence: "Le contenu d'entrées précédentes a été effacé." },
  },
  chain: {
    erased: (when, by) =>
      when === null
        ? html`Effacé par l'entrée ${by}, le hachage est conservé.`
        : html`Effacé le ${when}, le hachage de l'entrée est conservé.`,
    lost: "Son contenu manque ou a été modifié, et aucune entrée ultérieure ne dit qu'il a été effacé.",
    title: (id, sandbox) => `${sandbox ? "Bac à sable\u00a0: historique" : "Historique"} du bon ${id}`,
    description: "Ce qui est arrivé à un bon, entrée par entrée, et si son historique est intact.",
    heading: "Historique du bon",
    voucher: "Bon",
    noScript:
      "Avec JavaScript, cette page vérifie la chaîne des empreintes dans votre navigateur et affiche votre heure " +
      "locale. Sans JavaScript, comparez vous-même. L'empreinte précédente de chaque entrée doit être l'empreinte " +
      "de l'entrée du dessus.",
    happened: "Ce qui s'est passé",
    noneAfter: (sequence) => `Il n'y a aucune entrée après le numéro ${sequence}.`,
    columns: {
      number: "Numéro",
      what: "Ce qui s'est passé",
      when: "Quand",
      seal: "Sceau",
      leaf: "Feuille",
      hashes: "Empreintes",
    },
    sealed: "Scellé",
    pending: "En attente",
    notSealedYet: "Pas encore scellé",
    notInLog: "Pas encore dans le journal",
    leafNumber: (index) => `Feuille ${index}`,
    proof: "Preuve",
    ofEntry: (sequence) => `de l'entrée ${sequence}`,
    hash: "Empreinte",
    previousHash: "Empreinte précédente",
    excerpt: (first, last) => `Entrées ${first} à ${last} d'un historique plus long.`,
    on: (event, time) => html`${event} le ${time}.`,
    unsealed: (count) =>
      `${count === 1 ? "Une entrée n'est pas encore scellée" : `${count} entrées ne sont pas encore scellées`}. ` +
      "Cela prend en général quelques secondes.",
    lookAgain: "Vérifier à nouveau",
    checkpoint: (leaves) => `point de contrôle de ${leaves} ${leaves === 1 ? "feuille" : "feuilles"}`,
    allLogged: (log, checkpoint) => html`Chaque entrée affichée est dans le journal ${log}, jusqu'à son ${checkpoint}.`,
    someLogged: (missing, log, checkpoint) =>
      html`${missing.length === 1 ? "L'entrée" : "Les entrées"} ${missing.join(", ")} \
${missing.length === 1 ? "n'est" : "ne sont"} pas encore dans le journal ${log}, jusqu'à son ${checkpoint}. \
Cela prend en général quelques secondes.`,
    noneLogged: (log, checkpoint) =>
      html`Aucune entrée affichée n'est encore dans le journal ${log}, jusqu'à son ${checkpoint}. Cela prend en \
général quelques secondes.`,
    serves: (log, checkpoint) => html`Le journal ${log} publie son ${checkpoint}.`,
    continues: (sequence) => `Suite de l'entrée ${sequence}, qui a l'empreinte`,
    earlier: "Entrées antérieures",
    later: "Entrées suivantes",
    pages: "Pages de l'historique",
    payloadHeading: "Vérifier le texte d'une entrée",
    payloadAbout:
      "La charge utile est le texte exact d'une entrée, tel que l'API le renvoie au partenaire du bon. Collez-la " +
      "pour voir si c'est bien ce qui a été scellé. Elle reste sur cette page, rien n'est envoyé.",
    payloadLabel: "Charge utile d'une entrée",
    payloadButton: "Calculer l'empreinte et comparer",
    receiptHeading: "Avez-vous un reçu\u00a0?",
    receiptAbout:
      "Collez le reçu d'un bon, ou la preuve d'une entrée ci-dessus, pour voir ce qu'il prouve. Il reste sur " +
      "cette page, rien n'est envoyé.",
    receiptFile: "Le même outil sous forme de fichier",
    receiptFileAbout: "fonctionne depuis votre disque, sans ce service.",
    meaning: "Ce que cette page prouve, et ce qu'elle ne prouve pas",
    links:
      "Chaque entrée est scellée par une empreinte de son contenu et contient l'empreinte de l'entrée précédente. " +
      "Modifier, supprimer ou insérer une entrée par la suite rompt cette chaîne d'empreintes.",
    hashes:
      "Les empreintes sont de type SHA-256. Elles sont publiques, mais pas le contenu des entrées, car il " +
      "comprend le code du bon. Qui possède le texte d'une entrée peut en calculer l'empreinte et la comparer à " +
      "celle d'ici. Qui a noté une empreinte auparavant peut vérifier qu'elle n'a pas changé. Cette page ne peut " +
      "pas prouver qu'aucun événement n'a été omis avant d'être enregistré.",
    tree:
      "Le journal est un arbre unique des entrées de tous les bons, que d'autres conservent et comparent. Un reçu " +
      "ou une preuve montre qu'une entrée y figure.",
    treeVerify: "Vérifiez-le ici, ou",
    treeTool: "avec votre propre outil",
    preserved: (time) =>
      html`Le texte de chaque entrée est conservé sans changement depuis le ${time}. La même chaîne pour les \
programmes\u00a0:`,
  },
  receipt: {
    label: "Reçu",
    policy: "Règles\u00a0: le journal et les témoins auxquels vous faites confiance",
    served:
      "Voici les règles que publie le service. Comparez leurs clés avec votre contrat, ou collez votre propre " +
      "copie. Des règles fournies avec la preuve ne prouvent rien.",
    button: "Vérifier le reçu",
  },
  portal: {
    name: "Portail",
    signIn:
      "Saisissez une clé d'API de votre organisation comme mot de passe. Le nom d'utilisateur est libre. La clé " +
      "doit pouvoir consulter les bons et ne doit pas pouvoir les utiliser.",
    overview: "Vue d'ensemble",
    redemptions: "Utilisations",
    webhooks: "Webhooks",
    sandbox: html`<strong>Bac à sable.</strong> Ce sont des bons de test. Ils n'ont aucune valeur.`,
    find: "Chercher une commande",
    findHelp: "Par votre référence de commande, le code d'un bon ou un code d'utilisation.",
    findButton: "Chercher",
    yourOrganization: "Votre organisation",
    upTo: (time) => html`Utilisations jusqu'au ${time}.`,
    utc: "Les jours et les mois sont en UTC.",
    total: (redemptions, count, value) => `${count} ${redemptions <= 1 ? "utilisation" : "utilisations"}, ${value}`,
    today: (day) => `Aujourd'hui, ${day}`,
    yesterday: (day) => `Hier, ${day}`,
    month: (month) => `Ce mois-ci, ${month}`,
    eachOfToday: "Toutes celles d'aujourd'hui",
    eachOfYesterday: "Toutes celles d'hier",
    days: (count) => `${count} jours`,
    plot: "Utilisations par jour, avec les nombres du tableau",
    perDay: "Utilisations par jour",
    highest: (until, count) => `Utilisations par jour jusqu'au ${until}. La barre la plus haute est de ${count}.`,
    columns: {
      day: "Jour",
      redemptions: "Utilisations",
      sum: "Somme",
      product: "Produit",
      key: "Clé",
      redeemed: "Utilisé",
      reference: "Référence",
      value: "Valeur",
      redeemCode: "Code d'utilisation",
      status: "Statut",
      validUntil: "Valable jusqu'au",
      order: "Commande",
    },
    by: (period, column) => `${period}, par ${column.toLowerCase()}`,
    others: (count) => `${count} autres`,
    none: "Il n'y en a aucune.",
    ofDay: (day) => `Utilisations du ${day}`,
    onDay: "ce jour-là en UTC.",
    endsAt: (time) => html`jusqu'au ${time}. Le jour se termine à 00:00 UTC.`,
    csv: "Le jour au format CSV",
    anotherDay: "Un autre jour",
    show: "Afficher",
    dayBefore: "Le jour précédent",
    dayAfter: "Le jour suivant",
    eachOfMonth: "Chaque jour de ce mois",
    wholeMonth: "Le mois entier",
    ofMonth: (month) => `Utilisations du mois ${month}`,
    inMonth: "ce mois-là en UTC.",
    monthEnds: (time) => html`jusqu'au ${time}. Le mois n'est pas terminé.`,
    monthCsv: "Le mois au format CSV",
    anotherMonth: "Un autre mois",
    monthBefore: "Le mois précédent",
    monthAfter: "Le mois suivant",
    next: "Utilisations suivantes de ce jour",
    facts: { voucher: "Bon", publicHistory: "Historique public", serial: (serial) => `numéro de série ${serial}` },
    payload: "Charge utile",
    entry: (sequence) => `Entrée ${sequence}`,
    byActor: "par",
    receipt: "Reçu",
    noReceipt:
      "Il n'y a pas encore de reçu, car le journal public n'a pas encore cette utilisation. Cela prend en général " +
      "quelques secondes, si le service tient un journal.",
    receiptAbout: "Prouve l'utilisation sans ce service.",
    download: "Télécharger le reçu",
    noScript: "Pour le vérifier sur cette page, il faut JavaScript.",
    otherTools: "Il existe d'autres outils",
    nothingFound: "Rien trouvé",
    found: "Trouvé",
    vouchersFound: "Bons trouvés",
    noOrder: "aucune",
    noReference: "Aucune commande de votre organisation n'a cette référence, et aucun de ses bons n'a ce code.",
    search: "Recherche",
    statuses: { Active: "Valable", Redeemed: "Utilisé", Voided: "Annulé", Expired: "Expiré" },
    endpoints: "Points de terminaison webhook",
    endpointFacts: { state: "État", enabled: "Activé", disabled: "Désactivé.", failingSince: "En échec depuis" },
    reasons: {
      partner: "Le partenaire l'a désactivé.",
      operator: "Un exploitant l'a désactivé. Seul un exploitant peut le réactiver.",
      gone: "Il a répondu 410. Le partenaire peut le réactiver.",
      failing: "Il n'y a eu que des échecs pendant cinq jours. Le partenaire peut le réactiver.",
    },
    lastDeliveries: (name) => `Derniers envois à ${name}`,
    deliveryColumns: {
      event: "Événement",
      happened: "Survenu",
      state: "État",
      attempts: "Tentatives",
      lastAnswer: "Dernière réponse",
    },
  },
};
