import type { Sentences } from "./sentences.ts";

export const ES: Sentences = {
  errors: {
    invalid_http: "La solicitud llegó dañada. Inténtelo de nuevo y avise a su soporte técnico si vuelve a fallar.",
    headers_too_large: "La solicitud es demasiado larga. Avise a su soporte técnico.",
    request_timeout: "La solicitud no llegó a tiempo. Inténtelo de nuevo.",
    invalid_json: "La solicitud no se puede leer. Avise a su soporte técnico.",
    invalid_request: "externalRef es obligatorio.",
    body_too_large: "La solicitud es demasiado larga. Avise a su soporte técnico.",
    unsupported_encoding: "La solicitud tiene una forma que aquí no se acepta. Avise a su soporte técnico.",
    missing_key:
      "No ha iniciado sesión en el servicio de vales. Consulte a la persona que configuró esta caja o tienda.",
    unknown_key:
      "Este acceso al servicio de vales es incorrecto o ya no es válido. Consulte a la persona que configuró esta " +
      "caja o tienda.",
    missing_scope: "Este acceso no permite hacer eso. Consulte a la persona que configuró esta caja o tienda.",
    missing_token: "No ha iniciado sesión. Inicie sesión, por favor.",
    invalid_token: "Su sesión no es válida o ha caducado. Vuelva a iniciar sesión, por favor.",
    missing_password:
      "Inicie sesión con su nombre y con su token como contraseña, o con el token de operaciones y cualquier nombre.",
    wrong_password: "Este nombre y este token no van juntos, o el token ya no es válido.",
    missing_role: "Su rol no permite hacer eso. Solicite uno superior.",
    cross_site:
      "Esta solicitud viene de una página de otro sitio. Abra esta página directamente e inténtelo allí de nuevo.",
    portal_needs_read_key:
      "El portal necesita un acceso que pueda consultar vales y no pueda canjearlos. Pida uno al operador y " +
      "reinicie el navegador para usarlo.",
    referrers_only:
      "Solo los recomendadores con un contrato vigente pueden obtener este vale. Pida su enlace a un recomendador.",
    key_without_organization:
      "Este acceso todavía no pertenece a ninguna organización. Pida al operador que lo complete.",
    address_not_allowed:
      "Este acceso no se puede usar desde esta conexión a Internet. Consulte a la persona que configuró esta caja " +
      "o tienda.",
    sandbox_only:
      "Esto solo es posible con vales de prueba, y este acceso es para vales reales. Use el de su entorno de pruebas.",
    not_found: "No hay nada en esta dirección. Compruebe la dirección.",
    voucher_not_found: "Ninguno de sus vales tiene este código. Compruebe el código y vuelva a introducirlo.",
    entity_not_found: "Ningún vale tiene este identificador. Compruebe el enlace o el identificador.",
    redemption_not_found: "No se ha canjeado nada con esta referencia. Compruebe la referencia.",
    listing_not_found: "Esta oferta no existe. Vuelva a la lista y elija otra.",
    product_not_found: "Este producto no existe. Vuelva atrás y elija otro.",
    link_not_found: "Este enlace no es válido o ha caducado. Pida uno nuevo.",
    webhook_not_found: "Su organización no tiene ningún punto de conexión de webhook con este identificador.",
    webhooks_off: "Los webhooks no están activados aquí. Consulte al operador.",
    method_not_allowed: "Esta dirección no se puede usar así. Avise a su soporte técnico.",
    voucher_used: "Este vale ya se ha usado. Se necesita otra forma de pago.",
    voucher_voided: "El emisor ha anulado este vale. Se necesita otra forma de pago.",
    voucher_expired: "Este vale ha caducado. Se necesita otra forma de pago.",
    reservation_ended:
      "Se tardó un poco más de la cuenta y la reserva ha terminado. Vuelva a introducir el código del vale.",
    token_mismatch:
      "Este vale no está reservado con estos datos, o ya no lo está. Muestre de nuevo el código de la tienda en línea.",
    voucher_reserved:
      "Este vale se está usando en otra compra. Termine o cancele esa compra, o inténtelo de nuevo en unos minutos.",
    not_logged_yet:
      "Esta entrada todavía no está en el registro público. Suele tardar unos segundos: inténtelo de nuevo.",
    payload_erased:
      "El contenido de esta entrada se borró: no hay recibo. Los recibos anteriores siguen siendo válidos.",
    webhook_limit:
      "No puede haber más puntos de conexión de webhook, o más secretos anteriores de uno. Elimine un punto de " +
      "conexión, o cambie el secreto más tarde.",
    webhook_disabled:
      "El operador ha desactivado este punto de conexión de webhook, y solo él puede volver a activarlo.",
    sold_out: "No quedan vales.",
    window_closed: "Esta oferta no está abierta en este momento. Vuelva más tarde.",
    already_exists: "Esto ya existe.",
    wrong_status: "Esto no es posible en su estado actual.",
    rate_limited: "Ha habido demasiadas solicitudes. Inténtelo de nuevo dentro de un momento.",
    too_many_misses:
      "Se han introducido demasiados códigos desconocidos. Espere un minuto, compruebe el código y vuelva a " +
      "introducirlo.",
    redeem_timeout: "El vale no se pudo canjear a tiempo. Este intento no ha canjeado nada. Inténtelo de nuevo.",
    redeem_unknown:
      "Aún no sabemos si este vale se ha canjeado. Inténtelo de nuevo con el mismo pedido para saberlo: nunca se " +
      "canjea dos veces.",
    voucher_busy: "Este vale se está modificando en este momento. Inténtelo de nuevo.",
    overloaded: "El servicio de vales está muy ocupado. Inténtelo de nuevo dentro de un momento.",
    unavailable: "El servicio de vales no está disponible en este momento. Inténtelo de nuevo dentro de un momento.",
    internal_error:
      "Algo ha fallado en el servicio de vales. Inténtelo de nuevo y avise a su soporte técnico si vuelve a fallar.",
  },
  inDetail: {
    reservationsUnavailable: "En este momento no se pueden reservar vales. Inténtelo de nuevo dentro de un momento.",
    signInUnchecked: "En este momento no se puede comprobar su sesión. Inténtelo de nuevo dentro de un momento.",
    endpointDisabled: "Este punto de conexión de webhook está desactivado. Actívelo primero.",
    sandboxFull: (max) =>
      `Este entorno de pruebas tiene más de ${max.toLocaleString("es")} reservas activas. Libere primero algunas de ` +
      "ellas.",
    webhooksFull: (max) =>
      `Puede haber como máximo ${max} puntos de conexión de webhook. Elimine primero uno de ellos.`,
    earlierSecretsFull: (max) =>
      `Como máximo ${max} secretos anteriores de un punto de conexión de webhook pueden seguir firmando. Cambie el ` +
      "secreto más tarde.",
    filesFull: (max) => `Se le envían como máximo ${max} archivos a la vez. Espere a que uno de ellos haya llegado.`,
    fileTooLarge: (megabytes) =>
      `El archivo tendría más de ${megabytes} MB. Elija un período más corto o lea la lista página por página.`,
    fileTooSlow: (seconds) =>
      `El archivo no se pudo preparar en ${seconds} segundos. Elija un período más corto o inténtelo más tarde.`,
    notVoided: {
      voucher_used: "Este vale ya se ha usado y no se puede anular.",
      voucher_voided: "Este vale ya está anulado.",
      voucher_expired: "Este vale ya ha caducado y no se puede anular.",
    },
    notOwn: "Su organización no tiene nada con este identificador o código.",
    exists: {
      productKey: (key) => `La marca ya tiene un producto con la clave ${key}.`,
      listing: "El lote ya está ofrecido.",
      contract: "Este usuario ya tiene un contrato abierto con esta marca. Rechácelo o termínelo primero.",
    },
    contractCannotBecome: (wanted, status) => `El contrato está en el estado ${status} y no puede pasar a ${wanted}.`,
    noProductOfContract: (contract, product) =>
      `No hay ningún contrato ${contract} cuya marca tenga el producto ${product}.`,
    keyEnded: {
      nothingDone: "Este acceso terminó antes de que todo estuviera hecho. No se ha cambiado nada.",
      voided: (count) =>
        `Este acceso terminó antes de que todo estuviera hecho. Esta llamada ha anulado ${count} vales.`,
    },
  },
  nothingReleased: "Este vale no está reservado, o ya no lo está. No hay que hacer nada más.",
  problems: {
    aField: "Un campo",
    aFieldName: "Un nombre de campo",
    required: "es obligatorio",
    notText: "debe ser texto",
    empty: "no debe estar vacío",
    unstorable: "contiene caracteres no permitidos (NUL o la mitad de un par)",
    tooLong: (max) => `debe tener como máximo ${max} caracteres`,
    controlCharacters: "no debe contener caracteres de control",
    noPathSegment: "no debe ser . ni .., porque ninguna dirección puede terminar así",
    erased: "no debe empezar por erased:, porque así empiezan los textos borrados",
    notWhole: (min, max) => `debe ser un número entero de ${min} a ${max}`,
    notOneValue: "debe ser un solo valor",
    noTime: (example) =>
      `debe ser una fecha y hora con zona horaria, por ejemplo ${example}, como máximo con milisegundos`,
    blankInTime: "tiene un espacio antes de la zona horaria: escriba el signo más como %2B",
    noYear: "debe estar entre los años 2000 y 2999",
    noMonth: "debe ser un mes, por ejemplo 2026-11",
    noDay: "debe ser un día, por ejemplo 2026-11-24",
    noCursor: "no es un cursor de esta lista",
    differsFromCursor: "es distinto del valor del cursor",
    noCsv: "no tiene respuesta en CSV",
    noVerifyLink: "debe ser un enlace de verificación o un identificador",
    notObject: "debe ser un objeto",
    notTrueOrFalse: "debe ser true o false",
    notOneOf: (values) => `debe ser uno de estos valores: ${values.join(", ")}`,
    noEventTypes: (types) => `debe ser una lista de tipos de evento: ${types.join(", ")}`,
    repeatedType: "debe nombrar cada tipo de evento una sola vez",
    noEventIds: "debe ser una lista de identificadores de eventos",
    noEventId: "contiene un elemento que no es un identificador de evento",
    tooMany: (max) => `debe tener como máximo ${max} elementos`,
    noUrl: "debe ser una dirección como https://shop.example.com/hooks",
    notHttps: "debe empezar por https://",
    urlWithUser: "no debe contener nombre de usuario ni contraseña",
    urlWithFragment: "no debe contener un fragmento",
    urlPort: "debe tener el puerto 443 u 8443",
    urlHost: "debe tener un host público",
    noMoment: "debe ser una fecha como 2027-12-31, o una hora con zona horaria como 2027-12-31T18:00Z",
    noDollars: "debe ser un importe en dólares como 19.90",
    noDuration: "debe ser una duración como 30m, 24h o 7d",
    noNetworks: "debe contener direcciones o redes como 10.0.0.0/8",
    noChoice: "necesita al menos una opción",
    isPast: (time) => `está en el pasado: ${time}`,
    earlierThan: (name) => `debe ser anterior a ${name}`,
    laterThan: (name) => `debe ser posterior a ${name}`,
    needWindow: (times, windows) => `${times} necesitan una ventana: añada ${windows}`,
  },
  wholes: {
    codeOrTicket: "code o ticket es obligatorio",
    codeAndTicket: "code y ticket no deben indicarse juntos",
    codeOrId: "code o id es obligatorio",
    codeAndId: "code e id no deben indicarse juntos",
    idsOrTimes: "son obligatorios eventIds, o bien from y to",
    fromBeforeTo: "from debe ser anterior a to",
  },
};
