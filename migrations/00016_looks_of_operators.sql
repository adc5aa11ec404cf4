-- What operators look at on their pages becomes an audit entry as well. It has no state before and none after, because nothing changes.
ALTER TABLE audit_entries DROP CONSTRAINT audit_entries_change;
ALTER TABLE audit_entries ADD CONSTRAINT audit_entries_change
  CHECK (before IS DISTINCT FROM after OR (before IS NULL AND after IS NULL AND command LIKE 'page %'));
