import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";

const ROOT = join(import.meta.dirname, "../../..");
/** Maximum time in which a call is repeated. Milliseconds. */
const RETRY_MAX_MS = 60_000;

/** The services of docker-compose.yml that a test uses. */
export interface Services {
  /** The addresses of the API processes, which calls use in turn. */
  urls: string[];
  voucherctl: string;
  /** The command that runs psql, and the names of user and database. */
  psql: string[];
}

/** Copies this checkout, with ports of its own and new secrets. The returned functions run commands in the copy. */
async function copyCheckout(baseUrl: string | undefined) {
  const checkout = mkdtempSync(join(tmpdir(), "voucher-containers-"));
  const env: NodeJS.ProcessEnv = {
    ...process.env,
    COMPOSE_PROJECT_NAME: "voucher-test",
    API_LISTEN: "127.0.0.1:13080",
    HA_API_1_LISTEN: "127.0.0.1:13080",
    HA_API_2_LISTEN: "127.0.0.1:13082",
    POSTGRES_LISTEN: "127.0.0.1:13432",
    REDIS_LISTEN: "127.0.0.1:13379",
    HTTP_LISTEN: "127.0.0.1:13081",
    HTTPS_LISTEN: "127.0.0.1:13443",
    PROMETHEUS_LISTEN: "127.0.0.1:13090",
    BASE_URL: baseUrl,
    LOG_ORIGIN: "vouchers.test/log",
    VOUCHERCTL_USER: "alice",
    VOUCHERCTL_HOST: "desk-1",
  };
  const inCheckout = { cwd: checkout, env, maxBuffer: 1e8 };

  async function runWith(input: string, command: string, ...args: string[]): Promise<string> {
    const running = promisify(execFile)(command, args, inCheckout);
    // A program may end before it has read its input. Its exit status says whether it needed the input.
    running.child.stdin?.on("error", () => undefined).end(input);
    const { stdout } = await running.catch((error) => assert.fail(`${error.message}\n${error.stdout}`));
    return stdout;
  }
  const run = (command: string, ...args: string[]) => runWith("", command, ...args);
  const compose = (...args: string[]) => run("docker", "compose", ...args);
  const copy = `git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t '${checkout}'`;
  await promisify(execFile)("bash", ["-c", copy], { cwd: ROOT });
  await run("./setup");
  return { checkout, run, runWith, compose };
}

/** Runs a command of voucherctl with standard input. Returns its JSON. */
type VoucherctlWith = (input: string, ...args: string[]) => Promise<Record<string, string>>;

async function supplyVouchers(voucherctlWith: VoucherctlWith, count: number) {
  const create = (...args: string[]) => voucherctlWith("", ...args);
  const { id: organization = "" } = await create("org", "create", "--name", "Corner Shop");
  const { id: brand = "" } = await create("brand", "create", "--org", organization, "--name", "Corner");
  const prices = ["--retail-price-usd", "5", "--price-usd", "4"];
  const named = ["--key", "cup", "--name", "A cup", "--type", "Product"];
  const { id: product = "" } = await create("product", "create", "--brand", brand, ...named, ...prices);
  const scopes = ["--scope", "voucher.read", "--scope", "voucher.redeem"];
  const { key = "" } = await create("key", "create", "--org", organization, ...scopes);
  const suffix = organization.slice(-8).toUpperCase();
  const codes = Array.from({ length: count }, (_, n) => `CUP-${String(n).padStart(4, "0")}-${suffix}`);
  const batch = ["--product", product, "--count", String(count), "--valid-until", "2099-01-01"];
  await voucherctlWith(codes.join("\n"), "batch", "issue", ...batch, "--codes", "/dev/stdin");
  return { organization, key, codes };
}

/** A response, and its time including all repeats. Milliseconds. */
interface Answered {
  status: number;
  body: Record<string, unknown>;
  tookMs: number;
}

