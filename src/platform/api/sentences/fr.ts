import type { Sentences } from "./sentences.ts";

export const FR: Sentences = {
  errors: {
    invalid_http:
      "La demande est arrivée endommagée. Réessayez, et prévenez votre support technique si le problème persiste.",
    headers_too_large: "La demande est trop longue. Prévenez votre support technique.",
    request_timeout: "La demande n'est pas arrivée à temps. Veuillez réessayer.",
    invalid_json: "La demande est illisible. Prévenez votre support technique.",
    invalid_request: "externalRef est obligatoire.",
    body_too_large: "La demande est trop longue. Prévenez votre support technique.",
    unsupported_encoding: "La demande a une forme qui n'est pas acceptée ici. Prévenez votre support technique.",
    missing_key:
      "Vous n'êtes pas connecté au service de bons. Adressez-vous à la personne qui a installé cette caisse ou " +
      "cette boutique.",
    unknown_key:
      "Cette connexion au service de bons est erronée ou n'est plus valable. Adressez-vous à la personne qui a " +
      "installé cette caisse ou cette boutique.",
    missing_scope:
      "Cette connexion n'y est pas autorisée. Adressez-vous à la personne qui a installé cette caisse ou cette " +
      "boutique.",
    missing_token: "Vous n'êtes pas connecté. Veuillez vous connecter.",
    invalid_token: "Votre connexion n'est pas valable ou a expiré. Veuillez vous reconnecter.",
    missing_password:
      "Connectez-vous avec votre nom et votre jeton comme mot de passe, ou avec le jeton d'exploitation.",
    wrong_password: "Ce nom et ce jeton ne vont pas ensemble, ou le jeton n'est plus valable.",
    missing_role: "Votre rôle ne permet pas cela. Demandez-en un plus élevé.",
    cross_site: "Cette demande vient d'une page d'un autre site. Ouvrez cette page directement, puis réessayez.",
    portal_needs_read_key:
      "Le portail demande une connexion qui peut consulter les bons sans pouvoir les utiliser. Demandez-en une à " +
      "l'exploitant, puis redémarrez le navigateur pour vous en servir.",
    referrers_only:
      "Seuls les parrains ayant un contrat en cours peuvent obtenir ce bon. Demandez son lien à un parrain.",
    key_without_organization:
      "Cette connexion n'appartient encore à aucune organisation. Demandez à l'exploitant de la compléter.",
    address_not_allowed:
      "Cette connexion ne peut pas être utilisée depuis cet accès à Internet. Adressez-vous à la personne qui a " +
      "installé cette caisse ou cette boutique.",
    sandbox_only:
      "Cela n'est possible qu'avec des bons de test, et cette connexion est faite pour de vrais bons. Utilisez " +
      "celle de votre bac à sable.",
    not_found: "Il n'y a rien à cette adresse. Vérifiez l'adresse.",
    voucher_not_found: "Aucun de vos bons ne porte ce code. Vérifiez le code et saisissez-le à nouveau.",
    entity_not_found: "Aucun bon ne porte cet identifiant. Vérifiez le lien ou l'identifiant.",
    redemption_not_found: "Aucun bon n'a été utilisé sous cette référence. Vérifiez la référence.",
    listing_not_found: "Cette offre n'existe pas. Revenez à la liste et choisissez-en une autre.",
    product_not_found: "Ce produit n'existe pas. Revenez en arrière et choisissez-en un autre.",
    link_not_found: "Ce lien n'est pas valable ou a expiré. Demandez-en un nouveau.",
    webhook_not_found: "Votre organisation n'a aucun point de terminaison webhook avec cet identifiant.",
    webhooks_off: "Les webhooks ne sont pas activés ici. Adressez-vous à l'exploitant.",
    method_not_allowed: "Cette adresse ne peut pas être utilisée ainsi. Prévenez votre support technique.",
    voucher_used: "Ce bon a déjà été utilisé. Un autre moyen de paiement est nécessaire.",
    voucher_voided: "L'émetteur a annulé ce bon. Un autre moyen de paiement est nécessaire.",
    voucher_expired: "Ce bon a expiré. Un autre moyen de paiement est nécessaire.",
    reservation_ended:
      "Cela a pris un peu trop de temps et la réservation est terminée. Saisissez à nouveau le code du bon.",
    token_mismatch:
      "Ce bon n'est pas ou n'est plus réservé avec ces données. Veuillez présenter à nouveau le code de la " +
      "boutique en ligne.",
    voucher_reserved:
      "Ce bon est en cours d'utilisation dans un autre achat. Terminez ou annulez cet achat, ou réessayez dans " +
      "quelques minutes.",
    not_logged_yet:
      "Cette entrée n'est pas encore dans le journal public. Cela ne prend en général que quelques secondes. " +
      "Veuillez réessayer.",
    payload_erased:
      "Le contenu de cette entrée a été effacé\u00a0: il n'y a pas de reçu. Les reçus antérieurs restent valables.",
    webhook_limit:
      "Aucun autre point de terminaison webhook, ou ancien secret de l'un d'eux, n'est possible. Supprimez un point " +
      "de terminaison, ou changez le secret plus tard.",
    webhook_disabled: "L'exploitant a désactivé ce point de terminaison webhook. Lui seul peut le réactiver.",
    sold_out: "Il ne reste plus de bons.",
    window_closed: "Cette offre n'est pas ouverte pour le moment. Veuillez revenir plus tard.",
    already_exists: "Cela existe déjà.",
    wrong_status: "Cela est impossible dans son état actuel.",
    rate_limited: "Il y a eu trop de demandes. Veuillez réessayer dans un instant.",
    too_many_misses:
      "Trop de codes inconnus ont été saisis. Attendez une minute, vérifiez le code et saisissez-le à nouveau.",
    redeem_timeout: "Le bon n'a pas pu être utilisé à temps. Cette tentative n'a rien utilisé. Veuillez réessayer.",
    redeem_unknown:
      "Nous ne savons pas encore si ce bon a été utilisé. Réessayez avec la même commande pour le savoir. Elle " +
      "n'utilise jamais deux bons.",
    voucher_busy: "Ce bon est en cours de modification. Veuillez réessayer.",
    overloaded: "Le service de bons est très sollicité. Veuillez réessayer dans un instant.",
    unavailable: "Le service de bons est indisponible pour le moment. Veuillez réessayer dans un instant.",
    internal_error:
      "Un problème est survenu dans le service de bons. Réessayez, et prévenez votre support technique si le " +
      "problème persiste.",
  },
  inDetail: {
    reservationsUnavailable:
      "Les bons ne peuvent pas être réservés pour le moment. Veuillez réessayer dans un instant.",
    signInUnchecked: "Votre connexion ne peut pas être vérifiée pour le moment. Veuillez réessayer dans un instant.",
    endpointDisabled: "Ce point de terminaison webhook est désactivé. Activez-le d'abord.",
    sandboxFull: (max) =>
      `Ce bac à sable a plus de ${max.toLocaleString("fr")} réservations en cours. Libérez-en d'abord quelques-unes.`,
    webhooksFull: (max) => `Il peut y avoir au plus ${max} points de terminaison webhook. Supprimez-en d'abord un.`,
    earlierSecretsFull: (max) =>
      `Au plus ${max} anciens secrets d'un point de terminaison webhook peuvent encore signer. Changez le secret ` +
      "plus tard.",
    filesFull: (max) => `Au plus ${max} fichiers vous sont envoyés en même temps. Attendez que l'un d'eux soit arrivé.`,
    fileTooLarge: (megabytes) =>
      `Le fichier aurait plus de ${megabytes} Mo. Choisissez une période plus courte, ou lisez la liste page par page.`,
    fileTooSlow: (seconds) =>
      `Le fichier n'a pas pu être préparé en ${seconds} secondes. Choisissez une période plus courte, ou réessayez ` +
      "plus tard.",
    notVoided: {
      voucher_used: "Ce bon a déjà été utilisé et ne peut plus être annulé.",
      voucher_voided: "Ce bon est déjà annulé.",
      voucher_expired: "Ce bon a déjà expiré et ne peut plus être annulé.",
    },
    notOwn: "Votre organisation n'a rien avec cet identifiant ou ce code.",
    exists: {
      productKey: (key) => `La marque a déjà un produit avec la clé ${key}.`,
      listing: "Le lot est déjà proposé.",
      contract: "Cet utilisateur a déjà un contrat ouvert avec cette marque. Refusez-le ou mettez-y fin d'abord.",
    },
    contractCannotBecome: (wanted, status) => `Le contrat est ${status} et ne peut pas devenir ${wanted}.`,
    noProductOfContract: (contract, product) =>
      `Il n'y a pas de contrat ${contract} dont la marque a le produit ${product}.`,
    keyEnded: {
      nothingDone: "Cette connexion a pris fin avant que tout soit fait. Rien n'a été modifié.",
      voided: (count) => `Cette connexion a pris fin avant que tout soit fait. Cet appel a annulé ${count} bons.`,
    },
  },
  nothingReleased: "Ce bon n'est pas ou n'est plus réservé. Il n'y a rien d'autre à faire.",
  problems: {
    aField: "Un champ",
    aFieldName: "Un nom de champ",
    required: "est obligatoire",
    notText: "doit être du texte",
    empty: "ne doit pas être vide",
    unstorable: "contient des caractères non autorisés (NUL ou la moitié d'une paire)",
    tooLong: (max) => `doit compter au plus ${max} caractères`,
    controlCharacters: "ne doit pas contenir de caractères de contrôle",
    noPathSegment: "ne doit pas être . ou .., car aucune adresse ne peut se terminer ainsi",
    erased: "ne doit pas commencer par erased:, car les textes effacés commencent ainsi",
    notWhole: (min, max) => `doit être un nombre entier de ${min} à ${max}`,
    notOneValue: "doit être une seule valeur",
    noTime: (example) =>
      `doit être une date et une heure avec un fuseau horaire, par exemple ${example}, à la milliseconde près au plus`,
    blankInTime: "contient une espace avant le fuseau horaire, écrivez le signe plus sous la forme %2B",
    noYear: "doit se situer entre les années 2000 et 2999",
    noMonth: "doit être un mois, par exemple 2026-11",
    noDay: "doit être un jour, par exemple 2026-11-24",
    noCursor: "n'est pas un curseur de cette liste",
    differsFromCursor: "diffère de la valeur du curseur",
    noCsv: "n'a pas de réponse au format CSV",
    noVerifyLink: "doit être un lien de vérification ou un identifiant",
    notObject: "doit être un objet",
    notTrueOrFalse: "doit être true ou false",
    notOneOf: (values) => `doit être l'une de ces valeurs\u00a0: ${values.join(", ")}`,
    noEventTypes: (types) => `doit être une liste de types d'événements\u00a0: ${types.join(", ")}`,
    repeatedType: "ne doit nommer chaque type d'événement qu'une fois",
    noEventIds: "doit être une liste d'identifiants d'événements",
    noEventId: "contient un élément qui n'est pas un identifiant d'événement",
    tooMany: (max) => `doit compter au plus ${max} éléments`,
    noUrl: "doit être une adresse comme https://shop.example.com/hooks",
    notHttps: "doit commencer par https://",
    urlWithUser: "ne doit contenir ni nom d'utilisateur ni mot de passe",
    urlWithFragment: "ne doit pas contenir de fragment",
    urlPort: "doit avoir le port 443 ou 8443",
    urlHost: "doit avoir un hôte public",
    noMoment: "doit être une date comme 2027-12-31, ou une heure avec un fuseau horaire comme 2027-12-31T18:00Z",
    noDollars: "doit être un montant en dollars comme 19.90",
    noDuration: "doit être une durée comme 30m, 24h ou 7d",
    noNetworks: "doit contenir des adresses ou des réseaux comme 10.0.0.0/8",
    noChoice: "exige au moins un choix",
    isPast: (time) => `est dans le passé\u00a0: ${time}`,
    earlierThan: (name) => `doit précéder ${name}`,
    laterThan: (name) => `doit suivre ${name}`,
    needWindow: (times, windows) => `${times} exigent une fenêtre\u00a0: ajoutez ${windows}`,
  },
  wholes: {
    codeOrTicket: "code ou ticket est obligatoire",
    codeAndTicket: "code et ticket ne doivent pas être indiqués ensemble",
    codeOrId: "code ou id est obligatoire",
    codeAndId: "code et id ne doivent pas être indiqués ensemble",
    idsOrTimes: "soit eventIds, soit from et to sont obligatoires",
    fromBeforeTo: "from doit être antérieur à to",
  },
};
