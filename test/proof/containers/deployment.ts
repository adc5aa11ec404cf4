import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";

const ROOT = join(import.meta.dirname, "../../..");
/** Longest time in which a call is repeated. Milliseconds. */
const RETRY_MAX_MS = 60_000;

/** The services of docker-compose.yml that a test uses. */
export interface Services {
  /** The API processes' addresses. Calls go to each in turn. */
  urls: string[];
  voucherctl: string;
  /** The command that runs psql, and the names of user and database. */
  psql: string[];
}

/**
 * Runs docker-compose.yml in a copy of this checkout, on ports of its own. Calls the service by the partner's rule, and
 * compares what it confirmed.
 */
export async function openDeployment({ urls, psql, ...services }: Services) {
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
    BASE_URL: urls[0],
    LOG_ORIGIN: "vouchers.test/log",
    VOUCHERCTL_USER: "alice",
    VOUCHERCTL_HOST: "desk-1",
  };
  const inCheckout = { cwd: checkout, env, maxBuffer: 1e8 };

  /** Runs a program with the checkout as working directory, and returns what it printed. */
  async function runWith(input: string, command: string, ...args: string[]): Promise<string> {
    const running = promisify(execFile)(command, args, inCheckout);
    running.child.stdin?.end(input);
    const { stdout } = await running.catch((error) => assert.fail(`${error.message}\n${error.stdout}`));
    return stdout;
  }
  const run = (command: string, ...args: string[]) => runWith("", command, ...args);
  const compose = (...args: string[]) => run("docker", "compose", ...args);
  /** Runs a command of voucherctl with standard input. Returns its JSON. */
  const voucherctlWith = async (input: string, ...args: string[]) =>
    JSON.parse(await runWith(input, "docker", "compose", "run", "--rm", "-T", services.voucherctl, ...args, "--json"));
  const voucherctl = (...args: string[]) => voucherctlWith("", ...args);

  let key = "";
  let organization = "";
  let calls = 0;
  /** The redeem code of each confirmed redeem, by its reference. */
  const confirmed = new Map<string, string>();
  const deployment = {
    checkout,
    run,
    compose,
    voucherctl,
    idOf: async (service: string) => (await compose("ps", "-q", service)).trim().split("\n")[0] ?? "",
    /** Longest time until a call was answered, repeats included, since this was last set to 0. Milliseconds. */
    slowestMs: 0,
    get headers() {
      return { "x-api-key": key, "content-type": "application/json" };
    },

    /** Makes an organization, a key and vouchers, and returns their codes. */
    async supply(count: number): Promise<string[]> {
      organization = (await voucherctl("org", "create", "--name", "Corner Shop")).id;
      const brand = (await voucherctl("brand", "create", "--org", organization, "--name", "Corner")).id;
      const prices = ["--retail-price-usd", "5", "--price-usd", "4"];
      const named = ["--key", "cup", "--name", "A cup", "--type", "Product"];
      const product = (await voucherctl("product", "create", "--brand", brand, ...named, ...prices)).id;
      const scopes = ["--scope", "voucher.read", "--scope", "voucher.redeem"];
      key = (await voucherctl("key", "create", "--org", organization, ...scopes)).key;
      const suffix = organization.slice(-8).toUpperCase();
      const codes = Array.from({ length: count }, (_, n) => `CUP-${String(n).padStart(4, "0")}-${suffix}`);
      const batch = ["--product", product, "--count", String(count), "--valid-until", "2099-01-01"];
      await voucherctlWith(codes.join("\n"), "batch", "issue", ...batch, "--codes", "/dev/stdin");
      return codes;
    },

    /** Calls the API by the partner's rule: repeats the same call after a lost connection or a 5xx. */
    async call(path: string, body?: object): Promise<{ status: number; body: Record<string, unknown> }> {
      const startedAt = performance.now();
      for (;;) {
        try {
          const response = await fetch(`${urls[calls++ % urls.length]}${path}`, {
            method: body === undefined ? "GET" : "POST",
            headers: deployment.headers,
            signal: AbortSignal.timeout(10_000),
            ...(body !== undefined && { body: JSON.stringify(body) }),
          });
          if (response.status < 500) {
            deployment.slowestMs = Math.max(deployment.slowestMs, performance.now() - startedAt);
            return { status: response.status, body: (await response.json()) as Record<string, unknown> };
          }
        } catch {
          // Repeated below.
        }
        assert.ok(performance.now() < startedAt + RETRY_MAX_MS, `${path} got no answer in ${RETRY_MAX_MS} ms`);
        await sleep(250);
      }
    },

    async redeemAll(codes: readonly string[]): Promise<void> {
      for (const code of codes) {
        const externalRef = `order-${code}`;
        const { status, body } = await deployment.call("/partner/vouchers/redeem", { code, externalRef });
        assert.equal(status, 200, JSON.stringify(body));
        confirmed.set(externalRef, String(body.redeemCode));
      }
    },

    /** Redeems vouchers, one after another, while `work` runs, and one after it. Returns the codes that are left. */
    async redeemDuring(codes: readonly string[], work: () => Promise<unknown>): Promise<string[]> {
      let isOver = false;
      const left = [...codes];
      const redeeming = (async () => {
        for (let last = false; !last; await sleep(50)) {
          last = isOver;
          const code = left.shift();
          assert.ok(code, "the supply is too small");
          await deployment.redeemAll([code]);
        }
      })();
      await Promise.all([work().finally(() => (isOver = true)), redeeming]);
      return left;
    },

    /** Every confirmed redemption is in the database, and there is no other. */
    async assertProved(): Promise<void> {
      const sql = `SELECT external_ref || ' ' || redeem_code FROM redemptions WHERE organization_id = '${organization}' ORDER BY 1`;
      const stored = (await compose("exec", "-T", ...psql, "-At", "-c", sql)).trim().split("\n");
      assert.deepEqual(stored, [...confirmed].map(([ref, redeemCode]) => `${ref} ${redeemCode}`).sort());
      // Exits with 1 when a chain is broken.
      await voucherctl("chain", "verify", "--all");
    },

    async close(): Promise<void> {
      await compose("--profile", "*", "down", "--volumes", "--timeout", "5");
      rmSync(checkout, { recursive: true });
    },
  };
  const copy = `git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t '${checkout}'`;
  await promisify(execFile)("bash", ["-c", copy], { cwd: ROOT });
  await run("./setup");
  return deployment;
}
