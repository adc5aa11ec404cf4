/*
 * The ends of references: docs/design/redemption.md, "What a caller was told".
 * Code: src/core/redeem/end-references.ts, src/core/redeem/db/redemptions.sql, migrations/00007_reference_ends.sql.
 *
 * The model has one reference, and two attempts to redeem under it, one of which two workers run at once. Two callers
 * get the answer that nothing was redeemed. The sweeper begins two generations and deletes ends. Workers, callers and
 * the sweeper may be killed before each step. An attempt is one step, and so is the deletion of an end.
 *
 * Assumptions
 * - A statement reads one snapshot of the commits at its start (READ COMMITTED, which a trigger enforces).
 * - A commit is visible before the locks of its transaction are released. A killed connection leaves neither rows nor
 *   locks. A process may take no step for a while, like a frozen one.
 * - There is one server. The model does not include a failover's losses.
 */
#define ATTEMPTS 2
#define GENERATIONS 4

/* Committed rows: the reference's end with its generation (version 0 means no end), the generation, the redemption. */
byte end_version = 0, end_generation = 0, versions = 0, generation = 2;
bool redeemed = false;
/* A transaction has inserted the redemption. Others that insert it wait (unique key). */
bool inserting = false;
/* The advisory locks of the reference and of the generation. */
byte reference_shared = 0, generation_shared = 0;
bool reference_alone = false, generation_alone = false;
/* For the property: attempts with a first read, and attempts whose first read came before an answer. */
bool has_read[ATTEMPTS], is_over[ATTEMPTS];

/* One step. Before it, the process may be killed. */
#define STEP(what) if :: atomic { what } :: goto killed fi

/* A caller gets the answer that nothing was redeemed. Every attempt with an earlier first read is then over. */
inline answer() {
  assert(!redeemed); is_over[0] = has_read[0]; is_over[1] = has_read[1]
}

#ifdef WORKER_IGNORES_ENDS
#define HAS_OTHER_END false
#else
#define HAS_OTHER_END (end_version != 0 && end_version != seen_end)
#endif
#ifdef WORKER_TRUSTS_OLD_GENERATIONS
#define IS_OLD (seen_generation + 2 < generation)
#else
#define IS_OLD (seen_generation + 1 < generation)
#endif

/* A worker that got the job of an attempt. */
proctype Delivery(byte attempt, seen_end, seen_generation) {
  bool is_locked = false, too_late = false, has_inserted = false;
#ifdef WORKER_READS_BEFORE_LOCK
  STEP(too_late = redeemed || HAS_OTHER_END || IS_OLD);
#endif
#ifndef WORKER_TAKES_NO_LOCK
  STEP(if :: reference_alone -> goto killed :: else -> reference_shared++; is_locked = true fi);
#endif
#ifndef WORKER_READS_BEFORE_LOCK
  STEP(too_late = redeemed || HAS_OTHER_END || IS_OLD);
#endif
  if :: too_late -> goto killed :: else fi;
  STEP(!inserting -> if :: redeemed -> goto killed :: else -> inserting = true; has_inserted = true fi);
#ifdef WORKER_UNLOCKS_BEFORE_COMMIT
  STEP(reference_shared--; is_locked = false);
#endif
  STEP(assert(!is_over[attempt]); redeemed = true; inserting = false; has_inserted = false);
killed:
  atomic {
    if :: has_inserted -> inserting = false :: else fi;
    if :: is_locked -> reference_shared-- :: else fi;
    is_locked = false; too_late = false; has_inserted = false; seen_end = 0; seen_generation = 0
  }
}

/* An API process makes an attempt. A job may be delivered twice, and the first worker may still run. */
proctype Attempt(byte attempt, deliveries) {
  atomic {
    has_read[attempt] = true;
    do :: deliveries > 0 -> deliveries--; run Delivery(attempt, end_version, generation) :: deliveries == 0 -> break od
  }
}

/* An API process that is about to answer that nothing was redeemed. If it is killed, it answers nothing. */
proctype Caller() {
  bool is_locked = false, saw_redemption = false, keeps_generation = false;
  byte its_generation, version;
#ifdef CALLER_READS_BEFORE_LOCK
  STEP(saw_redemption = redeemed);
#endif
#ifndef CALLER_TAKES_NO_LOCK
  STEP(if :: reference_alone || reference_shared > 0 -> goto killed
          :: else -> reference_alone = true; is_locked = true fi);
#endif
#ifndef CALLER_READS_BEFORE_LOCK
  STEP(saw_redemption = redeemed);
#endif
  if :: saw_redemption -> goto killed :: else fi;
#ifndef CALLER_KEEPS_NO_GENERATION
  STEP(!generation_alone -> generation_shared++; keeps_generation = true);
#endif
#ifdef VERSION_IS_USED_AGAIN
  STEP(its_generation = generation; version = 1);
#else
  STEP(its_generation = generation; versions++; version = versions);
#endif
#ifdef CALLER_UNLOCKS_BEFORE_COMMIT
  STEP(reference_alone = false; is_locked = false);
#endif
#ifdef CALLER_ANSWERS_BEFORE_COMMIT
  STEP(answer());
  STEP(end_version = version; end_generation = its_generation);
#else
  /* The commit. The answer comes later, so to count it from here asks for more. */
  STEP(end_version = version; end_generation = its_generation; answer());
#endif
killed:
  atomic {
    if :: is_locked -> reference_alone = false :: else fi;
    if :: keeps_generation -> generation_shared-- :: else fi;
    is_locked = false; saw_redemption = false; keeps_generation = false; its_generation = 0; version = 0
  }
}

/* After it was killed, the sweeper runs again. */
proctype Sweeper() {
  bool is_alone = false;
begin:
  if
  :: generation < GENERATIONS ->
     STEP(generation_shared == 0 -> generation_alone = true; is_alone = true);
     STEP(generation++);
     STEP(generation_alone = false; is_alone = false)
#ifdef ENDS_ARE_DELETED_TOO_EARLY
  :: atomic { end_version != 0 && end_generation + 1 <= generation -> end_version = 0 }
#else
  :: atomic { end_version != 0 && end_generation + 2 <= generation -> end_version = 0 }
#endif
  :: goto over
  fi;
killed:
  atomic { if :: is_alone -> generation_alone = false :: else fi; is_alone = false; goto begin }
over:
  skip
}

init { atomic { run Attempt(0, 2); run Attempt(1, 1); run Caller(); run Caller(); run Sweeper() } }
