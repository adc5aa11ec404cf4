import { duration, subject } from "../acts/fields.ts";
import { type Noun, verbWithoutServers } from "../cli/command.ts";
import { UsageError } from "../cli/exit-code.ts";
import { optionOf } from "../cli/field-option.ts";
import { readTokenClaims } from "../platform/config.ts";
import { LOCAL_DIRECTORY } from "./directory.ts";

export const user: Noun = {
  name: "user",
  description: "users of the embedded servers",
  verbs: {
    token: verbWithoutServers({
      description: "create a user token, to try the user routes on the embedded servers",
      options: {
        user: optionOf(subject("The user")),
        ttl: optionOf(duration("How long it is valid", { initial: 3_600_000 })),
      },
      examples: ["--user alice", "--user alice --ttl 7d --json"],
      async run(ctx, { user, ttl }) {
        const env = ctx.host.readEnvironment();
        if (env.DATABASE_URL) {
          throw new UsageError("Only the embedded servers accept these tokens. Unset DATABASE_URL.");
        }
        const { mintUserToken } = await import("./user-keys.ts");
        const token = await mintUserToken(LOCAL_DIRECTORY, user, ttl, readTokenClaims(env));
        ctx.print({ token }, () => token);
      },
    }),
  },
};
