-- Forms of the operator pages that created something. The row is inserted in the transaction of the act, so a form that is sent twice acts once.

CREATE TABLE sent_forms (
  token uuid PRIMARY KEY, -- A random value that the form's page contains.
  sent_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  command text NOT NULL CHECK (command <> ''), -- As in the audit entry.
  arguments jsonb NOT NULL, -- As in the audit entry.
  entity_id text COLLATE "C" NOT NULL CHECK (entity_id <> '') -- What was created.
);
