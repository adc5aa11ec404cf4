import {
  CHECKS,
  type CheckOptions,
  checkClient,
  describeChecks,
  ServiceUnavailable,
  UsageError as UnusableOptions,
  VOUCHERS_NEEDED,
} from "../../packages/conformance/src/check-client.ts";
import { actionWithoutServers, type Interaction, type Noun } from "./command.ts";
import { EXIT, ServersUnavailable, UsageError } from "./exit-code.ts";
import { paint } from "./paint.ts";

export const sandbox: Noun = {
  name: "sandbox",
  description: "tests of a partner's client",
  addVerbs(noun) {
    actionWithoutServers<CheckOptions>(
      noun
        .command("check")
        .description("run a client against a sandbox, with faults, and say what it gets wrong")
        .requiredOption("--key <key>", "the sandbox's key, with both scopes")
        .requiredOption("--url <url>", "the service's address")
        .requiredOption("--client <command>", "runs the client for one step; see docs/sandbox.md")
        .requiredOption(
          "--codes <file>",
          `at least ${VOUCHERS_NEEDED} unused codes: one per line, or the CSV file from batch issue --out`,
        )
        .option("--keep-vouchers", "skip the last check, which expires the sandbox's vouchers")
        .addHelpText("after", "\nExit status: 0 all right, 1 the client does something wrong, 2 wrong usage."),
      ['sandbox check --key pvt_… --url https://vouchers.example.com --codes codes.csv --client "node my-client.mjs"'],
      check,
    );
  },
};

const STYLE = { right: "green", wrong: "red", "not tried": "yellow" } as const;

async function check(interaction: Interaction, options: CheckOptions): Promise<void> {
  const progress = interaction.progress("Tried", "checks", CHECKS.length);
  let done = 0;
  const checks = await checkClient(options, interaction.signal, () => progress.advance(++done)).catch((error) => {
    if (error instanceof UnusableOptions) throw new UsageError(error.message);
    if (error instanceof ServiceUnavailable) throw new ServersUnavailable(error.message);
    throw error;
  });
  const passed = checks.every(({ result }) => result !== "wrong");
  interaction.print({ passed, checks }, () => describeChecks(checks, (result, word) => paint(STYLE[result], word)));
  if (!passed) process.exitCode = EXIT.refused;
}
