import { type Command, Option } from "commander";
import { readTokenClaims } from "../config.ts";
import { AppError } from "../domain/errors.ts";
import { LOCAL_DIRECTORY } from "../local/directory.ts";
import { action, duration } from "./command.ts";
import { subject } from "./marketplace.ts";

/** `user`: tokens to try the user routes with. */
export function addUserCommands(program: Command): void {
  const user = program.command("user").description("users of the embedded default");
  action<{ user: string; ttl: number }>(
    user
      .command("token")
      .description("make a token for a user; only the embedded default takes it")
      .requiredOption("--user <sub>", "the user", subject)
      .addOption(new Option("--ttl <duration>", "how long it works").argParser(duration).default(duration("1h"), "1h")),
    async (ctx, options) => {
      if (process.env.DATABASE_URL) {
        throw new AppError("invalid_request", "Tokens are made for the embedded default only; unset DATABASE_URL.");
      }
      const { mintUserToken } = await import("../local/user-keys.ts");
      const token = await mintUserToken(LOCAL_DIRECTORY, options.user, options.ttl, readTokenClaims(process.env));
      ctx.print({ token }, token);
    },
  );
}
