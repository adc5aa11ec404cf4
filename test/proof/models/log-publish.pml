/*
 * Publish, anchor and witness of the transparency log: src/transparency/README.md.
 * Code: src/transparency/run-log.ts, integrate-batches.ts, anchors.ts, packages/tlog/src/witness-server.ts.
 *
 * Two sequencers run passes without end. Each may be killed before each step, and then forgets what it knows. A tree
 * has at most one leaf, whose content depends on the sequencer. Two anchors; two witnesses, and the quorum needs both.
 * A copy of the database is made at any time, and may take the database's place later, once.
 *
 * Assumptions
 * - A head is its tree: no two trees have one root, and no false proof that a tree continues another is found.
 * - A transaction and the locked write of an anchor or a witness have all effects or none. What was written stays.
 *   Requests to witnesses and their responses may be lost. Any two quorums share a witness.
 * - `agreed` is the largest tree that a quorum has cosigned. Each place continues it if no pass was between its places
 *   and its cosignatures while the files were set back (`is_crossed`). The other properties do not need this.
 */
#ifdef QUORUMS_SHARE_NO_WITNESS
#define QUORUM 1
#else
#define QUORUM 2
#endif

/* A tree is the sequencer that placed its leaf, or empty. */
#define EMPTY 2
#define NOTHING 3
#define IS_LARGER(tree, other) (tree != EMPTY && other == EMPTY)
#define CONTINUES(later, head) (head == EMPTY || later == head)

/* The database, its copy, and the server that runs on its files. */
byte tree = EMPTY, served = EMPTY, copied_tree = EMPTY, copied_served = EMPTY, server = 0;
byte anchor[2] = EMPTY, witness[2] = EMPTY;
/* For the properties: the largest tree with a quorum, the largest ever served, passes that await cosignatures. */
byte agreed = EMPTY, ever_served = EMPTY, awaiting = 0;
bool is_tree_locked = false, is_crossed = false;

/* One step. Before it, the process may be killed. */
#define STEP(what) if :: atomic { what } :: goto killed fi
#define HAS(n) CONTINUES(witness[n], asked)

/* A witness cosigns a tree that continues its last one. */
inline ask_witness(n) {
  if
  :: silent++
#ifdef WITNESS_COSIGNS_ANYTHING
  :: true ->
#else
  :: CONTINUES(asked, witness[n]) ->
#endif
     witness[n] = asked;
     if :: HAS(0) + HAS(1) >= QUORUM && !IS_LARGER(agreed, asked) -> agreed = asked :: else fi;
#ifdef WITNESS_LOSES_ITS_STATE
     if :: witness[n] = EMPTY :: true fi;
#endif
     if :: cosigned++ :: silent++ fi
  :: IS_LARGER(witness[n], asked) -> is_ahead = true
  :: !CONTINUES(asked, witness[n]) && !IS_LARGER(witness[n], asked) -> is_contradicted = true
  fi
}

/* A claim of a witness counts unless the others meet the quorum. */
#define ASK_WITNESSES(then) \
  STEP(ask_witness(0)); STEP(ask_witness(1)); \
  STEP(if :: cosigned < QUORUM && (is_contradicted || is_ahead && tree == EMPTY) -> goto refused :: else fi; \
       then; silent = 0; cosigned = 0; is_contradicted = false; is_ahead = false)

inline write_anchor(n) {
  if
#ifndef ANCHOR_MAY_GO_BACK
  :: IS_LARGER(anchor[n], head)
#endif
  :: else -> assert(CONTINUES(agreed, head)); anchor[n] = head
  fi
}

inline serve() {
  if
#ifndef SERVED_MAY_GO_BACK
  :: IS_LARGER(served, head)
#endif
  :: served != EMPTY && head != EMPTY && served != head -> goto refused
  :: else -> assert(CONTINUES(head, served) && CONTINUES(anchor[0], head) && CONTINUES(anchor[1], head));
     assert(CONTINUES(head, ever_served) || CONTINUES(ever_served, head));
     served = head; ever_served = (head != EMPTY -> head : ever_served) fi
}

