import type { Command } from "commander";
import { expect, it } from "vitest";
import { actOfFurtherForm } from "../../src/acts/act.ts";
import { ACTS, type AnyAct } from "../../src/acts/acts.ts";
import { bodyOf, type Fields } from "../../src/acts/fields.ts";
import { queueActs } from "../../src/acts/queue/acts.ts";
import { formPathOf } from "../../src/console/actions/act-form.ts";
import { formsOf } from "../../src/console/actions/forms.ts";
import { issuerEndpoints } from "../../src/issuer/endpoints.ts";
import { buildVoucherctl } from "../../src/local/voucherctl.ts";
import { each } from "../../src/open/api-parts.ts";
import { CONFIG_PARTS } from "../../src/open/config-parts.ts";
import { WING_ACTS } from "../../src/open/wing-acts.ts";

const ALL: readonly AnyAct[] = [...ACTS, ...WING_ACTS, ...(queueActs({ whilePaused: "" }) as AnyAct[])];
const ofWings = { acts: WING_ACTS, forms: each("operatorPages").flatMap(({ forms: own = [] }) => own) };
const forms = formsOf(CONFIG_PARTS.queues, ofWings);
const leaves = (command: Command): Command[] =>
  command.commands.length === 0 ? [command] : command.commands.flatMap(leaves);
const commands = new Map(
  leaves(buildVoucherctl()).map((leaf) => [`${leaf.parent?.name()} ${leaf.name()}`, leaf.options]),
);
const offered = (fields: Fields) =>
  Object.entries(fields).filter(([, { onlyFor, commandOnly }]) => onlyFor !== "programs" && commandOnly !== true);

it("each administrative act is a voucherctl command with one option per field, or is only in the console", () => {
  for (const { name, only, fields } of ALL) {
    const options = commands.get(name)?.map((option) => option.attributeName());
    expect(options === undefined, name).toBe(only === "console");
    const wanted = Object.entries(fields).flatMap(([field, { option = field, flags, onlyFor }]) =>
      onlyFor === "programs" ? [] : Object.keys(flags ?? { [option]: "" }),
    );
    if (options !== undefined) expect(options, name).toEqual(expect.arrayContaining(wanted));
  }
});

it("each administrative act is a console form with the act's fields, or is only a voucherctl command", () => {
  const further = ALL.flatMap((act) => actOfFurtherForm(act) ?? []);
  expect(further.map(({ name }) => name)).toEqual(["person show", "person erase"]);
  for (const act of [...ALL, ...further]) {
    const named = act.on === "queue" ? "redeem" : ":id";
    const form = forms.find(({ is: [path, command] }) => command === act.name && path === formPathOf(act, named));
    expect(form === undefined, act.name).toBe(act.only === "command");
    if (form === undefined) continue;
    expect(form.role).toBe(act.role);
    const read = Object.entries(form.fields).filter(([name]) => !form.unrecorded.includes(name));
    const sameWay = offered(act.fields).map(([name, field]) =>
      field.kind === "duration" ? [`${name}Hours`, field] : [name, field],
    );
    expect(read, act.name).toEqual(sameWay);
  }
  const names = ALL.map(({ name }) => name);
  expect(forms.filter(({ is: [, command] }) => !names.includes(command as AnyAct["name"]))).toEqual([]);
});

it("the issuer API has an endpoint for exactly the acts that programs may use, with the acts' fields", () => {
  const changing = issuerEndpoints(WING_ACTS).filter(({ method }) => method === "post");
  const forPrograms = ALL.filter(({ scope }) => scope === "issuer");
  expect(changing.length).toBe(forPrograms.length);
  for (const { name, fields } of forPrograms) {
    const operationId = name.replace(/^(\w+) (\w+)$/, (_, noun, verb) => verb + noun[0].toUpperCase() + noun.slice(1));
    const found = changing.find((endpoint) => endpoint.operationId === operationId);
    expect(found, operationId).toBeDefined();
    const shape: Record<string, unknown> = { ...(found?.body as { shape?: object } | undefined)?.shape };
    const wanted = Object.keys(bodyOf(fields).shape);
    const named = name.startsWith("voucher ") ? ["code", "id"] : [];
    expect(Object.keys(shape).toSorted(), name).toEqual([...named, ...wanted].toSorted());
  }
});
