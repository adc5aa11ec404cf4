import { insertOrganization } from "../../core/catalog/db/catalog.ts";
import { newId } from "../../core/voucher/ids.ts";
import { markSandbox } from "../../platform/api/fields.ts";
import { act } from "../act.ts";
import { flag, text } from "../fields.ts";
import { withAuditEntry } from "../with-audit-entry.ts";

export const createOrganization = act({
  name: "org create",
  on: null,
  creates: "organization",
  role: "admin",
  title: "Create an organization",
  examples: ['--name "Corner Shop"', '--name "Corner Shop tests" --sandbox'],
  fields: {
    name: text("Name", 200, { hint: "The partner, as operators see it." }),
    sandbox: flag(
      "Sandbox: for tests. Its keys begin with pvt_, its vouchers have no value. This cannot be changed later.",
    ),
  },
  asksNamesake: true,
  async run(ctx, _none, { name, sandbox }) {
    const id = newId("org");
    await withAuditEntry(ctx, { type: "Organization", id }, (tx) => insertOrganization(tx, { id, name, sandbox }));
    return { id, ...markSandbox(sandbox) };
  },
  said: ({ id, sandbox }, { name }) => `${sandbox ? "Sandbox organization" : "Organization"} ${name}: ${id}`,
  next: ({ id }) => `voucherctl brand create --org ${id} --name NAME`,
  leadsTo: "brand",
});
