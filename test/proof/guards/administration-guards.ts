import { type CodeGuard, guardsOf } from "./broken-copy.ts";

/** The guards of administration: of the acts, and of the faces that offer them. As in `code-guards.ts`. */
export const ADMINISTRATION_GUARDS: CodeGuard[] = [
  ...guardsOf("src/acts/act.ts", ["test/console/operator-actions"], {
    "the rules of an act are checked": ["if (problems.length > 0) throw new InvalidValues(problems);", ""],
    "an end that has passed is refused": ["values.mayBePast === true || !(await isPast(db, end))", "true"],
    "an end has passed by the database's clock": ["!(await isPast(db, end))", "end > new Date()"],
  }),
  ...guardsOf("src/acts/operator-role.ts", ["test/console/operator-roles"], {
    "a role does not have the rights of those above": [
      "OPERATOR_ROLES.indexOf(has) >= OPERATOR_ROLES.indexOf(needs)",
      "true",
    ],
  }),
  ...guardsOf("src/acts/with-audit-entry.ts", ["test/acts/audit-entries", "test/console/operator-actions"], {
    "a change has its audit entry": ["await insertAuditEntry(tx, { ...ctx.audited, entity, before, after });", ""],
    "a change and its audit entry are one transaction": [
      "await insertAuditEntry(tx, {",
      "await insertAuditEntry(ctx.pool as never, {",
    ],
    "a change that its entity does not show is rolled back": [
      "if (isDeepStrictEqual(before, after)) throw NOTHING_CHANGED;",
      "",
    ],
    "changes of one entity come one after another": ["await lockEntity(tx, entity);", ""],
    "a form acts once": ["await claimForm(tx, ctx.audited, entity.id);", ""],
    "what exists already is told as such": [
      `violates(cause, constraint) ? new AppError("already_exists", sentence, { cause }) : cause`,
      "cause",
    ],
  }),
  ...guardsOf("src/acts/void-batch.ts", ["test/acts/void-batch"], {
    "a void of a batch leaves expired vouchers": [
      "[...vouchers.values()].filter((voucher) => finalRefusal(voucher, now) === null)",
      "[...vouchers.values()]",
    ],
  }),
  ...guardsOf("src/acts/erase-person.ts", ["test/acts/erasure.test", "test/issuer/issuer-routes"], {
    "an erasure of a user looks again after its wait": [
      "await eraseOther((tx) => eraseUser(tx, userId));\n      await eraseFound({ ...NO_TARGET, userId });",
      "await eraseOther((tx) => eraseUser(tx, userId));",
    ],
    "an erasure replaces a user in all tables": ["await eraseOther((tx) => eraseUser(tx, userId));", ""],
    "an erasure replaces the reference of a batch": [
      "await eraseOther((tx) => eraseReference(tx, { organizationId, reference }));",
      "",
    ],
    "an erasure finds both forms of a reference": [
      "const reference of formsOf(person.externalRef)",
      "const reference of [person.externalRef]",
    ],
  }),
  ...guardsOf("src/acts/erase-person.ts", ["test/acts/erasure-restore"], {
    "the audit entry of an erasure does not name the person": [
      "ctx.audited.arguments = { by: person.by, ...(reason !== null && { reason }) };",
      "",
    ],
  }),
  ...guardsOf("src/issuer/issuer.ts", ["test/issuer/issuer-routes", "test/issuer/issuer-faults"], {
    "what belongs to another organization is unknown": [
      "isOfKind && lineage.organizationId === organizationId",
      "isOfKind",
    ],
  }),
];
