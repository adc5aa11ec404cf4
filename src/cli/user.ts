import { Option } from "commander";
import { readTokenClaims } from "../config.ts";
import { LOCAL_DIRECTORY } from "../local/directory.ts";
import { actionWithoutServers, type Noun } from "./command.ts";
import { UsageError } from "./exit-code.ts";
import { duration, subject } from "./option-parsers.ts";

export const user: Noun = {
  name: "user",
  description: "users of the embedded servers",
  addVerbs(noun) {
    actionWithoutServers<{ user: string; ttl: number }>(
      noun
        .command("token")
        .description("create a user token, to try the user routes on the embedded servers")
        .requiredOption("--user <sub>", "the user", subject)
        .addOption(
          new Option("--ttl <duration>", "how long it is valid").argParser(duration).default(duration("1h"), "1h"),
        ),
      ["user token --user alice", "user token --user alice --ttl 7d --json"],
      async (ctx, options) => {
        if (process.env.DATABASE_URL) {
          throw new UsageError("Only the embedded servers accept these tokens. Unset DATABASE_URL.");
        }
        const { mintUserToken } = await import("../local/user-keys.ts");
        const token = await mintUserToken(LOCAL_DIRECTORY, options.user, options.ttl, readTokenClaims(process.env));
        ctx.print({ token }, () => token);
      },
    );
  },
};
