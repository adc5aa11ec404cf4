import { ADMINISTRATION_GUARDS } from "./administration-guards.ts";
import { type CodeGuard, guardsOf } from "./broken-copy.ts";

/**
 * The service's guards in code, by file, with the tests that detect their loss. Each has a rule, its text, and the text
 * that breaks it. The list leaves out files that `npm run test:mutations` mutates. It also leaves out guards that only
 * save work, because a constraint refuses the same, such as a batch's record of its redemptions.
 */
export const CODE_GUARDS: CodeGuard[] = [
  ...guardsOf(
    "src/core/redeem/redeem-committer.ts",
    [
      "test/core/cross-organization",
      "test/core/redeem/redelivery",
      "test/core/redeem/redemption-times",
      "test/core/redeem/reference-races",
    ],
    {
      "a voucher of another organization is not redeemed": [
        "voucher.organizationId !== request.organizationId",
        "false",
      ],
      "a worker that is connected to another database does not redeem": ["isForeign || ", ""],
      "redeeming ends the reservation": ["...endReservations([...consumed, ...expired], now),", ""],
    },
  ),
  ...guardsOf("src/platform/db/database-clock.ts", ["test/core/jumped-clock", "test/core/redeem/redemption-times"], {
    "a redemption is not dated into closed time": ["Math.max(closedMs, decidesMs)", "decidesMs"],
    "a decision does not follow a jump ahead": ["Math.min(nowMs, latestMs)", "nowMs"],
    "a statement does not follow a jump ahead": ["clock?.isKnown ? clock.latestNow() : null", "null"],
    "nothing is decided days before the closed time": ["closedMs - latestMs > DISPUTED_MS", "false"],
    "a process that starts doubts a database that is days ahead": ["atMs - hostMs > DISPUTED_MS", "false"],
  }),
  ...guardsOf(
    "src/core/redeem/redeem-voucher.ts",
    ["test/core/redeem/redeem.test", "test/core/redeem/reference-races", "test/core/redeem/redeem-outcomes"],
    {
      "a refusal is told only after it ended earlier attempts": [
        `outcome.kind === "ended" && found.kind`,
        `found.kind`,
      ],
      "a reference of another voucher is marked": ["if (isNamedVoucher) return response;", "return response;"],
      "a repeated redeem is confirmed by the standby": ["    await awaitConfirmation(ctx, attempt.readFrom);\n", ""],
      "a request that may have waited during a pause adds no job": [
        "ctx.pauses.isOutdated(attempt.receivedAtMs)",
        "false",
      ],
    },
  ),
  ...guardsOf("src/core/redeem/redeem-voucher.ts", ["test/proof/faults/failover"], {
    "a refusal that was read from another server is not told": [
      "refusal(early.code), readFrom)",
      "refusal(early.code))",
    ],
  }),
  ...guardsOf("src/core/commit/proofs.ts", ["test/core/redeem/redeem-outcomes"], {
    "an unknown code ends earlier attempts": [`voucher_not_found: "ended"`, `voucher_not_found: "none"`],
    "too many misses cost no write": [
      `too_many_misses: "none",\n    voucher_used: "ended"`,
      `too_many_misses: "ended",\n    voucher_used: "ended"`,
    ],
    "a locked voucher ends the attempt itself": [`voucher_busy: "ended"`, `voucher_busy: "none"`],
    "a full queue costs no write": [
      `overloaded: "none",\n    redeem_timeout`,
      `overloaded: "ended",\n    redeem_timeout`,
    ],
  }),
  ...guardsOf("src/core/redeem/end-references.ts", ["test/proof/faults/failover"], {
    "a refusal that was read from another server does not end its reference": ["readFrom === serverId", "true"],
  }),
  ...guardsOf("src/core/look-up/look-up-voucher.ts", ["test/proof/faults/confirmed-answers"], {
    "a final status is confirmed by the standby": [
      "found.voucher !== null && hasFinalStatus(found.voucher)",
      "found === null",
    ],
  }),
  ...guardsOf("src/webhooks/deliver.ts", ["test/proof/faults/confirmed-answers"], {
    "an event is confirmed by the standby before it is sent": ["(due) => due.length > 0", "() => false"],
  }),
  ...guardsOf("src/webhooks/deliver.ts", ["test/webhooks/deliveries"], {
    "an erased event is not sent": ["const result = isErased(delivery)", "const result = false"],
    "an event that is erased after it was read is not sent": ["if (!isRecent(readAt)) {", "if (false) {"],
  }),
  ...guardsOf("src/core/commit/confirm-reads.ts", ["test/proof/faults/failover"], {
    "an answer that was read from another server is not confirmed": ["from === serverId", "true"],
    "what was read is confirmed by the standby": ["writes: [awaitStandbys()]", "writes: []"],
    "a final answer is confirmed": ["  if (isFinal(found)) await awaitConfirmation(ctx, readFrom);\n", ""],
  }),
  ...guardsOf("src/platform/db/transaction.ts", ["test/platform/db/commit-wait"], {
    "a COMMIT that is given up leaves no session that waits": ["cancelled = cancel(client);", ""],
  }),
  ...guardsOf("src/platform/db/durability.ts", ["test/acts/confirmed-acts"], {
    "what an act tells is confirmed by the standby": ["    await write(tx, [awaitStandbys()]);\n", ""],
    "what an act has read from another server is not confirmed": ["(await readServer(tx)) !== started", "false"],
  }),
  ...guardsOf("src/cli/redemption.ts", ["test/proof/faults/failover"], {
    "a command's list is confirmed by the standby": [
      "await confirmed(ctx.pool, () => findCompleteUntil(ctx.pool))",
      "await findCompleteUntil(ctx.pool)",
    ],
  }),
  ...guardsOf(
    "src/core/redeem/db/redemptions.sql",
    ["test/core/redeem/redemption-times", "test/core/redeem/redeem-outcomes"],
    {
      "the time before which lists are complete moves forward only": ["c.complete_until < f.until AND ", ""],
      "a reference is locked before its end is read": [
        "WHERE NOT pg_try_advisory_xact_lock_shared(hashtext(w.organization_id), hashtext(w.external_ref))",
        "WHERE false",
      ],
    },
  ),
  ...guardsOf("src/platform/queues/worker.ts", ["test/platform/queues/awaited-queue"], {
    "a job from another deployment is not run": ["origin !== deployment.serverId", "false"],
  }),
  ...guardsOf(
    "src/core/reserve/reserve-voucher.ts",
    ["test/core/reserve/reserve.test", "test/core/reserve/reservations"],
    {
      "a lease alone is told as no reservation": [
        `return { kind: "leased" };`,
        `return refused(refusal("voucher_reserved"), false);`,
      ],
      "a lease that was not used is released": [
        `if (currentHolder === null && outcome?.kind !== "opened")`,
        "if (false)",
      ],
    },
  ),
  ...guardsOf("src/core/reserve/reserve-voucher.ts", ["test/proof/faults/failover"], {
    "a repeated reserve, and a final refusal, are confirmed by the standby": [
      " await awaitConfirmation(ctx, readFrom);",
      ";",
    ],
  }),
  ...guardsOf("src/core/reserve/reservation-committer.ts", ["test/core/reserve/release"], {
    "only the live ticket is released": [
      "liveReservation(voucher.reservation, now)?.ticket !== move.ticket",
      "voucher.reservation === null",
    ],
  }),
  ...guardsOf("src/core/reserve/release.lua", ["test/core/reserve/lease"], {
    "a lease is released by its own ticket only": [
      "held and string.sub(held, 1, string.len(ARGV[1]) + 1) == ARGV[1] .. ' '",
      "true",
    ],
  }),
  ...guardsOf("src/core/reserve/lease.ts", ["test/core/reserve/lease"], {
    "a held lease is not taken": ["if (ageMs <= ORPHAN_AFTER_MS)", "if (false)"],
  }),
  ...guardsOf(
    "src/marketplace/decide-acquisitions.ts",
    ["test/core/sandbox/sandbox", "test/marketplace/take", "test/marketplace/acquisitions"],
    {
      "a sandbox is not open to others": [`product?.sandbox && way !== "link" && !isInsider`, "false"],
      "a link of an ended contract opens nothing": ["link !== null && !isContractActive(link, now)", "false"],
      "a user gets one voucher of a product": [
        "acquirer.earlier ?? acquired.get(acquisitionKey(key))",
        "undefined as AcquiredVoucher | undefined",
      ],
      "a reserved voucher is not acquired": [" || liveReservation(voucher.reservation, now) !== null", ""],
    },
  ),
  ...guardsOf("src/marketplace/acquisition-committer.ts", ["test/marketplace/take"], {
    "a voucher with a damaged chain is set aside": [`violates(error, "voucher_events_pkey")`, "false"],
  }),
  ...guardsOf("src/core/commit/proofs.ts", ["test/core/commit/after-commit"], {
    "after a commit, no answer says that nothing was changed": ["throw isOpen ? error :", "throw true ? error :"],
  }),
  ...guardsOf("src/marketplace/acquire-voucher.ts", ["test/proof/faults/failover"], {
    "a repeated claim is confirmed by the standby": ["alreadyConfirmed || hasFinalStatus(voucher)", "false"],
    "sold_out is confirmed by the standby": [`outcome.kind === "refused" && outcome.code === "sold_out"`, "false"],
  }),
  ...guardsOf(
    "src/core/chain/seal-events.ts",
    ["test/core/chain/seal", "test/marketplace/seal", "test/core/redeem/redelivery"],
    {
      "an event is sealed only after the one before it": ["sequence !== sealedSequence + 1", "false"],
      "events that are not sealed are sealed before a redemption": [
        "chain.sealedSequence < chain.lastSequence",
        "false",
      ],
    },
  ),
  ...guardsOf("src/core/keys/authenticate-key.ts", ["test/core/sandbox/sandbox"], {
    "a key's prefix must match its organization": ["found.sandbox !== isSandboxKey(secret)", "false"],
  }),
  ...guardsOf("src/core/keys/authenticate-key.ts", ["test/core/keys/authentication", "test/core/keys/api-keys"], {
    "a revoked key ends within a second": ["const TRUSTED_MS = 500;", "const TRUSTED_MS = 60_000;"],
  }),
  ...guardsOf("src/core/keys/routes/authenticate.ts", ["test/core/keys/authentication", "test/core/sandbox/sandbox"], {
    "a key is used from its addresses only": [`!key.allows(request.ip ?? "")`, "false"],
    "a key does what its scopes allow": ["!scopes.has(scope)", "false"],
    "sandbox routes are for sandboxes only": ["!callerOf(response).sandbox", "false"],
  }),
  ...guardsOf("src/core/keys/authenticate-user.ts", ["test/marketplace/user-tokens"], {
    "a user's token must be signed with a listed algorithm": ["        algorithms: ALGORITHMS,\n", ""],
    "an expired token is refused": ["currentDate: now,", "currentDate: new Date(0),"],
  }),
  ...guardsOf("src/platform/limits/miss-limiter.ts", ["test/platform/limits/miss-limiter"], {
    "misses are limited": ["(await this.#countMiss(id)) <= this.#limit", "true"],
  }),
  ...guardsOf("src/platform/http/middleware/json-body.ts", ["test/platform/http/bad-input"], {
    "text that Postgres cannot store is refused": ["field !== null", "false"],
  }),
  ...guardsOf("src/platform/http/send-file.ts", ["test/platform/http/send-file"], {
    "a file says how long it is": [`, "Content-Length": String(place.size)`, ""],
    "a file that is sent ends with its sign-in": [
      `ended.addEventListener("abort", () => breakOff(signInEnded()), { once: true });`,
      "",
    ],
    "a file that is made ends with its sign-in": ["[left, ended, late]", "[left, late]"],
    "a file is made in a bounded time": ["[left, ended, late]", "[left, ended]"],
    "a reader has few files at a time": ["before >= eachMax", "false"],
    "a process sends few files at a time": ["files >= filesMax", "false"],
    "a file has a bounded size": ["this.size <= bytesMax", "true"],
    "all files together have a bounded size": ["total > totalMax", "false"],
    "a stopped reader holds little of a file": ["const PIECE = 64 * 1024;", "const PIECE = 4 * 1024 * 1024;"],
    "a file on disk has no name": ["await unlink(path);", ""],
  }),
  ...guardsOf("src/platform/outgoing/send-webhook.ts", ["test/platform/outgoing/send-webhook"], {
    "a webhook goes to public addresses only": ["addresses.filter(mayConnectTo)", "addresses"],
    "a receiver cannot send without end": ["received <= RECEIVED_MAX", "true"],
  }),
  ...guardsOf("src/transparency/run-log.ts", ["test/transparency/run-log"], {
    "the log signs only what it has followed": ["found, this.#signed]", "found]"],
    "a log that an anchor has does not begin anew": ["isRemembered && (await findTlogTree(pool)) === null", "false"],
    "a checkpoint needs its witnesses": ["!this.#meetsQuorum(cosigned)", "false"],
  }),
  ...guardsOf("src/transparency/read-receipt.ts", ["test/transparency/log-reading"], {
    "an erased event has no receipt": ["withPayload && recordHash !== null && payload === null", "false"],
  }),
  ...guardsOf("src/transparency/anchors.ts", ["packages/tlog/test/witness"], {
    "an anchor is not replaced by another tree of the same size": [
      "before?.size === next.size && !Buffer.from(before.root).equals(next.root)",
      "false",
    ],
    "an anchor is not replaced by a smaller tree": ["before !== null && before.size > next.size", "false"],
  }),
  ...ADMINISTRATION_GUARDS,
];
