-- Logs that were retired. The next log takes over the tree under another name, with another key.

CREATE TABLE log_retirements (
  -- The name of the retired log, and of the one that goes on.
  origin text COLLATE "C" PRIMARY KEY,
  next_origin text COLLATE "C" NOT NULL CHECK (next_origin <> origin),
  -- The tree at the end. The next log begins with its leaves.
  size bigint NOT NULL CHECK (size >= 0),
  root bytea NOT NULL CHECK (octet_length(root) = 32),
  -- The last checkpoint that the retired log is known to have signed, countersigned by the next log. Its SHA-256 is leaf `size` of the next log.
  last_note text NOT NULL,
  -- The checkpoint that was served at the end, and its policy.
  served_note text NOT NULL,
  policy text NOT NULL,
  reason text NOT NULL CHECK (reason <> ''),
  retired_at timestamptz NOT NULL
);

CREATE TRIGGER log_retirements_immutable BEFORE UPDATE ON log_retirements FOR EACH STATEMENT EXECUTE FUNCTION reject_change('the log is permanent');
CREATE TRIGGER log_retirements_no_delete BEFORE DELETE ON log_retirements FOR EACH STATEMENT EXECUTE FUNCTION reject_change('the log is permanent');
CREATE TRIGGER log_retirements_no_truncate BEFORE TRUNCATE ON log_retirements FOR EACH STATEMENT EXECUTE FUNCTION reject_change('the log is permanent');

CREATE FUNCTION check_log_origin_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM log_retirements AS r WHERE (r.origin, r.next_origin, r.size, r.root) = (OLD.origin, NEW.origin, OLD.size, OLD.root)) THEN
    RETURN NEW;
  END IF;
  RAISE EXCEPTION 'UPDATE on log_tree is not allowed: a log keeps its name until it is retired' USING ERRCODE = 'restrict_violation';
END
$$;

CREATE TRIGGER log_tree_keeps_origin BEFORE UPDATE ON log_tree FOR EACH ROW WHEN (OLD.origin <> NEW.origin) EXECUTE FUNCTION check_log_origin_update();

-- As before, except that the checkpoint of a retired log is no longer served.
CREATE FUNCTION check_log_published_delete() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM log_retirements AS r WHERE r.served_note = OLD.note) THEN
    RETURN OLD;
  END IF;
  RAISE EXCEPTION 'DELETE on log_published is not allowed: the log is permanent' USING ERRCODE = 'restrict_violation';
END
$$;

DROP TRIGGER log_published_no_delete ON log_published;
CREATE TRIGGER log_published_no_truncate BEFORE TRUNCATE ON log_published FOR EACH STATEMENT EXECUTE FUNCTION reject_change('the log is permanent');
CREATE TRIGGER log_published_no_delete BEFORE DELETE ON log_published FOR EACH ROW EXECUTE FUNCTION check_log_published_delete();
