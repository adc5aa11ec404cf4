-- Marks, by which a process recognizes a server that has lost what it had committed: its files were set back, or a standby from before was promoted.

CREATE TABLE database_marks (
  position bigint GENERATED ALWAYS AS IDENTITY (CACHE 1) PRIMARY KEY,
  made_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- 60 random bits: a copy of the database that goes on by itself has another mark at the same position.
  id text COLLATE "C" NOT NULL DEFAULT left(replace(gen_random_uuid()::text, '-', ''), 16)
);

-- One row for each time that an operator accepted what this database has lost. Never deleted: a process knows all rows that are older than the
-- mark it remembers, so one that comes back with old files accepts nothing.
CREATE TABLE accepted_losses (
  accepted_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  id text COLLATE "C" PRIMARY KEY DEFAULT left(replace(gen_random_uuid()::text, '-', ''), 16)
);
CREATE TRIGGER accepted_losses_final BEFORE UPDATE OR DELETE OR TRUNCATE ON accepted_losses
  FOR EACH STATEMENT EXECUTE FUNCTION reject_change('an accepted loss is final');

-- Adds a mark, unless the newest one is from the last second, and deletes marks that are a day older, counted in marks: a clock may jump. Waits for
-- no other transaction. SECURITY DEFINER: the roles of the service can neither choose nor delete a mark.
CREATE FUNCTION add_mark() RETURNS void LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  INSERT INTO database_marks (made_at)
  SELECT clock_timestamp()
   WHERE NOT EXISTS (SELECT FROM database_marks AS m
                      WHERE m.position = (SELECT max(n.position) FROM database_marks AS n)
                        AND m.made_at BETWEEN clock_timestamp() - interval '1 second' AND clock_timestamp());
  DELETE FROM database_marks AS m
   WHERE m.position IN (SELECT o.position FROM database_marks AS o
                         WHERE o.position <= (SELECT max(n.position) FROM database_marks AS n) - 86400
                         ORDER BY o.position LIMIT 10 FOR UPDATE SKIP LOCKED);
$$;
REVOKE ALL ON FUNCTION add_mark() FROM PUBLIC;