/** Calls the API as a partner must: repeats the same call after a lost connection or a 5xx. */
async function callPatiently(nextUrl: () => string, headers: Record<string, string>, body?: object): Promise<Answered> {
  const startedAt = performance.now();
  for (;;) {
    const url = nextUrl();
    try {
      const response = await fetch(url, {
        method: body === undefined ? "GET" : "POST",
        headers,
        signal: AbortSignal.timeout(10_000),
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      if (response.status < 500) {
        const tookMs = performance.now() - startedAt;
        return { status: response.status, body: (await response.json()) as Record<string, unknown>, tookMs };
      }
    } catch {
      // Repeated below.
    }
    assert.ok(performance.now() < startedAt + RETRY_MAX_MS, `${url} got no answer in ${RETRY_MAX_MS} ms`);
    await sleep(250);
  }
}

/** Calls `redeem` repeatedly while `work` runs, and once after it. */
async function repeatDuring(work: () => Promise<unknown>, redeem: () => Promise<void>): Promise<void> {
  let isOver = false;
  const redeeming = (async () => {
    for (let last = false; !last; await sleep(50)) {
      last = isOver;
      await redeem();
    }
  })();
  await Promise.all([work().finally(() => (isOver = true)), redeeming]);
}

/** Opens a partner that calls the API processes in turn, and records the redemptions that they report. */
function openPartner(urls: readonly string[]) {
  let calls = 0;
  const partner = {
    key: "",
    confirmed: new Map<string, string>(),
    /** The longest time until an answer, with all repeats, since a test last set this to 0. Milliseconds. */
    slowestMs: 0,
    get headers() {
      return { "x-api-key": partner.key, "content-type": "application/json" };
    },

    async call(path: string, body?: object): Promise<Pick<Answered, "status" | "body">> {
      const nextUrl = () => `${urls[calls++ % urls.length]}${path}`;
      const { tookMs, ...answer } = await callPatiently(nextUrl, partner.headers, body);
      partner.slowestMs = Math.max(partner.slowestMs, tookMs);
      return answer;
    },

    async redeemAll(codes: readonly string[]): Promise<void> {
      for (const code of codes) {
        const externalRef = `order-${code}`;
        const { status, body } = await partner.call("/partner/vouchers/redeem", { code, externalRef });
        assert.equal(status, 200, JSON.stringify(body));
        partner.confirmed.set(externalRef, String(body.redeemCode));
      }
    },

    /** Redeems vouchers one after another while `work` runs, and one voucher after it. Returns the unused codes. */
    async redeemDuring(codes: readonly string[], work: () => Promise<unknown>): Promise<string[]> {
      const left = [...codes];
      await repeatDuring(work, async () => {
        const code = left.shift();
        assert.ok(code, "the supply is too small");
        await partner.redeemAll([code]);
      });
      return left;
    },
  };
  return partner;
}

/**
 * Runs docker-compose.yml in a copy of this checkout, on ports of its own. Calls the service as a partner must, and
 * compares the reported redemptions with the database.
 */
export async function openDeployment({ urls, psql, ...services }: Services) {
  const { checkout, run, runWith, compose } = await copyCheckout(urls[0]);
  const voucherctlWith = async (input: string, ...args: string[]) =>
    JSON.parse(await runWith(input, "docker", "compose", "run", "--rm", "-T", services.voucherctl, ...args, "--json"));
  const voucherctl = (...args: string[]) => voucherctlWith("", ...args);

  const partner = openPartner(urls);
  let organization = "";
  return Object.assign(partner, {
    checkout,
    run,
    compose,
    voucherctl,
    idOf: async (service: string) => (await compose("ps", "-q", service)).trim().split("\n")[0] ?? "",

    async supply(count: number): Promise<string[]> {
      const supplied = await supplyVouchers(voucherctlWith, count);
      ({ organization, key: partner.key } = supplied);
      return supplied.codes;
    },

    /** Expects every confirmed redemption in the database, and no other redemption. */
    async assertProved(): Promise<void> {
      const sql = `SELECT external_ref || ' ' || redeem_code FROM redemptions
                    WHERE organization_id = '${organization}' ORDER BY 1`;
      const stored = (await compose("exec", "-T", ...psql, "-At", "-c", sql)).trim().split("\n");
      assert.deepEqual(stored, [...partner.confirmed].map(([ref, redeemCode]) => `${ref} ${redeemCode}`).sort());
      // The command exits with 1 if a chain is broken.
      await voucherctl("chain", "verify", "--all");
    },

    async close(): Promise<void> {
      await compose("--profile", "*", "down", "--volumes", "--timeout", "5");
      rmSync(checkout, { recursive: true });
    },
  });
}
