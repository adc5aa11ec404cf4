-- The transparency log: one Merkle tree over all sealed events (RFC 6962). A leaf's data is an event's record_hash.

-- Transactions that seal events draw an id while they hold the locks of their vouchers. So of two events of one chain, the later one has the
-- greater id, and the earlier one is visible whenever the later one is. CACHE 1, because the order matters.
CREATE SEQUENCE log_batch_ids CACHE 1;

-- The leaves of one transaction, at most 4096. They have no place in the tree until the sequencer gives them one.
CREATE TABLE log_batches (
  id bigint PRIMARY KEY,
  -- The place of the first leaf in the tree. NULL: waits for its place.
  first_index bigint UNIQUE CHECK (first_index >= 0),
  leaves integer NOT NULL CHECK (leaves BETWEEN 1 AND 4096),
  -- The data of the leaves, 32 bytes each. NULL once they are in log_bundles.
  hashes bytea,
  CONSTRAINT log_batches_hashes_size CHECK (octet_length(hashes) = 32 * leaves),
  CONSTRAINT log_batches_placed_or_waiting CHECK ((first_index IS NULL) = (hashes IS NOT NULL))
);
-- Hashes do not compress.
ALTER TABLE log_batches ALTER COLUMN hashes SET STORAGE EXTERNAL;

-- Finds the batches that wait. Almost always empty.
CREATE INDEX log_batches_waiting ON log_batches (id) WHERE first_index IS NULL;

-- The id of the event's batch × 4096 + its place in it. Its leaf is log_batches.first_index + (log_slot & 4095). NULL: not in the log yet.
ALTER TABLE voucher_events ADD COLUMN log_slot bigint;

-- The data of the leaves: 256 × 32 bytes a row, the last row fewer. Level 0 of the tiles is its hashes and is not stored.
CREATE TABLE log_bundles (
  index bigint PRIMARY KEY,
  entries bytea NOT NULL CHECK (octet_length(entries) BETWEEN 32 AND 8192 AND octet_length(entries) % 32 = 0)
);
ALTER TABLE log_bundles ALTER COLUMN entries SET STORAGE EXTERNAL;

-- The tiles of the levels above (C2SP tlog-tiles). A hash is the root of a full tile of the level below.
CREATE TABLE log_tiles (
  index bigint NOT NULL,
  level smallint NOT NULL CHECK (level >= 1),
  hashes bytea NOT NULL CHECK (octet_length(hashes) BETWEEN 32 AND 8192 AND octet_length(hashes) % 32 = 0),
  PRIMARY KEY (level, index)
);
ALTER TABLE log_tiles ALTER COLUMN hashes SET STORAGE EXTERNAL;

-- The tree as it is stored. Without a row, there is no log yet and batches wait.
CREATE TABLE log_tree (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  -- The log's name, which its key has too.
  origin text NOT NULL,
  size bigint NOT NULL CHECK (size >= 0),
  root bytea NOT NULL CHECK (octet_length(root) = 32)
);

