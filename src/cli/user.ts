import { duration, subject } from "../acts/fields.ts";
import { LOCAL_DIRECTORY } from "../local/directory.ts";
import { readTokenClaims } from "../platform/config.ts";
import { type Noun, readEnvironment, verbWithoutServers } from "./command.ts";
import { UsageError } from "./exit-code.ts";
import { optionOf } from "./field-option.ts";

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
        const env = readEnvironment();
        if (env.DATABASE_URL) {
          throw new UsageError("Only the embedded servers accept these tokens. Unset DATABASE_URL.");
        }
        const { mintUserToken } = await import("../local/user-keys.ts");
        const token = await mintUserToken(LOCAL_DIRECTORY, user, ttl, readTokenClaims(env));
        ctx.print({ token }, () => token);
      },
    }),
  },
};
