import { readRolePasswords } from "../config.ts";
import type { AppliedRole } from "../db/roles/apply-roles.ts";
import { adopt } from "../services/admin/adopt-database.ts";
import { applyRoleGrants } from "../services/admin/apply-roles.ts";
import { action, type Noun } from "./command.ts";

export const db: Noun = {
  name: "db",
  description: "roles and identity of the database",
  addVerbs(noun) {
    action(
      noun
        .command("roles")
        .description("create the roles pva_api and pva_admin, or update their grants after a migration")
        .addHelpText(
          "after",
          "\nConnect as the owner of the database. The owner needs the CREATEROLE attribute.\n" +
            "Set PVA_API_PASSWORD or PVA_ADMIN_PASSWORD (16 or more visible ASCII characters)\n" +
            "to let that role log in. Otherwise grant the role to a login of your own.",
        ),
      ["db roles"],
      async (ctx) => {
        const { roles, takenFromPublic } = await applyRoleGrants(ctx, readRolePasswords(process.env));
        const revoked = takenFromPublic.map((grant) => `Revoked from PUBLIC: ${grant}.`);
        ctx.print({ roles, takenFromPublic }, () => [...roles.map(describe), ...revoked].join("\n"));
      },
    );
    action(
      noun
        .command("adopt")
        .description("give a restored or copied database its own deployment id")
        .addHelpText(
          "after",
          "\nProcesses refuse a database that was copied or restored elsewhere, because the\n" +
            "jobs in Redis may belong to the original. Stop every process that uses the\n" +
            "original, run this command on the copy, and start the processes on the copy.",
        ),
      ["db adopt"],
      async (ctx) => {
        const { id, before } = await adopt(ctx);
        ctx.print(
          { id, before },
          () =>
            `Adopted. The deployment's id is now ${id}; it was ${before}. Restart every process that uses this database.`,
        );
      },
    );
  },
};

function describe({ name, created, login, passwordSet }: AppliedRole): string {
  const access = passwordSet ? "logs in with the given password" : login ? "logs in as before" : "cannot log in";
  return `${name}: ${created ? "created" : "already existed"}, grants are up to date, ${access}.`;
}
