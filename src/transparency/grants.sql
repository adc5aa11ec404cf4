-- The rights that the statements of the transparency log need, in addition to those of the core.

-- The API serves the log.
GRANT SELECT ON log_bundles, log_tiles, log_witnesses, log_retirements TO pva_api;

-- The role pva_log is for a worker process with WORKER_QUEUES=log, which reads no voucher and no event.
GRANT SELECT, UPDATE (first_index, hashes) ON log_batches TO pva_log;
GRANT SELECT, INSERT, UPDATE (entries) ON log_bundles TO pva_log;
GRANT SELECT, INSERT, UPDATE (hashes) ON log_tiles TO pva_log;
GRANT SELECT, UPDATE (size, root) ON log_tree TO pva_log;
GRANT SELECT, INSERT, UPDATE (size, root, note, policy, published_at) ON log_published TO pva_log;
GRANT SELECT, INSERT, UPDATE (size) ON log_witnesses TO pva_log;
GRANT SELECT (organization_id, month, content, note, note_due), UPDATE (note) ON statements TO pva_log;

-- voucherctl begins, shows and audits the log. Only the owner of the database retires a log.
GRANT SELECT ON log_bundles, log_tiles, log_lost, log_retirements TO pva_admin;
GRANT INSERT (origin, size, root) ON log_tree TO pva_admin;
-- A recovery of the log appends leaves whose events this database has lost, and gives waiting leaves their positions.
GRANT UPDATE (first_index, places, hashes) ON log_batches TO pva_admin;
GRANT INSERT, UPDATE (entries) ON log_bundles TO pva_admin;
GRANT INSERT, UPDATE (hashes) ON log_tiles TO pva_admin;
GRANT UPDATE (size, root) ON log_tree TO pva_admin;
GRANT INSERT ON log_lost TO pva_admin;
