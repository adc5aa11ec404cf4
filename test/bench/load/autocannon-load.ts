import { readFileSync } from "node:fs";
import autocannon from "autocannon";
import { quantile } from "../statistics.ts";

// Drives load with autocannon where there is no wrk: takes what wrk-load.lua takes, in the same files, and says what it says. Arguments:
// connections, seconds, mode, request files' common beginning, header of every request. Ports come in BENCH_PORTS.

type AutocannonRequest = NonNullable<Parameters<typeof autocannon>[0]["requests"]>[number];

/** As in wrk-load.lua's driver. Seconds. */
const TIMEOUT_SECONDS = 30;
const NOTHING: AutocannonRequest = { method: "GET", path: "/readyz", headers: {} };

const [connections = "", seconds = "", mode = "", files = "", header = ""] = process.argv.slice(2);
const ports = (process.env.BENCH_PORTS ?? "").split(",");
const sharedHeaders = readHeader(header);

/** What one API process is asked. */
class Script {
  readonly #lines: string[];
  readonly #steps: AutocannonRequest[] = [];
  readonly #byCode = new Map<string, { reference: string; startedAt: number }>();
  readonly #byVoucher = new Map<string, { reference: string; startedAt: number }>();
  used = 0;
  exhausted = false;
  /** Whole checkouts. Microseconds. */
  readonly samples: number[] = [];

  constructor(file: string) {
    this.#lines = readFileSync(file, "utf8").split("\n").slice(0, -1);
  }

  next(): AutocannonRequest {
    const step = this.#steps.shift();
    if (step !== undefined) return step;
    const line = this.#lines[mode === "again" ? this.used % this.#lines.length : this.used];
    if (line === undefined) {
      this.exhausted = true;
      return NOTHING;
    }
    this.used += 1;
    const [target = "", second = "", body = ""] = line.split("\t");
    if (mode === "checkout") {
      this.#byCode.set(target, { reference: second, startedAt: performance.now() });
      return build(`GET /partner/vouchers/${target}`, "", "");
    }
    return build(target, second, body);
  }

  /** The answers tell which step they are of: any connection carries any checkout's next step. */
  read(status: number, text: string): void {
    if (mode !== "checkout" || status !== 200) return;
    const body = JSON.parse(text);
    const looked = this.#byCode.get(body.voucher?.code);
    if (looked !== undefined) {
      this.#byCode.delete(body.voucher.code);
      this.#byVoucher.set(body.voucher.id, looked);
      this.#steps.push(build("POST /partner/vouchers/reserve", "", JSON.stringify({ code: body.voucher.code })));
      return;
    }
    const reserved = this.#byVoucher.get(body.voucher);
    if (reserved !== undefined) {
      const redeem = { ticket: body.ticket, externalRef: reserved.reference };
      this.#steps.push(build("POST /partner/vouchers/redeem", "", JSON.stringify(redeem)));
      return;
    }
    const burnt = this.#byVoucher.get(body.voucherInstanceId);
    if (burnt !== undefined) {
      this.#byVoucher.delete(body.voucherInstanceId);
      this.samples.push((performance.now() - burnt.startedAt) * 1_000);
    }
  }
}

const scripts = ports.map((_, api) => new Script(`${files}${api + 1}`));
const latencies: number[] = [];
let requests = 0;
let refused = 0;
const results = await Promise.all(
  ports.map((port, api) => {
    const script = scripts[api] as Script;
    const instance = autocannon({
      url: `http://127.0.0.1:${port}`,
      connections: Math.max(1, Math.floor(Number(connections) / ports.length)),
      duration: Number(seconds),
      timeout: TIMEOUT_SECONDS,
      requests: [{ setupRequest: () => script.next(), onResponse: (status, body) => script.read(status, body) }],
    });
    instance.on("response", (_client, status, _bytes, milliseconds) => {
      requests += 1;
      if (status >= 400) refused += 1;
      latencies.push(milliseconds * 1_000);
    });
    return instance;
  }),
);
const checkouts = scripts.flatMap((script) => script.samples);
const sorted = (mode === "checkout" ? checkouts : latencies).sort((a, b) => a - b);
const outcome = {
  requests,
  checkouts: checkouts.length,
  micros: Math.max(...results.map(({ duration }) => duration)) * 1_000_000,
  p50Micros: quantile(sorted, 0.5),
  p99Micros: quantile(sorted, 0.99),
  refused,
  broken: results.reduce((sum, { errors }) => sum + errors, 0),
  exhausted: scripts.some((script) => script.exhausted),
  used: scripts.map((script) => script.used),
};
process.stdout.write(`${JSON.stringify(outcome)}\n`);

function build(target: string, ownHeader: string, body: string): AutocannonRequest {
  const [method = "", path = ""] = target.split(" ");
  const headers = { ...sharedHeaders, ...readHeader(ownHeader) };
  if (body === "") return { method, path, headers };
  return { method, path, headers: { ...headers, "Content-Type": "application/json" }, body };
}

function readHeader(line: string): Record<string, string> {
  const [, name, value] = /^([^:]+): (.*)$/.exec(line) ?? [];
  return name === undefined || value === undefined ? {} : { [name]: value };
}