-- The checkpoint that is served: signed, anchored and cosigned by the quorum.
CREATE TABLE log_published (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  size bigint NOT NULL CHECK (size >= 0),
  root bytea NOT NULL CHECK (octet_length(root) = 32),
  note text NOT NULL,
  -- The tlog-policy that the note met: the keys of the log and of its witnesses, and the quorum.
  policy text NOT NULL,
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

CREATE FUNCTION check_log_batch_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.first_index IS NULL AND NEW.first_index IS NOT NULL AND (OLD.id, OLD.leaves) = (NEW.id, NEW.leaves) THEN
    RETURN NEW;
  END IF;
  RAISE EXCEPTION 'UPDATE on log_batches is not allowed: a batch changes only once, when it gets its place' USING ERRCODE = 'restrict_violation';
END
$$;

CREATE FUNCTION check_log_bundle_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.index = NEW.index AND octet_length(NEW.entries) >= octet_length(OLD.entries)
     AND substr(NEW.entries, 1, octet_length(OLD.entries)) = OLD.entries
  THEN
    RETURN NEW;
  END IF;
  RAISE EXCEPTION 'UPDATE on log_bundles is not allowed: a bundle only grows' USING ERRCODE = 'restrict_violation';
END
$$;

CREATE FUNCTION check_log_tile_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (OLD.level, OLD.index) = (NEW.level, NEW.index) AND octet_length(NEW.hashes) >= octet_length(OLD.hashes)
     AND substr(NEW.hashes, 1, octet_length(OLD.hashes)) = OLD.hashes
  THEN
    RETURN NEW;
  END IF;
  RAISE EXCEPTION 'UPDATE on log_tiles is not allowed: a tile only grows' USING ERRCODE = 'restrict_violation';
END
$$;

CREATE FUNCTION check_log_size_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.size > OLD.size OR (NEW.size = OLD.size AND NEW.root = OLD.root) THEN
    RETURN NEW;
  END IF;
  RAISE EXCEPTION 'UPDATE on % is not allowed: the log never shrinks, and never changes', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END
$$;

CREATE TRIGGER log_batches_placed_once BEFORE UPDATE ON log_batches FOR EACH ROW EXECUTE FUNCTION check_log_batch_update();
CREATE TRIGGER log_bundles_grow BEFORE UPDATE ON log_bundles FOR EACH ROW EXECUTE FUNCTION check_log_bundle_update();
CREATE TRIGGER log_tiles_grow BEFORE UPDATE ON log_tiles FOR EACH ROW EXECUTE FUNCTION check_log_tile_update();
CREATE TRIGGER log_tree_grows BEFORE UPDATE ON log_tree FOR EACH ROW EXECUTE FUNCTION check_log_size_update();
CREATE TRIGGER log_published_grows BEFORE UPDATE ON log_published FOR EACH ROW EXECUTE FUNCTION check_log_size_update();
CREATE TRIGGER log_lost_immutable BEFORE UPDATE ON log_lost FOR EACH STATEMENT EXECUTE FUNCTION reject_change('the log is permanent');
CREATE TRIGGER log_batches_no_delete BEFORE DELETE OR TRUNCATE ON log_batches FOR EACH STATEMENT EXECUTE FUNCTION reject_change('the log is permanent');
CREATE TRIGGER log_bundles_no_delete BEFORE DELETE OR TRUNCATE ON log_bundles FOR EACH STATEMENT EXECUTE FUNCTION reject_change('the log is permanent');
CREATE TRIGGER log_tiles_no_delete BEFORE DELETE OR TRUNCATE ON log_tiles FOR EACH STATEMENT EXECUTE FUNCTION reject_change('the log is permanent');
CREATE TRIGGER log_tree_no_delete BEFORE DELETE OR TRUNCATE ON log_tree FOR EACH STATEMENT EXECUTE FUNCTION reject_change('the log is permanent');
CREATE TRIGGER log_published_no_delete BEFORE DELETE OR TRUNCATE ON log_published FOR EACH STATEMENT EXECUTE FUNCTION reject_change('the log is permanent');
CREATE TRIGGER log_lost_no_delete BEFORE DELETE OR TRUNCATE ON log_lost FOR EACH STATEMENT EXECUTE FUNCTION reject_change('the log is permanent');

-- As before, and besides: log_slot is set when an event is sealed, or once for an event that was sealed before there was a log.
CREATE OR REPLACE FUNCTION check_event_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (OLD.occurred_at, OLD.sequence, OLD.voucher_id, OLD.event_type) = (NEW.occurred_at, NEW.sequence, NEW.voucher_id, NEW.event_type)
     AND OLD.actor_is_employee IS NOT DISTINCT FROM NEW.actor_is_employee
     AND OLD.actor_connected_id IS NOT DISTINCT FROM NEW.actor_connected_id
     AND OLD.data::text IS NOT DISTINCT FROM NEW.data::text
     AND (OLD.seal_status = 'Pending' AND NEW.seal_status = 'Sealed'
          OR (OLD.seal_status, OLD.previous_hash, OLD.record_hash, OLD.payload) = (NEW.seal_status, NEW.previous_hash, NEW.record_hash, NEW.payload)
             AND OLD.log_slot IS NULL AND NEW.log_slot IS NOT NULL)
  THEN
    RETURN NEW;
  END IF;
  RAISE EXCEPTION 'UPDATE on voucher_events is not allowed: an event changes only once, when it is sealed' USING ERRCODE = 'restrict_violation';
END
$$;
