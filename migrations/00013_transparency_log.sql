-- The transparency log: one Merkle tree over all sealed events (RFC 6962). A leaf's data is an event's record_hash.

-- Transactions that seal events draw an id while they hold the locks of their vouchers. So of two events of one chain, the later one has the greater
-- id, and the earlier one is visible whenever the later one is. CACHE 1, because the order matters.
CREATE SEQUENCE log_batch_ids CACHE 1;

-- The leaves of one transaction, at most 4096. They have no place in the tree until the sequencer gives them one.
CREATE TABLE log_batches (
  id bigint PRIMARY KEY,
  first_index bigint UNIQUE CHECK (first_index >= 0), -- The place of the first leaf in the tree. NULL: waits for its place.
  leaves integer NOT NULL CHECK (leaves BETWEEN 1 AND 4096),
  hashes bytea, -- The data of the leaves, 32 bytes each, which do not compress. NULL once they are in log_bundles.
  -- NULL: the leaves follow each other from first_index on. Only a log that was recovered
  -- from a copy has them, because leaves keep the places that they have in the copy.
  places bigint[],
  CONSTRAINT log_batches_places CHECK (places IS NULL OR (cardinality(places) = leaves
    AND array_position(places, NULL) IS NULL AND places[1] IS NOT DISTINCT FROM first_index)),
  CONSTRAINT log_batches_hashes_size CHECK (octet_length(hashes) = 32 * leaves),
  CONSTRAINT log_batches_placed_or_waiting CHECK ((first_index IS NULL) = (hashes IS NOT NULL))
);

-- The leaf of an event by its slot and by its batch's first_index and places. NULL: it has no place yet.
CREATE FUNCTION log_index_of(first_index bigint, places bigint[], slot bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT coalesce(places[(slot & 4095)::int + 1], first_index + (slot & 4095))
$$;

-- Finds the batches that wait. Almost always empty.
CREATE INDEX log_batches_waiting ON log_batches (id) WHERE first_index IS NULL;

-- The data of the leaves: 256 × 32 bytes a row, the last row fewer. Level 0 of the tiles is its hashes and is not stored.
CREATE TABLE log_bundles (
  index bigint PRIMARY KEY,
  entries bytea NOT NULL CHECK (octet_length(entries) BETWEEN 32 AND 8192 AND octet_length(entries) % 32 = 0)
);

-- The tiles of the levels above (C2SP tlog-tiles). A hash is the root of a full tile of the level below.
CREATE TABLE log_tiles (
  index bigint NOT NULL,
  level smallint NOT NULL CHECK (level >= 1),
  hashes bytea NOT NULL CHECK (octet_length(hashes) BETWEEN 32 AND 8192 AND octet_length(hashes) % 32 = 0),
  PRIMARY KEY (level, index)
);

-- The tree as it is stored. Without a row, there is no log yet and batches wait.
CREATE TABLE log_tree (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  origin text NOT NULL, -- The log's name, which its key has too.
  size bigint NOT NULL CHECK (size >= 0),
  root bytea NOT NULL CHECK (octet_length(root) = 32)
);

-- The checkpoint that is served: signed, anchored and cosigned by the quorum.
CREATE TABLE log_published (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  size bigint NOT NULL CHECK (size >= 0),
  root bytea NOT NULL CHECK (octet_length(root) = 32),
  note text NOT NULL,
  policy text NOT NULL, -- The tlog-policy that the note met: the keys of the log and of its witnesses, and the quorum.
  published_at timestamptz NOT NULL
);

-- The size of the last tree that each witness is known to have cosigned, from which the next proof starts.
CREATE TABLE log_witnesses (
  name text COLLATE "C" PRIMARY KEY,
  size bigint NOT NULL CHECK (size >= 0)
);

-- Leaves that were recovered from a copy of the log after this database had lost their events.
CREATE TABLE log_lost (
  first_index bigint PRIMARY KEY,
  leaves bigint NOT NULL CHECK (leaves > 0),
  noted_at timestamptz NOT NULL
);

ALTER TABLE log_batches ALTER COLUMN hashes SET STORAGE EXTERNAL;
ALTER TABLE log_bundles ALTER COLUMN entries SET STORAGE EXTERNAL;
ALTER TABLE log_tiles ALTER COLUMN hashes SET STORAGE EXTERNAL;

-- Logs that were retired. The next log takes over the tree under another name, with another key.
CREATE TABLE log_retirements (
  origin text COLLATE "C" PRIMARY KEY, -- The name of the retired log, and of the one that goes on.
  next_origin text COLLATE "C" NOT NULL CHECK (next_origin <> origin),
  size bigint NOT NULL CHECK (size >= 0), -- The tree at the end. The next log begins with its leaves.
  root bytea NOT NULL CHECK (octet_length(root) = 32),
  -- The last checkpoint that the retired log is known to have signed, countersigned by the next log. Its SHA-256 is leaf `size` of the next log.
  last_note text NOT NULL,
  served_note text NOT NULL, -- The checkpoint that was served at the end, and its policy.
  policy text NOT NULL,
  reason text NOT NULL CHECK (reason <> ''),
  retired_at timestamptz NOT NULL
);

CREATE FUNCTION check_log_origin_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM log_retirements AS r WHERE (r.origin, r.next_origin, r.size, r.root) = (OLD.origin, NEW.origin, OLD.size, OLD.root)) THEN
    RETURN NEW;
  END IF;
  RAISE EXCEPTION 'UPDATE on log_tree is not allowed: a log keeps its name until it is retired' USING ERRCODE = 'restrict_violation';
