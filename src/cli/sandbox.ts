import {
  CHECKS,
  checkClient,
  describeChecks,
  ServiceUnavailable,
  UnusableOptions,
  VOUCHERS_NEEDED,
} from "#conformance/check-client.ts";
import { type Noun, verbWithoutServers } from "./command.ts";
import { EXIT, ServersUnavailable, UsageError } from "./exit-code.ts";
import { paint } from "./format.ts";
import { flag, required } from "./options.ts";

const STYLE = { right: "green", wrong: "red", "not tried": "yellow" } as const;
const CODES_HELP = `at least ${VOUCHERS_NEEDED} unused codes: one per line, or the CSV file from batch issue --out`;

export const sandbox: Noun = {
  name: "sandbox",
  description: "tests of a partner's client",
  verbs: {
    check: verbWithoutServers({
      description: "run a client against a sandbox, with faults, and say what it gets wrong",
      options: {
        key: required("<key>", "the sandbox's key, with both scopes"),
        url: required("<url>", "the service's address"),
        client: required("<command>", "runs the client for one step; see docs/sandbox.md"),
        codes: required("<file>", CODES_HELP),
        keepVouchers: flag("skip the last check, which expires the sandbox's vouchers"),
      },
      help: "Exit status: 0 all right, 1 the client does something wrong, 2 wrong usage.",
      examples: ['--key pvt_… --url https://vouchers.example.com --codes codes.csv --client "node my-client.mjs"'],
      async run(ctx, { keepVouchers = false, ...options }) {
        const progress = ctx.progress("Tried", "checks", CHECKS.length);
        let done = 0;
        const onResult = () => progress.advance(++done);
        const checks = await checkClient({ ...options, keepVouchers }, ctx.signal, onResult).catch((error) => {
          if (error instanceof UnusableOptions) throw new UsageError(error.message);
          if (error instanceof ServiceUnavailable) throw new ServersUnavailable(error.message);
          throw error;
        });
        const passed = checks.every(({ result }) => result !== "wrong");
        ctx.print({ passed, checks }, () => describeChecks(checks, (result, word) => paint(STYLE[result], word)));
        if (!passed) process.exitCode = EXIT.refused;
      },
    }),
  },
};
