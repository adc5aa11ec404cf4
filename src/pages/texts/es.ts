import { html } from "../html.ts";
import type { PageTexts } from "./page-texts.ts";

const UNUSED = "No se ha canjeado.";

export const ES: PageTexts = {
  frame: {
    skip: "Ir al contenido",
    site: "Sitio",
    guide: "Guía (en inglés)",
    reference: "Referencia de la API (en inglés)",
    version: (version) => `Partner Voucher API, versión ${version}`,
    sandbox: html`<strong>Entorno de pruebas.</strong> Este es un vale de prueba. No tiene ningún valor.`,
    from: (product, brand) => html`${product} de ${brand}`,
    months: (months) => (months === 1 ? "1 mes" : `${months} meses`),
    more: "Más",
  },
  error: {
    headings: {
      400: "Dirección no válida",
      401: "Inicie sesión, por favor",
      403: "No permitido",
      404: "Página no encontrada",
      429: "Demasiadas solicitudes",
      503: "No disponible por el momento",
    },
    otherHeading: "Algo ha fallado",
    unknownVoucher: "Vale no encontrado",
    notLogged: "Todavía no está en el registro",
    looksAgain: "Esta página vuelve a comprobarlo por sí sola.",
    checkAnother: "Comprobar otro vale",
    report: "Si informa de esto, indique el número de la solicitud:",
    start: "Ir a la página de inicio",
  },
  check: {
    title: "Comprobar un vale",
    lead:
      "Vea qué ha pasado con un vale y si su historial está intacto. El enlace o el identificador suele estar en el " +
      "tique de compra.",
    label: "Enlace de verificación o identificador del vale",
    button: "Comprobar",
    notAnId:
      "Esto no es un enlace de verificación ni el identificador de un vale. El identificador empieza por vch_. El " +
      "código de un vale no se puede comprobar aquí: pregunte en la tienda.",
  },
  link: {
    title: (product, brand) => `${product} de ${brand}`,
    description: (product, brand) => `Un vale gratis para ${product} de ${brand}.`,
    lead: (brand) => html`Un recomendador de ${brand} comparte este enlace con usted. Con él obtiene un vale gratis.`,
    open: ["Disponible", "Cada persona recibe un vale."],
    windowClosed: ["No abierta", "Esta oferta no está abierta en este momento. Vuelva más tarde."],
    soldOut: ["Agotado", "En este momento no quedan vales."],
    now: "Ahora",
    worth: "Valor",
    lasts: "Duración",
    useBy: "Úselo antes del",
    goOn: (host) => `Continuar a ${host}`,
    how: "Cómo obtenerlo",
    signIn: (brand) => html`Inicie sesión en la aplicación o tienda en la que guarda los vales de ${brand}.`,
    enter: "Abra allí este enlace, o introduzca su código:",
    yours: "El vale es suyo. Si lo pide otra vez, recibe el mismo.",
    onPhone: "En su teléfono",
    camera: "Apunte a este código con la cámara de su teléfono para abrir allí esta página.",
    forApp: "Para la aplicación",
    claims: (token) => html`La aplicación pide el vale con el token de su usuario conectado, en ${token}.`,
    reference: "La referencia de la API describe la respuesta.",
  },
  listings: {
    title: "Mercado",
    description: "Vales que se pueden comprar.",
    lead: "Vales en oferta. Se compran en la aplicación o tienda en la que guarda sus vales.",
    none: "Aquí no hay ofertas.",
    insteadOf: (price) => `en lugar de ${price}`,
    lasting: (months) => `por ${months}`,
    referrersOnly: "Solo para recomendadores",
    available: (count, more, until) => html`Disponibles: ${more ? "más de " : ""}${count}. Úselo antes del ${until}.`,
    next: "Más vales",
  },
  events: {
    "voucher.instance.issued": { title: "Emitido", sentence: "Se creó el vale.", outcome: UNUSED },
    "voucher.instance.claimed": { title: "Obtenido", sentence: "Un usuario obtuvo el vale.", outcome: UNUSED },
    "voucher.instance.bought": { title: "Comprado", sentence: "Un usuario compró el vale.", outcome: UNUSED },
    "voucher.instance.redeemed": {
      title: "Canjeado",
      sentence: "El vale se usó en una compra. No se puede volver a usar.",
    },
    "voucher.instance.voided": { title: "Anulado", sentence: "El emisor anuló el vale. No se puede usar." },
    "voucher.instance.expired": { title: "Caducado", sentence: "El vale no se usó antes de su fecha final." },
    "voucher.instance.erased": { title: "Borrado", sentence: "Se borró el contenido de entradas anteriores." },
  },
  chain: {
    erased: (when, by) =>
      when === null
        ? html`Borrado por la entrada ${by}, se conserva su hash.`
        : html`Borrado el ${when}, se conserva el hash de la entrada.`,
    lost: "Falta su contenido o se modificó, y ninguna entrada posterior dice que se borró.",
    title: (id, sandbox) => `${sandbox ? "Entorno de pruebas: historial" : "Historial"} del vale ${id}`,
    description: "Qué ha pasado con un vale, entrada por entrada, y si su historial está intacto.",
    heading: "Historial del vale",
    voucher: "Vale",
    noScript:
      "Con JavaScript, esta página comprueba la cadena de huellas en su navegador y muestra su hora local. Sin " +
      "JavaScript, compare usted mismo: la huella anterior de cada entrada debe ser la huella de la entrada de " +
      "encima.",
    happened: "Qué ha pasado",
    noneAfter: (sequence) => `No hay entradas después del número ${sequence}.`,
    columns: {
      number: "Número",
      what: "Qué ha pasado",
      when: "Cuándo",
      seal: "Sello",
      leaf: "Hoja",
      hashes: "Huellas",
    },
    sealed: "Sellado",
    pending: "Pendiente",
    notSealedYet: "Todavía sin sellar",
    notInLog: "Todavía no está en el registro",
    leafNumber: (index) => `Hoja ${index}`,
    proof: "Prueba",
    ofEntry: (sequence) => `de la entrada ${sequence}`,
    hash: "Huella",
    previousHash: "Huella anterior",
    excerpt: (first, last) => `Entradas ${first} a ${last} de un historial más largo.`,
    on: (event, time) => html`${event} el ${time}.`,
    unsealed: (count) =>
      `${count === 1 ? "Una entrada todavía no está sellada" : `${count} entradas todavía no están selladas`}. ` +
      "Suele tardar unos segundos.",
    lookAgain: "Comprobar otra vez",
    checkpoint: (leaves) => `punto de control de ${leaves} ${leaves === 1 ? "hoja" : "hojas"}`,
    allLogged: (log, checkpoint) => html`Todas estas entradas están en el registro ${log}, hasta su ${checkpoint}.`,
    someLogged: (missing, log, checkpoint) =>
      html`${missing.length === 1 ? "La entrada" : "Las entradas"} ${missing.join(", ")} todavía \
no ${missing.length === 1 ? "está" : "están"} en el registro ${log}, hasta su ${checkpoint}. Suele tardar unos \
segundos.`,
    noneLogged: (log, checkpoint) =>
      html`Ninguna de estas entradas está todavía en el registro ${log}, hasta su ${checkpoint}. Suele tardar unos \
segundos.`,
    serves: (log, checkpoint) => html`El registro ${log} publica su ${checkpoint}.`,
    continues: (sequence) => `Continúa desde la entrada ${sequence}, que tiene la huella`,
    earlier: "Entradas anteriores",
    later: "Entradas posteriores",
    pages: "Páginas del historial",
    payloadHeading: "Comprobar el texto de una entrada",
    payloadAbout:
      "La carga es el texto exacto de una entrada, tal como la API lo devuelve al socio del vale. Péguela para " +
      "ver si es lo que se selló. Se queda en esta página: no se envía nada.",
    payloadLabel: "Carga de una entrada",
    payloadButton: "Calcular la huella y comparar",
    receiptHeading: "¿Tiene un recibo?",
    receiptAbout:
      "Pegue el recibo de cualquier vale, o la prueba de una entrada de arriba, para ver qué demuestra. Se queda " +
      "en esta página: no se envía nada.",
    receiptFile: "Lo mismo como archivo",
    receiptFileAbout: "funciona desde su disco, sin este servicio.",
    meaning: "Qué demuestra esta página y qué no",
    links:
      "Cada entrada está sellada con una huella de su contenido y contiene la huella de la entrada anterior. Si " +
      "más tarde se cambia, se quita o se inserta una entrada, esta cadena de huellas se rompe.",
    hashes:
      "Las huellas son SHA-256. Son públicas; el contenido de las entradas no lo es, porque incluye el código del " +
      "vale. Quien tenga el texto de una entrada puede calcular su huella y compararla con la de aquí. Quien haya " +
      "anotado antes una huella puede comprobar que no ha cambiado. Esta página no puede demostrar que no se " +
      "omitió ningún suceso antes de registrarlo.",
    tree:
      "El registro es un solo árbol con las entradas de todos los vales, que otros guardan y comparan. Un recibo o " +
      "una prueba muestra que una entrada está en él.",
    treeVerify: "Compruébelo aquí o",
    treeTool: "con su propia herramienta",
    preserved: (time) =>
      html`El texto de cada entrada se conserva sin cambios desde el ${time}. La misma cadena para programas:`,
  },
  receipt: {
    label: "Recibo",
    policy: "Reglas: el registro y los testigos en los que confía",
    served:
      "Estas son las reglas que publica el servicio. Compare sus claves con su contrato, o pegue su propia copia: " +
      "unas reglas que llegan con la prueba no demuestran nada.",
    button: "Comprobar el recibo",
  },
  portal: {
    name: "Portal",
    signIn:
      "Introduzca una clave de API de su organización como contraseña; el nombre de usuario puede ser cualquiera. " +
      "La clave debe poder consultar vales y no debe poder canjearlos.",
    overview: "Resumen",
    redemptions: "Canjes",
    webhooks: "Webhooks",
    sandbox: html`<strong>Entorno de pruebas.</strong> Estos son vales de prueba. No tienen ningún valor.`,
    find: "Buscar un pedido",
    findHelp: "Por su referencia de pedido, el código de un vale o un código de canje.",
    findButton: "Buscar",
    yourOrganization: "Su organización",
    upTo: (time) => html`Canjes hasta el ${time}.`,
    utc: "Los días y los meses son en UTC.",
    total: (redemptions, count, value) => `${count} ${redemptions === 1 ? "canje" : "canjes"}, ${value}`,
    today: (day) => `Hoy, ${day}`,
    yesterday: (day) => `Ayer, ${day}`,
    month: (month) => `Este mes, ${month}`,
    eachOfToday: "Todos los de hoy",
    eachOfYesterday: "Todos los de ayer",
    days: (count) => `${count} días`,
    plot: "Canjes por día, con los números de la tabla",
    perDay: "Canjes por día",
    highest: (until, count) => `Canjes por día hasta el ${until}. La barra más alta es ${count}.`,
    columns: {
      day: "Día",
      redemptions: "Canjes",
      sum: "Suma",
      product: "Producto",
      key: "Clave",
      redeemed: "Canjeado",
      reference: "Referencia",
      value: "Valor",
      redeemCode: "Código de canje",
      status: "Estado",
      validUntil: "Válido hasta",
      order: "Pedido",
    },
    by: (period, column) => `${period}, por ${column.toLowerCase()}`,
    others: (count) => `${count} más`,
    none: "No hay ninguno.",
    ofDay: (day) => `Canjes del ${day}`,
    onDay: "en este día en UTC.",
    endsAt: (time) => html`hasta el ${time}. El día termina a las 00:00 UTC.`,
    csv: "El día como CSV",
    anotherDay: "Otro día",
    show: "Mostrar",
    dayBefore: "El día anterior",
    dayAfter: "El día siguiente",
    eachOfMonth: "Cada día de este mes",
    wholeMonth: "El mes completo",
    ofMonth: (month) => `Canjes del mes ${month}`,
    inMonth: "en este mes en UTC.",
    monthEnds: (time) => html`hasta el ${time}. El mes no ha terminado.`,
    monthCsv: "El mes como CSV",
    anotherMonth: "Otro mes",
    monthBefore: "El mes anterior",
    monthAfter: "El mes siguiente",
    next: "Canjes posteriores de este día",
    facts: { voucher: "Vale", publicHistory: "Historial público", serial: (serial) => `número de serie ${serial}` },
    payload: "Carga",
    entry: (sequence) => `Entrada ${sequence}`,
    byActor: "por",
    receipt: "Recibo",
    noReceipt:
      "Todavía no hay recibo: el registro público aún no tiene este canje. Suele tardar unos segundos, si el " +
      "servicio lleva un registro.",
    receiptAbout: "Demuestra el canje sin este servicio.",
    download: "Descargar el recibo",
    noScript: "Para comprobarlo en esta página hace falta JavaScript.",
    otherTools: "Hay otras herramientas",
    nothingFound: "No se ha encontrado nada",
    found: "Encontrado",
    vouchersFound: "Vales encontrados",
    noOrder: "ninguno",
    noReference: "Ningún pedido de su organización tiene esta referencia, y ninguno de sus vales tiene este código.",
    search: "Búsqueda",
    statuses: { Active: "Válido", Redeemed: "Canjeado", Voided: "Anulado", Expired: "Caducado" },
    endpoints: "Puntos de conexión de webhook",
    endpointFacts: { state: "Estado", enabled: "Activado", disabled: "Desactivado.", failingSince: "Falla desde" },
    reasons: {
      partner: "El socio lo desactivó.",
      operator: "Un operador lo desactivó; solo un operador puede activarlo.",
      gone: "Respondió 410. El socio puede volver a activarlo.",
      failing: "Solo hubo fallos durante cinco días. El socio puede volver a activarlo.",
    },
    lastDeliveries: (name) => `Últimas entregas a ${name}`,
    deliveryColumns: {
      event: "Suceso",
      happened: "Ocurrió",
      state: "Estado",
      attempts: "Intentos",
      lastAnswer: "Última respuesta",
    },
  },
};
