/** Statements that may read a table without an index, or that need no plan, each with the reason. */
export const EXEMPT = [
  // The next statements read a table with one row for each process, or for each fault.
  "read_processes",
  "answer_canaries",
  "remove_unseen_processes",
  "select_faults",
  "end_faults",
  "take_untold",
  "forget_faults",
  // The next statement reads a table of one row.
  "select_canon_preserved_since",
  // The next statement reads the first entry of an index.
  "find_oldest_pending_age",
  // The next statement reads one row of pg_database, and the one after it a row for each migration.
  "identify_database",
  "select_applied_migrations",
  // The next statement reads an index that contains only the broken chains.
  "count_broken_chains",
  // The next statements read an index of only the waiting batches, or of the statements.
  "select_waiting_batches",
  "count_waiting_leaves",
  "find_log_progress",
  "select_statements_to_sign",
  // The next statements read a table with one row for each retired log, or for each witness.
  "select_log_retirements",
  "delete_witness_sizes",
  // The next statement reads a table with one row for each accepted loss.
  "recall_marks",
  // Belong to administration.
  "list_contracts",
  "list_links",
  "list_listings",
  // Belong to voucherctl.
  "select_lost_leaves",
  "select_logged_in_order",
  // The next statements read the first entry of an index.
  "select_newest_mark",
  "find_any_key",
  "next_log_batch",
  "find_enabled_endpoints",
  // The next statement reads rows up to a limit.
  "measure_webhooks",
  // The next statements read the endpoints of all organizations, at most 20 each, or find deliveries by an index.
  "select_endpoints_with_due",
  "lock_disabled_endpoint",
  "delete_old_deliveries",
  "delete_deleted_endpoints",
  "select_failing_endpoints",
  // The next statements read all organizations or open windows, thousands of rows at most, and their details by index.
  "count_activity",
  "read_stock",
  // The next statements read a range of counts, or all counts once an hour.
  "read_activity",
  "delete_activity",
  "delete_acquired",
  // The next statement reads an index that contains only the broken chains.
  "select_broken_chains",
  // Reads no table.
  "read_postgres",
];