END
$$;

-- Only the checkpoint of a retired log is no longer served.
CREATE FUNCTION check_log_published_delete() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM log_retirements AS r WHERE r.served_note = OLD.note) THEN
    RETURN OLD;
  END IF;
  RAISE EXCEPTION 'DELETE on log_published is not allowed: the log is permanent' USING ERRCODE = 'restrict_violation';
END
$$;
CREATE TRIGGER log_batches_placed_once BEFORE UPDATE ON log_batches FOR EACH ROW
  WHEN ((OLD.first_index IS NULL AND NEW.first_index IS NOT NULL AND (OLD.id, OLD.leaves) = (NEW.id, NEW.leaves)) IS NOT TRUE)
  EXECUTE FUNCTION reject_change('a batch changes only once, when it gets its place');
CREATE TRIGGER log_bundles_grow BEFORE UPDATE ON log_bundles FOR EACH ROW
  WHEN ((OLD.index = NEW.index AND substr(NEW.entries, 1, octet_length(OLD.entries)) = OLD.entries) IS NOT TRUE)
  EXECUTE FUNCTION reject_change('a bundle only grows');
CREATE TRIGGER log_tiles_grow BEFORE UPDATE ON log_tiles FOR EACH ROW
  WHEN (((OLD.level, OLD.index) = (NEW.level, NEW.index) AND substr(NEW.hashes, 1, octet_length(OLD.hashes)) = OLD.hashes) IS NOT TRUE)
  EXECUTE FUNCTION reject_change('a tile only grows');
CREATE TRIGGER log_tree_grows BEFORE UPDATE ON log_tree FOR EACH ROW
  WHEN ((NEW.size > OLD.size OR (NEW.size = OLD.size AND NEW.root = OLD.root)) IS NOT TRUE)
  EXECUTE FUNCTION reject_change('the log never shrinks, and never changes');
CREATE TRIGGER log_published_grows BEFORE UPDATE ON log_published FOR EACH ROW
  WHEN ((NEW.size > OLD.size OR (NEW.size = OLD.size AND NEW.root = OLD.root)) IS NOT TRUE)
  EXECUTE FUNCTION reject_change('the log never shrinks, and never changes');
CREATE TRIGGER log_tree_keeps_origin BEFORE UPDATE ON log_tree FOR EACH ROW WHEN (OLD.origin <> NEW.origin) EXECUTE FUNCTION check_log_origin_update();
CREATE TRIGGER log_published_kept BEFORE DELETE ON log_published FOR EACH ROW EXECUTE FUNCTION check_log_published_delete();
CREATE TRIGGER log_published_no_truncate BEFORE TRUNCATE ON log_published FOR EACH STATEMENT EXECUTE FUNCTION reject_change('the log is permanent');
CREATE TRIGGER log_batches_permanent BEFORE DELETE OR TRUNCATE ON log_batches FOR EACH STATEMENT EXECUTE FUNCTION reject_change('the log is permanent');
CREATE TRIGGER log_bundles_permanent BEFORE DELETE OR TRUNCATE ON log_bundles FOR EACH STATEMENT EXECUTE FUNCTION reject_change('the log is permanent');
CREATE TRIGGER log_tiles_permanent BEFORE DELETE OR TRUNCATE ON log_tiles FOR EACH STATEMENT EXECUTE FUNCTION reject_change('the log is permanent');
CREATE TRIGGER log_tree_permanent BEFORE DELETE OR TRUNCATE ON log_tree FOR EACH STATEMENT EXECUTE FUNCTION reject_change('the log is permanent');
CREATE TRIGGER log_lost_permanent BEFORE UPDATE OR DELETE OR TRUNCATE ON log_lost FOR EACH STATEMENT EXECUTE FUNCTION reject_change('the log is permanent');
CREATE TRIGGER log_retirements_permanent BEFORE UPDATE OR DELETE OR TRUNCATE ON log_retirements FOR EACH STATEMENT EXECUTE FUNCTION reject_change('the log is permanent');
