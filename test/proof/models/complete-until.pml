/*
 * The closed time of the list of redemptions: docs/design/final-answers.md, "The list of redemptions".
 * Code: src/core/redeem/complete-until.ts, src/core/redeem/db/redemptions.sql, migrations/00006_redemptions.sql and
 * 00018_complete_until.sql.
 *
 * Two workers insert a redemption each, with one of two times. One API process answers two lists, another one a list.
 * A process that closes the time may choose any: the proof uses no clock. Each may be killed before each step, for good.
 *
 * Assumptions
 * - A statement reads one snapshot of the commits at its start (READ COMMITTED, which a trigger enforces).
 * - A commit is visible before the locks of its transaction are released. A killed connection leaves neither rows nor
 *   locks. A transaction may take no step for a while, like a prepared one.
 * - pg_locks shows the locks of one moment.
 * - There is one server. The model does not include a failover's losses, or `db trust-clock`, which moves times back.
 */
#define WORKERS 2
/* The latest time of a redemption. Times begin at 1; 0 is before all of them. */
#define LATEST 2

/* The row of redemptions_closed. */
byte closed_until = 0, complete_until = 0;
/* The redemptions that are visible, one bit each, and their times. */
byte redemptions = 0, redeemed_at[WORKERS];
/* Advisory locks of each time. */
byte locks[LATEST + 1];
/* The latest completeUntil that was answered. */
byte answered = 0;

/* One step. Before it, the process may be killed. */
#define STEP(what) if :: atomic { what } :: goto killed fi
/* The page has the worker's redemption, if it is before the end. */
#define HAS(worker) ((((page ^ redemptions) >> worker) & 1) == 0 || redeemed_at[worker] >= end)
#define EARLIEST_LOCK (locks[1] -> 1 : (locks[2] -> 2 : LATEST + 1))
#define EARLIER(one, other) (one < other -> one : other)
#define LATER(one, other) (one < other -> other : one)
#ifdef WORKER_DOES_NOT_CHECK
#define IS_OPEN true
#else
#define IS_OPEN (at >= closed_until)
#endif

proctype Worker(byte me) {
  bool is_locked = false, is_open = false;
  byte at;
  atomic { select(at : 1 .. LATEST) }
#ifdef WORKER_CHECKS_BEFORE_LOCK
  STEP(is_open = IS_OPEN);
#endif
#ifndef WORKER_TAKES_NO_LOCK
  STEP(locks[at]++; is_locked = true);
#endif
#ifndef WORKER_CHECKS_BEFORE_LOCK
  STEP(is_open = IS_OPEN);
#endif
  if :: !is_open -> goto killed :: else fi;
#ifdef WORKER_UNLOCKS_BEFORE_COMMIT
  STEP(locks[at]--; is_locked = false);
#endif
  /* The commit. A list that was answered had every redemption before its completeUntil. */
  STEP(assert(at >= answered); redeemed_at[me] = at; redemptions = redemptions | (1 << me));
killed:
  atomic {
    if :: is_locked -> locks[at]-- :: else fi;
    is_locked = false; is_open = false; at = 0
  }
}

/* An API process that answers lists. */
proctype Api(byte lists) {
  byte asked, latest, closed, earliest, proved, page, end;
  do
  :: lists > 0 ->
     atomic { lists--; asked = answered }
     /* At most once a second: a list may find the time as another one has left it. */
     if
     :: skip;
#ifdef LOCKS_ARE_READ_BEFORE_CLOSING
        STEP(earliest = EARLIEST_LOCK);
#endif
        STEP(select(latest : 1 .. LATEST + 1); closed_until = LATER(closed_until, latest); latest = 0);
#ifdef LOCKS_ARE_READ_BEFORE_SNAPSHOT
        STEP(earliest = EARLIEST_LOCK);
#endif
        STEP(closed = closed_until);
#ifdef LOCKS_ARE_NOT_READ
        earliest = LATEST + 1;
#elif !defined(LOCKS_ARE_READ_BEFORE_CLOSING) && !defined(LOCKS_ARE_READ_BEFORE_SNAPSHOT)
        STEP(earliest = EARLIEST_LOCK);
#endif
        atomic { proved = EARLIER(closed, earliest); closed = 0; earliest = 0 }
#ifdef COMPLETE_UNTIL_MOVES_BACK
        STEP(complete_until = proved);
#else
        STEP(complete_until = LATER(complete_until, proved));
#endif
#ifndef OWN_TIME_IS_ANSWERED
        proved = 0
#endif
     :: skip
     fi;
#ifdef PAGE_IS_READ_BEFORE_TIME
     STEP(page = redemptions);
#endif
#ifdef OWN_TIME_IS_ANSWERED
     end = proved;
#else
#ifdef CLOSED_TIME_IS_ANSWERED
     STEP(end = closed_until);
#else
     STEP(end = complete_until);
#endif
#endif
#ifndef PAGE_IS_READ_BEFORE_TIME
     STEP(page = redemptions);
#endif
     /* The answer has every redemption before its end, and its end is not before an earlier answer's end. */
     atomic {
       assert(HAS(0) && HAS(1));
       assert(end >= asked);
       answered = LATER(answered, end);
       asked = 0; page = 0; end = 0
     }
  :: else -> break
  od;
killed:
  atomic { lists = 0; asked = 0; closed = 0; earliest = 0; proved = 0; page = 0; end = 0 }
}

init { atomic { run Worker(0); run Worker(1); run Api(2); run Api(1) } }
