import { type CodeGuard, guardsOf } from "./broken-copy.ts";

/** The guards of acts and of the interfaces that offer them, in the form of `code-guards.ts`. */
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
    "a void of a batch leaves expired vouchers": ["voidRefusal(voucher, now) === null", "true"],
  }),
  ...guardsOf("src/acts/erase-person.ts", ["test/acts/erasure.test", "test/issuer/issuer-routes"], {
    "an erasure of a user looks again after its wait": [
      "await eraseFound(one);\n  }\n  return total;",
      'if (one.by !== "user") await eraseFound(one);\n  }\n  return total;',
    ],
    "an erasure is refused while a process of an earlier release has a session": ["await assertUpgraded(tx);", ""],
    "an erasure replaces a user in all tables": [
      "await eraseOther((tx) => eraseUser(tx, { userId: one.userId, upTo }));",
      "",
    ],
    "an erasure replaces the reference of a batch": [
      "await eraseOther((tx) => eraseReference(tx, { organizationId, reference, upTo }));",
      "",
    ],
  }),
  ...guardsOf("src/acts/find-person.ts", ["test/acts/erasure.test", "test/issuer/issuer-routes"], {
    "an erasure finds both forms of a reference": ["formsOf(person.externalRef).map(", "[person.externalRef].map("],
  }),
  ...guardsOf("src/acts/read-person.ts", ["test/acts/erasure.test"], {
    "what is held about a person names no other user": ["referrer !== userId", "false"],
    "the audit entry of a look at a person does not name the person": [
      "ctx.audited.arguments = { by: person.by };",
      "",
    ],
  }),
  ...guardsOf("src/acts/erase-person.ts", ["test/acts/erasure-locks"], {
    "an erasure waits for no text while it has vouchers locked": [
      "await lockFreeTexts(tx, await lock(tx, wanted))",
      "await lock(tx, wanted)",
    ],
  }),
  ...guardsOf("src/acts/erase-person.ts", ["test/acts/erasure-replay"], {
    "a replay leaves what was written after the erasure": ["upTo === null || occurredAt <= upTo", "true"],
  }),
  ...guardsOf("src/acts/erase-person.ts", ["test/acts/erasure-restore"], {
    "the audit entry of an erasure does not name the person": [
      "ctx.audited.arguments = { by: person.by, ...(reason !== null && { reason }) };",
      "",
    ],
  }),
  ...guardsOf("src/issuer/issuer.ts", ["test/issuer/issuer-routes"], {
    "what belongs to another organization is unknown": [
      "isOfKind && lineage.organizationId === organizationId",
      "isOfKind",
    ],
  }),
  ...guardsOf("src/issuer/issuer.ts", ["test/issuer/issuer-faults"], {
    "an act stops when its key ends": ["if (ended.aborted) throw new KeyEnded();", ""],
  }),
  ...guardsOf("src/issuer/act-endpoint.ts", ["test/issuer/issuer-routes"], {
    "an act of a program is on an own entity": ["await ctx.requireOwn(on, parameters.id);", ""],
    "an issuer's call needs the scope for it": [`partnerKey("voucher.issue")`, `partnerKey("voucher.read")`],
  }),
  ...guardsOf("src/issuer/lists.ts", ["test/issuer/issuer-routes"], {
    "a list is limited to an own entity": ["await ctx.requireOwn(kind as EntityKind, String(id));", ""],
    "a list has the organization's own entities only": ["org: caller.organizationId, ", ""],
  }),
  ...guardsOf("src/issuer/batch-portions.ts", ["test/issuer/issuer-routes"], {
    "a program voids its own batches only": [`await ctx.requireOwn("batch", id);`, ""],
  }),
  ...guardsOf("src/issuer/batch-portions.ts", ["test/issuer/issuer-faults"], {
    "a void of a batch waits for no lock after its end": [", endBy }", " }"],
    "a void of a batch waits for a connection for a time only": ["{ maxMs: PLACE_WAIT_MS }", "{}"],
  }),
  ...guardsOf("src/issuer/one-voucher.ts", ["test/issuer/issuer-routes"], {
    "a program voids its own vouchers only": [`await ctx.requireOwn("voucher", id);`, ""],
  }),
  ...guardsOf("src/issuer/routes/batch-vouchers.ts", ["test/issuer/codes-file"], {
    "a file of codes is not refused in the middle because the service is busy": [", { continues: true }", ""],
  }),
  ...guardsOf("src/acts/export-batch.ts", ["test/issuer/issuer-routes"], {
    "codes that are sent leave an audit entry": ["await run((ctx) => recordReading(ctx, batchId, to - from + 1));", ""],
  }),
  ...guardsOf("src/acts/issue-batch.ts", ["test/issuer/issuer-routes"], {
    "an organization issues once under a reference": ["if (!(await claimed)) throw new ReferenceTaken();", ""],
  }),
  ...guardsOf("src/console/sign-in/operator-sign-in.ts", ["test/console/sign-in"], {
    "the shared token is compared": ["timingSafeEqual(digest(password), this.#sharedDigest)", "true"],
    "an operator's token signs in under the operator's name only": [" || operator.name !== name", ""],
  }),
  ...guardsOf("src/acts/db/operators.sql", ["test/console/sign-in"], {
    "a revoked operator does not sign in": ["ANY ($1::bytea[]) AND o.revoked_at IS NULL", "ANY ($1::bytea[])"],
    "an operator who has expired does not sign in": [
      "(o.expires_at IS NULL OR o.expires_at > least(clock_timestamp(), $2::timestamptz))\n   AND (t.",
      "true\n   AND (t.",
    ],
    "a token that was rotated does not sign in": [
      "(t.expires_at IS NULL OR t.expires_at > least(clock_timestamp(), $2::timestamptz))",
      "true",
    ],
  }),
  ...guardsOf("src/console/sign-in/operator-tokens.ts", ["test/console/sign-in"], {
    "a JWT without a role does not sign in": ["roles.includes(role)) ?? null", `roles.includes(role)) ?? "viewer"`],
  }),
  ...guardsOf("src/core/keys/authenticate-user.ts", ["test/console/sign-in"], {
    "a JWT of another issuer does not sign in": ["...(issuer !== null && { issuer }),", ""],
    "a JWT for another audience does not sign in": ["...(audience !== null && { audience }),", ""],
    "a JWT without an end does not sign in": [`, "exp"]`, "]"],
    "a JWT that has expired does not sign in": ["currentDate: now,", "currentDate: new Date(0),"],
  }),
  ...guardsOf("src/console/operator-route.ts", ["test/console/operator-roles"], {
    "a page needs its role": [
      "requireRole(role), ...handlers",
      `...(method === "get" ? [] : [requireRole(role)]), ...handlers`,
    ],
    "a form needs its role": [
      "requireRole(role), ...handlers",
      `...(method === "post" ? [] : [requireRole(role)]), ...handlers`,
    ],
  }),
];
