import { type Command, Option } from "commander";
import { readTokenClaims } from "../config.ts";
import { LOCAL_DIRECTORY } from "../local/directory.ts";
import { serverlessAction } from "./command.ts";
import { UsageError } from "./exit-code.ts";
import { duration, subject } from "./option-parsers.ts";

/** `user`: tokens to try the user routes with. */
export function addUserCommands(program: Command): void {
  const user = program.command("user").description("users of the embedded default");
  serverlessAction<{ user: string; ttl: number }>(
    user
      .command("token")
      .description("make a token for a user; only the embedded default takes it")
      .requiredOption("--user <sub>", "the user", subject)
      .addOption(new Option("--ttl <duration>", "how long it works").argParser(duration).default(duration("1h"), "1h")),
    ["user token --user alice", "user token --user alice --ttl 7d --json"],
    async (ctx, options) => {
      if (process.env.DATABASE_URL) {
        throw new UsageError("Tokens are made for the embedded default only; unset DATABASE_URL.");
      }
      const { mintUserToken } = await import("../local/user-keys.ts");
      const token = await mintUserToken(LOCAL_DIRECTORY, options.user, options.ttl, readTokenClaims(process.env));
      await ctx.print({ token }, () => token);
    },
  );
}
