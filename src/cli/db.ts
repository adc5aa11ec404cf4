import type { Command } from "commander";
import { readRolePasswords } from "../config.ts";
import type { AppliedRole } from "../db/roles/apply-roles.ts";
import { settleRoles } from "../services/settle-roles.ts";
import { action } from "./command.ts";

/** `db`: the database's own administration. */
export function addDbCommands(program: Command): void {
  const db = program.command("db").description("the database itself");
  action(
    db
      .command("roles")
      .description("make the roles pva_api and pva_admin, or settle their rights again after a migration")
      .addHelpText(
        "after",
        "\nDATABASE_URL must name the database's owner, who may create roles. With\n" +
          "PVA_API_PASSWORD or PVA_ADMIN_PASSWORD in the environment (16 or more visible\n" +
          "ASCII characters) that role can log in with it; without, grant it to a login\n" +
          "of yours.",
      ),
    ["db roles"],
    async (ctx) => {
      const passwords = readRolePasswords(process.env);
      const { roles, takenFromPublic } = await settleRoles(ctx, passwords);
      const taken = takenFromPublic.map((what) => `Taken from PUBLIC: ${what}.`);
      await ctx.print({ roles, takenFromPublic }, () => [...roles.map(describe), ...taken].join("\n"));
    },
  );
}

function describe({ name, created, login, passwordSet }: AppliedRole): string {
  const state = created ? "created" : "was there";
  const access = passwordSet ? "logs in with the password given" : login ? "logs in as before" : "nobody logs in as it";
  return `${name}: ${state}, has its rights, ${access}.`;
}
