import { spawn } from "node:child_process";
import { createReadStream, rmSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import pg from "pg";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const VALID_UNTIL = "2040-01-01T00:00:00Z";

/** An organization with a product and a key, and its vouchers that were not used yet. */
export interface Partner {
  organizationId: string;
  productId: string;
  key: string;
}

/** How long an administration command took. */
export interface Timed {
  seconds: number;
}

/** Makes what the benchmark uses in one database. All of it by the project's own commands. */
export class Supply {
  readonly databaseUrl: string;
  readonly #directory: string;
  readonly #signal: AbortSignal;
  /** In random order, as vouchers come back. */
  #codes: string[] = [];
  #batches = 0;

  constructor(databaseUrl: string, directory: string, signal: AbortSignal) {
    this.databaseUrl = databaseUrl;
    this.#directory = directory;
    this.#signal = signal;
  }

  /** Makes an organization with a brand, a product and a key. */
  async makePartner(name: string): Promise<Partner> {
    const { id: organizationId } = await this.#voucherctl("org", "create", "--name", name);
    const keyMade = this.#voucherctl(
      ...["key", "create", "--org", organizationId, "--scope", "voucher.read", "--scope", "voucher.redeem"],
    );
    const { id: brandId } = await this.#voucherctl("brand", "create", "--org", organizationId, "--name", name);
    const { id: productId } = await this.#voucherctl(
      ...["product", "create", "--brand", brandId, "--key", "pass", "--name", `${name} Pass`, "--type", "Subscription"],
      ...["--retail-price-usd", "29.90", "--price-usd", "19.90", "--benefit-months", "3"],
    );
    return { organizationId, productId, key: (await keyMade).key };
  }

  /**
   * Issues vouchers and brings the tables into the state in which Postgres would have them a little later. Keeps at most `keep`
   * codes, drawn evenly from the batch.
   */
  async issue(partner: Partner, count: number, keep: number = count, windows: string[] = []): Promise<Timed> {
    this.#batches += 1;
    const file = join(this.#directory, `batch-${process.pid}-${this.#batches}.csv`);
    const { seconds } = await this.#voucherctl(
      ...["batch", "issue", "--product", partner.productId, "--count", String(count)],
      ...["--valid-until", VALID_UNTIL, "--out", file, ...windows],
    );
    const every = Math.max(1, Math.floor(count / keep));
    const codes: string[] = [];
    let row = 0;
    for await (const line of createInterface({ input: createReadStream(file, "utf8") })) {
      if (row > 0 && row % every === 0) codes.push(line.split(",")[1] as string);
      row += 1;
    }
    rmSync(file);
    this.giveBack(codes);
    const client = new pg.Client({ connectionString: this.databaseUrl });
    await client.connect();
    await client.query("VACUUM (ANALYZE)");
    await client.query("CHECKPOINT").finally(() => client.end());
    return { seconds };
  }

  get left(): number {
    return this.#codes.length;
  }

  /** Takes codes out that nobody else gets. */
  take(count: number): string[] {
    if (count > this.#codes.length) throw new Error(`${count} vouchers are wanted and ${this.#codes.length} are left`);
    return this.#codes.splice(this.#codes.length - count);
  }

  /** Codes without taking them. */
  peek(count: number): string[] {
    return this.#codes.slice(0, count);
  }

  /** Gives codes back that were not used. */
  giveBack(codes: readonly string[]): void {
    this.#codes = [...codes, ...this.#codes];
    shuffle(this.#codes);
  }

  /** Verifies every chain, as `voucherctl chain verify --all` does; returns how many events and how many chains are broken. */
  async verify(): Promise<Timed & { events: number; broken: number }> {
    const { events, broken, seconds } = await this.#voucherctl("chain", "verify", "--all");
    return { events, broken: broken.length, seconds };
  }

  // biome-ignore lint/suspicious/noExplicitAny: each command answers its own JSON.
  async #voucherctl(...args: string[]): Promise<any> {
    const startedAt = performance.now();
    const child = spawn(process.execPath, ["--max-semi-space-size=4", "src/cli/main.ts", ...args, "--json"], {
      cwd: ROOT,
      signal: this.#signal,
      env: { PATH: process.env.PATH ?? "", DATABASE_URL: this.databaseUrl, REDIS_URL: "redis://127.0.0.1:1" },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let output = "";
    let complaints = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      complaints += text;
    });
    const exitCode = await new Promise((resolve, reject) => {
      child.once("error", reject);
      child.once("close", resolve);
    });
    if (exitCode !== 0) throw new Error(`voucherctl ${args.join(" ")} failed: ${complaints}`);
    return { ...JSON.parse(output), seconds: (performance.now() - startedAt) / 1_000 };
  }
}

/** Fisher and Yates. */
function shuffle(items: string[]): void {
  for (let i = items.length - 1; i > 0; i--) {
    const other = Math.floor(Math.random() * (i + 1));
    [items[i], items[other]] = [items[other] as string, items[i] as string];
  }
}
