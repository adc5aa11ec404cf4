-- Each page view by an operator also writes an audit entry. Its `before` and `after` are NULL because nothing changes.
ALTER TABLE audit_entries DROP CONSTRAINT audit_entries_change;
ALTER TABLE audit_entries ADD CONSTRAINT audit_entries_change
  CHECK (before IS DISTINCT FROM after OR (before IS NULL AND after IS NULL AND command LIKE 'page %'));
