import express from "express";

// Baseline (c): the cost of Express and Node alone. It answers a constant of the size of a look-up's answer.

const VOUCHER = {
  id: "vch_01jd3q5x7me0vt9r8k2w4z6y1a",
  code: "7Q4K-9MZX-2HTB-W8RC",
  serial: 4711,
  brand: "Bench Brand",
  productName: "Bench Pass",
  productKey: "bench-pass",
  type: "Subscription",
  retailPriceUsd: 29.9,
  priceUsd: 19.9,
  benefitMonths: 3,
  usageUnitLabel: null,
  validUntil: "2030-12-31T23:59:59.000Z",
  status: "Active",
  redeemedAt: null,
};
const ANSWER = {
  voucher: VOUCHER,
  reservation: null,
  verifyUrl: `http://localhost:3000/integrity/events/VoucherInstance/${VOUCHER.id}`,
};

const app = express();
app.get("/readyz", (_request, response) => void response.json({ status: "ok" }));
app.get("/partner/vouchers/:codeOrTicket", (_request, response) => void response.json(ANSWER));
app.post(["/partner/vouchers/:action", "/products/:id/claim"], (_request, response) => void response.json(ANSWER));
app.listen(Number(process.env.PORT), "127.0.0.1");
process.on("disconnect", () => process.exit());