proctype Sequencer(bit me) {
  byte known = EMPTY, head = NOTHING, asked = NOTHING, its_last = EMPTY, compared = NOTHING, its_server;
  byte silent, cosigned;
  bool is_contradicted = false, is_ahead = false, is_locked = false, is_awaiting = false;
pass:
  STEP(known = anchor[0]); STEP(
       if :: !CONTINUES(known, anchor[1]) && !CONTINUES(anchor[1], known) -> goto refused
          :: else -> known = (anchor[1] != EMPTY -> anchor[1] : known) fi);
integrate:
#ifndef TREE_IS_NOT_LOCKED
  STEP(if :: is_tree_locked -> goto refused :: else -> is_tree_locked = true; is_locked = true fi);
#endif
  STEP(head = tree; asked = served; its_server = server;
       if :: CONTINUES(head, known) && CONTINUES(head, its_last) && CONTINUES(head, asked) -> skip
          :: else -> goto refused fi);
  STEP(if :: its_server == compared && head == EMPTY -> assert(is_crossed || CONTINUES(head, agreed)); head = me
          :: true fi; if :: its_server == compared -> awaiting++; is_awaiting = true :: else fi;
#ifdef SIGNED_BEFORE_COMMIT
       if :: its_server == compared -> goto sign :: else fi;
#endif
       assert(CONTINUES(head, tree)); tree = head;
       if :: is_locked -> is_tree_locked = false; is_locked = false :: else fi);
  if :: its_server != compared ->
#ifdef SILENT_WITNESSES_DO_NOT_COUNT
        ASK_WITNESSES(skip);
#elif !defined(WITNESSES_ARE_NOT_COMPARED)
        ASK_WITNESSES(if :: silent >= QUORUM -> goto refused :: else fi);
#endif
        compared = its_server; goto integrate
     /* A recent checkpoint is not published again. */
     :: its_server == compared && asked == head -> STEP(write_anchor(0)); STEP(write_anchor(1)); goto refused
     :: its_server == compared
  fi;
sign:
  atomic { asked = head; known = EMPTY; compared = NOTHING }
#ifdef ANCHORS_ARE_WRITTEN_FIRST
  STEP(write_anchor(0)); STEP(write_anchor(1));
#endif
  ASK_WITNESSES(its_last = head; compared = its_server;
                if :: cosigned < QUORUM -> goto refused :: else -> awaiting--; is_awaiting = false fi);
  atomic { asked = NOTHING; its_server = 0 }
#ifdef SIGNED_BEFORE_COMMIT
  STEP(tree = head; is_tree_locked = false; is_locked = false);
#endif
#ifdef SERVED_BEFORE_ANCHORS
  STEP(serve());
#endif
  STEP(write_anchor(0)); STEP(write_anchor(1)); STEP(serve());
  goto refused;
killed: atomic { compared = NOTHING; its_last = EMPTY }
refused:
  atomic {
    if :: is_locked -> is_tree_locked = false :: else fi; if :: is_awaiting -> awaiting-- :: else fi;
    is_locked = false; is_awaiting = false; is_contradicted = false; is_ahead = false;
    known = EMPTY; head = NOTHING; asked = NOTHING; its_server = 0; silent = 0; cosigned = 0; goto pass
  }
}

/* The copy of the database takes its place. Transactions end with the server. */
proctype Operator() {
  atomic { copied_tree = tree; copied_served = served };
  atomic { !is_tree_locked -> tree = copied_tree; served = copied_served; server++; is_crossed = awaiting > 0;
           copied_tree = NOTHING; copied_served = NOTHING }
}

init { atomic { run Operator(); run Sequencer(0); run Sequencer(1) } }
