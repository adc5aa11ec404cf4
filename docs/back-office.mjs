// Creates a product, issues 500 vouchers, writes a mail for each of the first orders, voids a returned voucher and
// issues one in its place. Needs API, KEY (scope voucher.issue) and RUN, a name of your own for this run.
const { API, KEY, RUN } = process.env;
process.on("uncaughtException", ({ message }) => {
  console.error(message); // A sentence instead of a stack.
  process.exit(1);
});

/** Sends a call, and repeats it while the outcome is unknown: every call here may be repeated. */
async function call(path, body) {
  for (let waitSeconds = 1; ; waitSeconds = Math.min(waitSeconds * 2, 8)) {
    // A redirect would send the key to another address.
    const options = { headers: { "x-api-key": KEY }, redirect: "manual", signal: AbortSignal.timeout(60_000) };
    options.cache = "no-store";
    if (body !== undefined) Object.assign(options, { method: "POST", body: JSON.stringify(body) });
    if (body !== undefined) options.headers["Content-Type"] = "application/json";
    const response = await fetch(`${API}/issuer${path}`, options).catch(() => null);
    const answer = await response?.json().catch(() => null);
    if (response?.ok && answer) return answer;
    if (response && !response.ok && response.status < 500 && ![408, 429].includes(response.status)) {
      // A proxy's own answer has no sentence.
      throw Object.assign(new Error(answer?.error ?? `${path} answered ${response.status}`), { code: answer?.code });
    }
    await new Promise((resolve) =>
      setTimeout(resolve, 1000 * (Number(response?.headers.get("retry-after")) || waitSeconds)),
    );
  }
}

/** All items of a list, page by page. */
async function* list(path) {
  for (let cursor = ""; cursor !== null; ) {
    const page = await call(`${path}?limit=1000${cursor && `&cursor=${cursor}`}`);
    yield* page.items;
    cursor = page.nextCursor;
  }
}

/** Your brand's product with this key. A key names one product, so a repeat does not create a second one. */
async function productWith(key) {
  const [brand] = (await call("/brands")).items;
  if (brand === undefined) {
    console.error("Your organization has no brand: ask the operator of the voucher service to create one.");
    process.exit(1);
  }
  for await (const product of list("/products")) if (product.key === key) return product.id;
  const terms = { name: "Day pass", type: "Service", retailPriceUsd: 19.9, priceUsd: 15 };
  return (await call(`/brands/${brand.id}/products`, { key, ...terms })).id;
}

const product = await productWith(`day-pass-${RUN}`);
const validUntil = "2030-12-31";
const batch = await call(`/products/${product}/batches`, { issueRef: `spring-${RUN}`, count: 500, validUntil });

// One voucher for each order. Keep the voucher's id with the order: you need it when goods come back.
const orders = ["ann@example.com", "bob@example.com"].map((to, index) => ({ to, number: `${RUN}-${index + 1}` }));
for await (const voucher of list(`/batches/${batch.id}/vouchers`)) {
  const order = orders[voucher.serial - 1];
  if (order === undefined) break;
  order.voucherId = voucher.id;
  console.log(`To: ${order.to}\nSubject: Your day pass, order ${order.number}\n\nYour code: ${voucher.code}\n`);
}

// Bob returns his goods: void his voucher, and issue one for the goods that he gets instead.
const [, returned] = orders;
const { id } = await call("/vouchers/void", { id: returned.voucherId, reason: `returned, order ${returned.number}` });
const issueRef = `${returned.number} instead of ${id}`;
const instead = await call(`/products/${product}/batches`, { issueRef, count: 1, validUntil });
const [replacement] = (await call(`/batches/${instead.id}/vouchers`)).items;
console.log(
  `To: ${returned.to}\nSubject: Your new day pass, order ${returned.number}\n\nYour code: ${replacement.code}`,
);
