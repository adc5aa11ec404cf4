-- postgres-migrations disable-transaction
-- The users that named_users finds in an audit entry. Built beside writers: a run that gets no lock leaves an invalid
-- index, which the next run drops.
CREATE INDEX CONCURRENTLY audit_entries_by_named_user ON audit_entries USING gin ((
  ARRAY[(arguments->>'user') COLLATE "C", before->>'userId', after->>'userId',
        CASE WHEN entity_type = 'Member' OR command = 'member add'
             THEN substr(entity_id, strpos(entity_id, '/') + 1) END]
));
