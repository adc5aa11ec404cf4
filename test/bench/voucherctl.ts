import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** The project's administration commands against one database. */
export interface Voucherctl {
  databaseUrl: string;
  /** Ends a command that runs when aborted. */
  signal: AbortSignal;
}

/** What a command answered and how long it took, its start included. */
export interface Administered<Answer> {
  answer: Answer;
  seconds: number;
}

/**
 * Runs a command as an operator would and reads its JSON.
 * @throws Error with what it said when it failed.
 */
export async function runVoucherctl<Answer>(
  { databaseUrl, signal }: Voucherctl,
  ...args: string[]
): Promise<Administered<Answer>> {
  const startedAt = performance.now();
  const child = spawn(process.execPath, ["--max-semi-space-size=4", "src/cli/main.ts", ...args, "--json"], {
    cwd: ROOT,
    signal,
    // No command of these needs Redis; with an address it does not start an embedded one.
    env: { PATH: process.env.PATH ?? "", DATABASE_URL: databaseUrl, REDIS_URL: "redis://127.0.0.1:1" },
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
  return { answer: JSON.parse(output), seconds: (performance.now() - startedAt) / 1_000 };
}

/** An organization with a product and a key. */
export interface Partner {
  organizationId: string;
  productId: string;
  key: string;
}

/** Makes an organization with a brand, a product and a key. */
export async function makePartner(ctl: Voucherctl, name: string): Promise<Partner> {
  const make = async (...args: string[]) => (await runVoucherctl<{ id: string; key?: string }>(ctl, ...args)).answer;
  const { id: organizationId } = await make("org", "create", "--name", name);
  const scopes = ["--scope", "voucher.read", "--scope", "voucher.redeem"];
  const { key = "" } = await make("key", "create", "--org", organizationId, ...scopes);
  const { id: brandId } = await make("brand", "create", "--org", organizationId, "--name", name);
  const { id: productId } = await make(
    ...["product", "create", "--brand", brandId, "--key", "pass", "--name", `${name} Pass`, "--type", "Subscription"],
    ...["--retail-price-usd", "29.90", "--price-usd", "19.90", "--benefit-months", "3"],
  );
  return { organizationId, productId, key };
}
