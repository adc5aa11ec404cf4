-- What identifies a person can be erased: payloads go, and hashes stay. References are replaced, so that they are still
-- recognized. The functions erase_events, erase_user and erase_reference contain everything that is erased. They are
-- the only ways, and the triggers below accept nothing else.

-- The key of HMAC (RFC 2104), filled up to 64 bytes, each combined with one byte by XOR.
CREATE FUNCTION hmac_pad(key bytea, byte integer) RETURNS bytea LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
  pad bytea := decode(repeat(lpad(to_hex(byte), 2, '0'), 64), 'hex');
BEGIN
  FOR i IN 0 .. octet_length(key) - 1 LOOP
    pad := set_byte(pad, i, get_byte(key, i) # byte);
  END LOOP;
  RETURN pad;
END
$$;

-- The keys that make replaced texts. No role but the owner reads them.
CREATE TABLE erasure_keys (
  owner text COLLATE "C" PRIMARY KEY, -- An organization. Empty: all users of the deployment.
  -- gen_random_uuid has 122 random bits.
  key bytea NOT NULL CHECK (octet_length(key) = 32)
    DEFAULT sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())),
  inner_pad bytea NOT NULL GENERATED ALWAYS AS (hmac_pad(key, 54)) STORED,
  outer_pad bytea NOT NULL GENERATED ALWAYS AS (hmac_pad(key, 92)) STORED,
  -- Whether any text was replaced with it. Otherwise, no call looks for one.
  used boolean NOT NULL DEFAULT false
);
INSERT INTO erasure_keys (owner) SELECT '' UNION ALL SELECT o.id FROM organizations AS o;
CREATE TRIGGER erasure_keys_final BEFORE UPDATE ON erasure_keys
  FOR EACH ROW WHEN ((OLD.owner, OLD.key, true) IS DISTINCT FROM (NEW.owner, NEW.key, NEW.used))
  EXECUTE FUNCTION reject_change('replaced texts would no longer be recognized');
CREATE TRIGGER erasure_keys_permanent BEFORE DELETE OR TRUNCATE ON erasure_keys
  FOR EACH STATEMENT EXECUTE FUNCTION reject_change('replaced texts would no longer be recognized');

-- SECURITY DEFINER: the role that creates organizations may write no key.
CREATE FUNCTION add_erasure_key() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  INSERT INTO erasure_keys (owner) VALUES (NEW.id);
  RETURN NULL;
END
$$;
CREATE TRIGGER organizations_erasure_key AFTER INSERT ON organizations FOR EACH ROW EXECUTE FUNCTION add_erasure_key();

-- The text that replaces another one: `erased:` and the first 132 bits of an HMAC-SHA-256 in base64url. A text that
-- was replaced stays as it is. SECURITY DEFINER: the roles of the service may not read the keys.
CREATE FUNCTION erased_form(of_owner text, of_text text) RETURNS text LANGUAGE sql STABLE STRICT SECURITY DEFINER
SET search_path FROM CURRENT AS $$
  SELECT CASE WHEN starts_with(of_text, 'erased:') THEN of_text
              ELSE 'erased:' || translate(left(encode(m.mac, 'base64'), 22), '+/', '-_') END
    FROM erasure_keys AS k
   CROSS JOIN LATERAL (SELECT sha256(k.outer_pad || sha256(k.inner_pad || convert_to(of_text, 'UTF8'))) AS mac) AS m
   WHERE k.owner = of_owner
$$;

-- The events that erase others, and the users that were erased, for a replay after a restore. The sequence is 0 if only
-- reasons of releases were erased, which no event says. An erasure erases what was written until `up_to`: its own time,
-- or that of the erasure that it replays.
CREATE TABLE erasures (
  erased_at timestamptz NOT NULL,
  up_to timestamptz NOT NULL CHECK (up_to <= erased_at),
  sequence integer NOT NULL,
  voucher_id text COLLATE "C" NOT NULL,
  PRIMARY KEY (voucher_id, sequence, erased_at)
);
CREATE INDEX erasures_by_time ON erasures (erased_at, voucher_id, sequence);
CREATE TABLE erased_users (
  erased_at timestamptz NOT NULL,
  up_to timestamptz NOT NULL CHECK (up_to <= erased_at),
  user_id text COLLATE "C" PRIMARY KEY CHECK (user_id LIKE 'erased:%')
);
CREATE TRIGGER erasures_permanent BEFORE UPDATE OR DELETE OR TRUNCATE ON erasures
  FOR EACH STATEMENT EXECUTE FUNCTION reject_change('an erasure is final');
CREATE TRIGGER erased_users_permanent BEFORE DELETE OR TRUNCATE ON erased_users
  FOR EACH STATEMENT EXECUTE FUNCTION reject_change('an erasure is final');

-- Whether the current user owns a table: so do functions with the rights of their owner.
CREATE FUNCTION owns_table(of_table oid) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT EXISTS (SELECT FROM pg_class AS c JOIN pg_roles AS r ON r.oid = c.relowner
                  WHERE c.oid = of_table AND r.rolname = current_user)
$$;

-- An erased event has the sequence of the event that erased it, instead of its payload. NOT VALID: earlier rows
-- satisfied a stricter constraint.
ALTER TABLE voucher_events
  ADD COLUMN erased_by integer,
  DROP CONSTRAINT voucher_events_sealed_complete,
  ADD CONSTRAINT voucher_events_sealed_complete CHECK (
    num_nonnulls(previous_hash, record_hash) = CASE seal_status WHEN 'Sealed' THEN 2 ELSE 0 END
    AND num_nonnulls(payload, erased_by) = CASE seal_status WHEN 'Sealed' THEN 1 ELSE 0 END
  ) NOT VALID,
  ADD CONSTRAINT voucher_events_erased CHECK (
    erased_by IS NULL OR erased_by > sequence AND data IS NULL AND event_type <> 'voucher.instance.erased'
  ) NOT VALID;

-- Accepts the erasure of a sealed event by the owner's functions, if a later sealed event of its chain names it.
CREATE FUNCTION check_event_erasure() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF owns_table(TG_RELID) AND OLD.payload IS NOT NULL AND NEW.payload IS NULL
     AND (OLD.occurred_at, OLD.sequence, OLD.voucher_id, OLD.event_type)
         = (NEW.occurred_at, NEW.sequence, NEW.voucher_id, NEW.event_type)
     AND (OLD.seal_status, OLD.previous_hash, OLD.record_hash) = (NEW.seal_status, NEW.previous_hash, NEW.record_hash)
     AND (OLD.log_slot, OLD.actor_is_employee) IS NOT DISTINCT FROM (NEW.log_slot, NEW.actor_is_employee)
     AND (NEW.actor_connected_id IS NULL OR NEW.actor_connected_id = OLD.actor_connected_id)
     AND EXISTS (SELECT FROM voucher_events AS t
                  WHERE t.voucher_id = NEW.voucher_id AND t.sequence = NEW.erased_by AND t.sequence > NEW.sequence
                    AND t.event_type = 'voucher.instance.erased' AND t.payload IS NOT NULL
                    AND (t.payload::jsonb #> '{data,erasedSequences}') @> to_jsonb(NEW.sequence))
  THEN
    RETURN NEW;
  END IF;
  RAISE EXCEPTION 'UPDATE on voucher_events is not allowed: an event changes only once, when it is sealed'
    USING ERRCODE = 'restrict_violation';
END
$$;

-- As in 00008. An event that was erased before there was a log gets its `log_slot` too.
CREATE OR REPLACE TRIGGER voucher_events_sealing_only BEFORE UPDATE ON voucher_events FOR EACH ROW
  WHEN (((OLD.occurred_at, OLD.sequence, OLD.voucher_id, OLD.event_type)
          = (NEW.occurred_at, NEW.sequence, NEW.voucher_id, NEW.event_type)
         AND OLD.actor_is_employee IS NOT DISTINCT FROM NEW.actor_is_employee
         AND OLD.actor_connected_id IS NOT DISTINCT FROM NEW.actor_connected_id
         AND OLD.data::text IS NOT DISTINCT FROM NEW.data::text
         AND OLD.erased_by IS NOT DISTINCT FROM NEW.erased_by
         AND (OLD.seal_status = 'Pending' AND NEW.seal_status = 'Sealed'
              OR (OLD.seal_status, OLD.previous_hash, OLD.record_hash)
                 = (NEW.seal_status, NEW.previous_hash, NEW.record_hash)
                 AND OLD.payload IS NOT DISTINCT FROM NEW.payload
                 AND OLD.log_slot IS NULL AND NEW.log_slot IS NOT NULL)) IS NOT TRUE)
  EXECUTE FUNCTION check_event_erasure();
CREATE TRIGGER voucher_events_begin_whole BEFORE INSERT ON voucher_events FOR EACH ROW
  WHEN (NEW.erased_by IS NOT NULL) EXECUTE FUNCTION reject_change('no event begins erased');

-- Whether a voucher has an erased event of a type.
CREATE FUNCTION has_erased(of_voucher text, of_type text) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT EXISTS (SELECT FROM voucher_events AS e
                  WHERE e.voucher_id = of_voucher AND e.event_type = of_type AND e.erased_by IS NOT NULL)
$$;

-- Accepts the replacement of texts of a row whose voucher's event of the given type is erased, and no other change. The
-- arguments are the event type, why an update is refused, and the columns. Users' texts have the key of all users, and
-- others that of the row's organization.
CREATE FUNCTION check_text_erasure() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  before jsonb := to_jsonb(OLD);
  after jsonb := to_jsonb(NEW);
  texts text[] := TG_ARGV[2:];
BEGIN
  IF owns_table(TG_RELID) AND before - texts = after - texts
     AND (SELECT bool_and(after->>c = erased_form(k.owner, before->>c))
            FROM unnest(texts) AS c
           CROSS JOIN LATERAL (SELECT CASE c WHEN 'user_id' THEN '' ELSE after->>'organization_id' END AS owner) AS k)
     AND has_erased(after->>'voucher_id', TG_ARGV[0])
  THEN
    RETURN NEW;
  END IF;
  RAISE EXCEPTION 'UPDATE on % is not allowed: %', TG_TABLE_NAME, TG_ARGV[1] USING ERRCODE = 'restrict_violation';
END
$$;
CREATE OR REPLACE TRIGGER redemptions_permanent BEFORE DELETE OR TRUNCATE ON redemptions
  FOR EACH STATEMENT EXECUTE FUNCTION reject_change('a redemption is final');
CREATE OR REPLACE TRIGGER claims_permanent BEFORE DELETE OR TRUNCATE ON claims
  FOR EACH STATEMENT EXECUTE FUNCTION reject_change('claims are permanent');
CREATE OR REPLACE TRIGGER purchases_permanent BEFORE DELETE OR TRUNCATE ON purchases
  FOR EACH STATEMENT EXECUTE FUNCTION reject_change('purchases are permanent');
CREATE TRIGGER redemptions_erasure_only BEFORE UPDATE ON redemptions
  FOR EACH ROW
  EXECUTE FUNCTION check_text_erasure('voucher.instance.redeemed', 'a redemption is final', 'external_ref');
CREATE TRIGGER claims_erasure_only BEFORE UPDATE ON claims
  FOR EACH ROW EXECUTE FUNCTION check_text_erasure('voucher.instance.claimed', 'claims are permanent', 'user_id');
CREATE TRIGGER purchases_erasure_only BEFORE UPDATE ON purchases
  FOR EACH ROW
  EXECUTE FUNCTION check_text_erasure('voucher.instance.bought', 'purchases are permanent', 'user_id', 'payment_ref');

-- A user's claims and purchases are inserted while no erasure of the user is uncommitted. So the check sees whether the
-- user has acquired the same before and was erased since. On VS001, the caller decides again.
CREATE FUNCTION check_erased_claim() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock_shared(1701995891, hashtext(NEW.user_id));
  IF (SELECT k.used FROM erasure_keys AS k WHERE k.owner = '')
     AND EXISTS (SELECT FROM claims AS c
                  WHERE c.user_id = erased_form('', NEW.user_id) AND c.product_id = NEW.product_id) THEN
    RAISE EXCEPTION 'the user has claimed the product before' USING ERRCODE = 'VS001';
  END IF;
  RETURN NEW;
END
$$;
CREATE FUNCTION check_erased_purchase() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock_shared(1701995891, hashtext(NEW.user_id));
  IF (SELECT k.used FROM erasure_keys AS k WHERE k.owner = '')
     AND EXISTS (SELECT FROM purchases AS p
                  WHERE p.organization_id = NEW.organization_id AND p.user_id = erased_form('', NEW.user_id)
                    AND p.payment_ref = erased_form(NEW.organization_id, NEW.payment_ref)) THEN
    RAISE EXCEPTION 'the user has bought with the payment before' USING ERRCODE = 'VS001';
  END IF;
  RETURN NEW;
END
$$;
CREATE TRIGGER claims_not_erased BEFORE INSERT ON claims FOR EACH ROW EXECUTE FUNCTION check_erased_claim();
CREATE TRIGGER purchases_not_erased BEFORE INSERT ON purchases FOR EACH ROW EXECUTE FUNCTION check_erased_purchase();

-- An ended reservation loses its reason, and nothing else changes. Unlike the triggers above, this one requires no erased
-- event: a voucher can have a released reservation and no event with personal data, and then no event erases any.
CREATE FUNCTION check_reason_erasure() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF owns_table(TG_RELID) AND OLD.end_reason IS NOT NULL AND NEW.end_reason IS NULL
     AND to_jsonb(OLD) - 'end_reason' = to_jsonb(NEW) - 'end_reason' THEN
    RETURN NEW;
  END IF;
  RAISE EXCEPTION 'UPDATE on reservations is not allowed: an ended reservation is final'
    USING ERRCODE = 'restrict_violation';
END
$$;
CREATE OR REPLACE TRIGGER reservations_ended_final BEFORE UPDATE ON reservations
  FOR EACH ROW WHEN (OLD.state <> 'Live') EXECUTE FUNCTION check_reason_erasure();

-- The users that an audit entry, or what a form has created, names: those of its arguments and of the state of a
-- contract, and the end of a member's id, `<organization>/<user>`.
CREATE FUNCTION named_users(entry jsonb) RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
  SELECT ARRAY[entry #>> '{arguments,user}', entry #>> '{before,userId}', entry #>> '{after,userId}',
               CASE WHEN entry->>'entity_type' = 'Member' OR entry->>'command' = 'member add'
                    THEN substr(entry->>'entity_id', strpos(entry->>'entity_id', '/') + 1) END]
$$;

-- Replaces a user where the same entry names it, and nothing else.
CREATE FUNCTION with_erased(entry jsonb, old text, new text) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  named CONSTANT text[] := named_users(entry);
BEGIN
  IF named[1] = old THEN entry := jsonb_set(entry, '{arguments,user}', to_jsonb(new)); END IF;
  IF named[2] = old THEN entry := jsonb_set(entry, '{before,userId}', to_jsonb(new)); END IF;
  IF named[3] = old THEN entry := jsonb_set(entry, '{after,userId}', to_jsonb(new)); END IF;
  IF named[4] = old THEN
    entry := jsonb_set(entry, '{entity_id}', to_jsonb(split_part(entry->>'entity_id', '/', 1) || '/' || new));
  END IF;
  RETURN entry;
END
$$;

-- Accepts the replacement of users that the entry names, of a reason, and of an organization's reference for a batch, by
-- what erased_form makes of them. Also accepts that the counts of a key's reading of codes grow.
CREATE FUNCTION check_audit_erasure() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  before jsonb := to_jsonb(OLD);
  after jsonb := to_jsonb(NEW);
  texts CONSTANT text[] := ARRAY['reason', 'issueRef'];
  counts CONSTANT text[] := ARRAY['codesExported', 'readings'];
  was text;
BEGIN
  FOREACH was IN ARRAY named_users(before) LOOP
    IF erased_form('', was) = ANY (named_users(after)) THEN
      before := with_erased(before, was, erased_form('', was));
    END IF;
  END LOOP;
  FOREACH was IN ARRAY texts LOOP
    IF after #>> ARRAY['arguments', was] = erased_form('', before #>> ARRAY['arguments', was]) THEN
      before := jsonb_set(before, ARRAY['arguments', was], after #> ARRAY['arguments', was]);
    END IF;
  END LOOP;
  IF owns_table(TG_RELID) AND before = after THEN
    RETURN NEW;
  END IF;
  IF owns_table(TG_RELID) AND OLD."by" = 'key' AND OLD.command = 'batch export'
     AND to_jsonb(OLD) - 'after' = to_jsonb(NEW) - 'after' AND OLD.after - counts = NEW.after - counts
     AND (NEW.after->>'codesExported')::bigint > (OLD.after->>'codesExported')::bigint
     AND (NEW.after->>'readings')::bigint > (OLD.after->>'readings')::bigint THEN
    RETURN NEW;
  END IF;
  RAISE EXCEPTION 'UPDATE on audit_entries is not allowed: audit entries are permanent'
    USING ERRCODE = 'restrict_violation';
END
$$;
CREATE OR REPLACE TRIGGER audit_entries_permanent BEFORE DELETE OR TRUNCATE ON audit_entries
  FOR EACH STATEMENT EXECUTE FUNCTION reject_change('audit entries are permanent');
CREATE TRIGGER audit_entries_erasure_only BEFORE UPDATE ON audit_entries
  FOR EACH ROW EXECUTE FUNCTION check_audit_erasure();

-- As in 00009. The user of a contract is replaced by an erasure.
CREATE OR REPLACE FUNCTION check_contract_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (OLD.id, OLD.brand_id, OLD.user_id) = (NEW.id, NEW.brand_id, NEW.user_id)
     AND ((OLD.status, NEW.status) IN (('Offered', 'Active'), ('Offered', 'Declined'), ('Active', 'Ended'))
          OR OLD.status = NEW.status AND OLD.status IN ('Offered', 'Active') AND NEW.ends_at < OLD.ends_at
             AND (OLD.offered_at, OLD.changed_at) = (NEW.offered_at, NEW.changed_at)
             AND EXISTS (SELECT 1 FROM brands AS br JOIN organizations AS o ON o.id = br.organization_id
                          WHERE br.id = NEW.brand_id AND o.sandbox))
     OR owns_table(TG_RELID) AND to_jsonb(OLD) - 'user_id' = to_jsonb(NEW) - 'user_id'
        AND NEW.user_id = erased_form('', OLD.user_id)
  THEN
    RETURN NEW;
  END IF;
  RAISE EXCEPTION 'a contract goes from Offered to Active or Declined and from Active to Ended, not from % to %',
    OLD.status, NEW.status
    USING ERRCODE = 'restrict_violation';
END
$$;

-- Erases what sealed erasing events of locked vouchers name, and the texts of their vouchers that go with it: the
-- references of redemptions, users and payments of claims and purchases, reasons of releases and of voids. The caller
-- has appended the events in this transaction. Returns the number of events and of replaced texts, and of the vouchers
-- that had any. Reasons of releases after `up_to` stay.
--
-- SECURITY DEFINER: no other statement may do this. Lock order: vouchers, references, users. A redemption holds its
-- reference's lock in shared mode from before its first read until its end, so none is under way meanwhile. The caller
-- has taken all of these locks before, without a wait while it has any, so that it waits for none with vouchers locked.
CREATE FUNCTION erase_events(
  of_vouchers text[], by_sequences integer[], up_to timestamptz DEFAULT 'infinity',
  OUT erased_vouchers bigint, OUT erased_events bigint, OUT erased_texts bigint
) LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  replaced bigint;
BEGIN
  PERFORM FROM vouchers AS v WHERE v.id = ANY (of_vouchers) ORDER BY v.id FOR NO KEY UPDATE;
  PERFORM pg_advisory_xact_lock(hashtext(r.organization_id), hashtext(r.external_ref))
     FROM (SELECT rd.organization_id, rd.external_ref FROM redemptions AS rd
            WHERE rd.voucher_id = ANY (of_vouchers) ORDER BY rd.organization_id, rd.external_ref OFFSET 0) AS r;
  PERFORM pg_advisory_xact_lock(1701995891, hashtext(u.user_id))
     FROM (SELECT c.user_id FROM claims AS c WHERE c.voucher_id = ANY (of_vouchers)
            UNION SELECT p.user_id FROM purchases AS p WHERE p.voucher_id = ANY (of_vouchers)
            ORDER BY 1 OFFSET 0) AS u;

  -- The reasons are known from the events, which are erased below.
  UPDATE audit_entries AS a SET arguments = jsonb_set(a.arguments, '{reason}', to_jsonb(erased_form('', e.reason)))
    FROM (SELECT n.voucher_id, v.payload::jsonb #>> '{data,reason}' AS reason
            FROM unnest(of_vouchers, by_sequences) AS n (voucher_id, by_sequence)
            JOIN voucher_events AS t ON t.voucher_id = n.voucher_id AND t.sequence = n.by_sequence
            JOIN voucher_events AS v ON v.voucher_id = n.voucher_id
                 AND (t.payload::jsonb #> '{data,erasedSequences}') @> to_jsonb(v.sequence)
           WHERE v.payload IS NOT NULL) AS e
   WHERE a.entity_id = e.voucher_id AND a.arguments->>'reason' = e.reason AND NOT starts_with(e.reason, 'erased:');

  UPDATE voucher_events AS e
     SET payload = NULL, data = NULL, erased_by = n.by_sequence,
         actor_connected_id = CASE WHEN e.event_type NOT IN ('voucher.instance.claimed', 'voucher.instance.bought')
                                   THEN e.actor_connected_id END
    FROM (SELECT t.voucher_id, t.sequence AS by_sequence, s.sequence::integer
            FROM unnest(of_vouchers, by_sequences) AS w (voucher_id, by_sequence)
            JOIN voucher_events AS t ON t.voucher_id = w.voucher_id AND t.sequence = w.by_sequence
                 AND t.event_type = 'voucher.instance.erased' AND t.payload IS NOT NULL
           CROSS JOIN LATERAL jsonb_array_elements_text(t.payload::jsonb #> '{data,erasedSequences}')
                 AS s (sequence)) AS n
   WHERE e.voucher_id = n.voucher_id AND e.sequence = n.sequence AND e.payload IS NOT NULL;
  GET DIAGNOSTICS erased_events = ROW_COUNT;
  INSERT INTO erasures (erased_at, up_to, sequence, voucher_id)
  SELECT t.occurred_at, least(erase_events.up_to, t.occurred_at), t.sequence, t.voucher_id
    FROM unnest(of_vouchers, by_sequences) AS w (voucher_id, by_sequence)
    JOIN voucher_events AS t ON t.voucher_id = w.voucher_id AND t.sequence = w.by_sequence
   WHERE EXISTS (SELECT FROM voucher_events AS e WHERE e.voucher_id = t.voucher_id AND e.erased_by = t.sequence)
      ON CONFLICT DO NOTHING;

  -- No attempt needs the end of a reference that is redeemed.
  UPDATE reference_ends AS n SET external_ref = erased_form(r.organization_id, r.external_ref), version = DEFAULT
    FROM redemptions AS r
   WHERE r.voucher_id = ANY (of_vouchers) AND n.organization_id = r.organization_id AND n.external_ref = r.external_ref
     AND NOT starts_with(r.external_ref, 'erased:')
     AND has_erased(r.voucher_id, 'voucher.instance.redeemed');
  UPDATE redemptions AS r SET external_ref = erased_form(r.organization_id, r.external_ref)
   WHERE r.voucher_id = ANY (of_vouchers) AND NOT starts_with(r.external_ref, 'erased:')
     AND has_erased(r.voucher_id, 'voucher.instance.redeemed');
  GET DIAGNOSTICS erased_texts = ROW_COUNT;
  UPDATE claims AS c SET user_id = erased_form('', c.user_id)
   WHERE c.voucher_id = ANY (of_vouchers) AND NOT starts_with(c.user_id, 'erased:')
     AND has_erased(c.voucher_id, 'voucher.instance.claimed');
  GET DIAGNOSTICS replaced = ROW_COUNT;
  erased_texts := erased_texts + replaced;
  UPDATE purchases AS p
     SET user_id = erased_form('', p.user_id), payment_ref = erased_form(p.organization_id, p.payment_ref)
   WHERE p.voucher_id = ANY (of_vouchers) AND NOT starts_with(p.user_id, 'erased:')
     AND has_erased(p.voucher_id, 'voucher.instance.bought');
  GET DIAGNOSTICS replaced = ROW_COUNT;
  erased_texts := erased_texts + 2 * replaced;
  WITH gone AS (
    UPDATE reservations AS r SET end_reason = NULL
     WHERE r.voucher_id = ANY (of_vouchers) AND r.state <> 'Live' AND r.end_reason <> 'voided'
       AND r.ended_at <= erase_events.up_to
    RETURNING r.voucher_id
  ), listed AS (
    INSERT INTO erasures (erased_at, up_to, sequence, voucher_id)
    SELECT clock.now, least(erase_events.up_to, clock.now), 0, w.voucher_id
      FROM unnest(of_vouchers, by_sequences) AS w (voucher_id, by_sequence)
     CROSS JOIN (SELECT date_trunc('milliseconds', clock_timestamp()) AS now) AS clock
     WHERE w.by_sequence IS NULL AND w.voucher_id IN (SELECT g.voucher_id FROM gone AS g)
    RETURNING voucher_id
  )
  SELECT (SELECT count(*) FROM gone), (SELECT count(*) FROM listed) + num_nonnulls(VARIADIC by_sequences)
    INTO replaced, erased_vouchers;
  erased_texts := erased_texts + replaced;
  UPDATE erasure_keys AS k SET used = true
   WHERE NOT k.used
     AND (k.owner = '' OR k.owner IN (SELECT v.organization_id FROM vouchers AS v WHERE v.id = ANY (of_vouchers)));
END
$$;

-- Replaces a user in all tables but those of vouchers, and records the erasure. Returns the replaced text, and the
-- number of texts. If an earlier erasure left a membership, the later one is deleted. If it left an open contract with
-- the same brand, that one ends. Leaves what was written after `up_to`, which has whole milliseconds.
CREATE FUNCTION erase_user(
  of_user text, up_to timestamptz DEFAULT 'infinity', OUT erased_user text, OUT erased_texts bigint
) LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  replaced bigint;
  past_end CONSTANT timestamptz := up_to + interval '1 millisecond';
  done_at timestamptz;
BEGIN
  erased_user := erased_form('', of_user);
  erased_texts := 0;
  IF erased_user = of_user THEN
    RAISE EXCEPTION '% is erased already', of_user USING ERRCODE = 'restrict_violation';
  END IF;
  PERFORM pg_advisory_xact_lock(1701995891, hashtext(of_user));
  LOCK TABLE members, referrer_contracts IN EXCLUSIVE MODE;
  DELETE FROM members AS m
   WHERE m.user_id = of_user AND m.created_at < past_end
     AND EXISTS (SELECT FROM members AS e WHERE e.organization_id = m.organization_id AND e.user_id = erased_user);
  GET DIAGNOSTICS replaced = ROW_COUNT;
  erased_texts := erased_texts + replaced;
  UPDATE members AS m SET user_id = erased_user WHERE m.user_id = of_user AND m.created_at < past_end;
  GET DIAGNOSTICS replaced = ROW_COUNT;
  erased_texts := erased_texts + replaced;
  UPDATE referrer_contracts AS c
     SET status = CASE c.status WHEN 'Active' THEN 'Ended' ELSE 'Declined' END,
         changed_at = date_trunc('milliseconds', clock_timestamp())
   WHERE c.user_id = erased_user AND c.status IN ('Offered', 'Active')
     AND EXISTS (SELECT FROM referrer_contracts AS o
                  WHERE o.user_id = of_user AND o.brand_id = c.brand_id AND o.status IN ('Offered', 'Active')
                    AND o.offered_at < past_end);
  UPDATE referrer_contracts AS c SET user_id = erased_user WHERE c.user_id = of_user AND c.offered_at < past_end;
  GET DIAGNOSTICS replaced = ROW_COUNT;
  erased_texts := erased_texts + replaced;
  UPDATE audit_entries AS a
     SET (arguments, before, after, entity_id)
         = (SELECT e.arguments, e.before, e.after, e.entity_id
              FROM jsonb_populate_record(a, with_erased(to_jsonb(a), of_user, erased_user)) AS e)
   -- As audit_entries_by_named_user, which finds the entries of named_users.
   WHERE ARRAY[(a.arguments->>'user') COLLATE "C", a.before->>'userId', a.after->>'userId',
               CASE WHEN a.entity_type = 'Member' OR a.command = 'member add'
                    THEN substr(a.entity_id, strpos(a.entity_id, '/') + 1) END] @> ARRAY[of_user]
     AND of_user = ANY (named_users(to_jsonb(a))) AND a.at < past_end;
  GET DIAGNOSTICS replaced = ROW_COUNT;
  erased_texts := erased_texts + replaced;
  UPDATE sent_forms AS f
     SET (arguments, entity_id)
         = (SELECT e.arguments, e.entity_id
              FROM jsonb_populate_record(f, with_erased(to_jsonb(f), of_user, erased_user)) AS e)
   WHERE of_user = ANY (named_users(to_jsonb(f))) AND f.sent_at < past_end;
  GET DIAGNOSTICS replaced = ROW_COUNT;
  erased_texts := erased_texts + replaced;
  IF erased_texts > 0 OR EXISTS (SELECT FROM claims AS c WHERE c.user_id = erased_user)
     OR EXISTS (SELECT FROM purchases AS p WHERE p.user_id = erased_user) THEN
    done_at := date_trunc('milliseconds', clock_timestamp());
    INSERT INTO erased_users AS u (erased_at, up_to, user_id)
    VALUES (done_at, least(erase_user.up_to, done_at), erased_user)
        ON CONFLICT (user_id) DO UPDATE
          -- The clock of a standby that took over may be behind.
          SET erased_at = greatest(u.erased_at, excluded.erased_at), up_to = greatest(u.up_to, excluded.up_to)
        -- A user who was erased before is listed anew if something else of it was erased since.
        WHERE erased_texts > 0
           OR EXISTS (SELECT FROM erasures AS e
                       WHERE e.erased_at > u.erased_at
                         AND e.voucher_id IN (SELECT c.voucher_id FROM claims AS c WHERE c.user_id = erased_user
                                               UNION ALL
                                              SELECT p.voucher_id FROM purchases AS p WHERE p.user_id = erased_user));
    UPDATE erasure_keys AS k SET used = true WHERE NOT k.used AND k.owner = '';
  END IF;
END
$$;

-- The users of a list of replaced texts that are in the database as they were, as after a restore.
CREATE FUNCTION find_erased_users(forms text[]) RETURNS TABLE (user_id text, form text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
  SELECT u.user_id, w.form
    FROM (SELECT m.user_id FROM members AS m UNION SELECT c.user_id FROM referrer_contracts AS c
           UNION SELECT k.user_id FROM claims AS k UNION SELECT p.user_id FROM purchases AS p) AS u
    JOIN unnest(forms) AS w (form) ON w.form = erased_form('', u.user_id)
   WHERE NOT starts_with(u.user_id, 'erased:')
$$;

-- A delivery of an erased event is never sent. NOT VALID: earlier rows satisfied a stricter constraint.
ALTER TABLE webhook_deliveries
  DROP CONSTRAINT webhook_deliveries_state_check,
  ADD CONSTRAINT webhook_deliveries_state_check CHECK (state IN ('Pending', 'Delivered', 'Failed', 'Erased')) NOT VALID;

REVOKE ALL ON FUNCTION
  erased_form(text, text), erase_events(text[], integer[], timestamptz),
  erase_user(text, timestamptz), find_erased_users(text[]) FROM PUBLIC;

-- An erasure waits for every transaction that may write what it erases, and then reads what these wrote. Every change
-- of a voucher holds its row. Claims, purchases, events, redemptions and batches hold a lock of the user or the
-- reference. Other texts that name a user are written beside a member or a contract: erase_user locks these tables.

-- A claim has read its referrer from the link's contract. On VS001, an erasure came first: the caller decides again.
CREATE FUNCTION check_event_referrer() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock_shared(1701995891, hashtext(NEW.data->>'referrer'));
  IF NOT EXISTS (SELECT FROM referral_links AS l JOIN referrer_contracts AS c ON c.id = l.contract_id
                  WHERE l.code = NEW.data->>'referralLink' AND c.user_id = NEW.data->>'referrer') THEN
    RAISE EXCEPTION 'the link has another referrer' USING ERRCODE = 'VS001';
  END IF;
  RETURN NEW;
END
$$;
CREATE TRIGGER voucher_events_referrer BEFORE INSERT ON voucher_events FOR EACH ROW
  WHEN (NEW.data->>'referrer' IS NOT NULL) EXECUTE FUNCTION check_event_referrer();

-- The event that erases others has its place in the chain: the head covers it, and it is linked to the event before.
CREATE FUNCTION check_erasing_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM voucher_events AS t
                   JOIN voucher_events AS p ON p.voucher_id = t.voucher_id AND p.sequence = t.sequence - 1
                   JOIN vouchers AS v ON v.id = t.voucher_id AND v.sealed_sequence >= t.sequence
                  WHERE t.voucher_id = NEW.voucher_id AND t.sequence = NEW.erased_by
                    AND t.previous_hash = p.record_hash) THEN
    RAISE EXCEPTION 'UPDATE on voucher_events is not allowed: the chain does not contain the event that erases'
      USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END
$$;
CREATE TRIGGER voucher_events_erased_by_chain BEFORE UPDATE ON voucher_events FOR EACH ROW
  WHEN (OLD.payload IS NOT NULL AND NEW.payload IS NULL AND NEW.erased_by IS NOT NULL)
  EXECUTE FUNCTION check_erasing_event();

-- An organization's references for batches are replaced, too.
ALTER TABLE issue_references ADD COLUMN erased_at timestamptz, ADD COLUMN erased_up_to timestamptz;
CREATE OR REPLACE TRIGGER issue_references_permanent BEFORE DELETE OR TRUNCATE ON issue_references
  FOR EACH STATEMENT EXECUTE FUNCTION reject_change('references of batches are permanent');
CREATE FUNCTION check_issue_reference_erasure() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF owns_table(TG_RELID) AND OLD.erased_at IS NULL
     AND to_jsonb(OLD) - ARRAY['issue_ref', 'erased_at', 'erased_up_to']
         = to_jsonb(NEW) - ARRAY['issue_ref', 'erased_at', 'erased_up_to']
     AND NEW.issue_ref = erased_form(OLD.organization_id, OLD.issue_ref) THEN
    RETURN NEW;
  END IF;
  RAISE EXCEPTION 'UPDATE on issue_references is not allowed: references of batches are permanent'
    USING ERRCODE = 'restrict_violation';
END
$$;
CREATE TRIGGER issue_references_erasure_only BEFORE UPDATE ON issue_references
  FOR EACH ROW EXECUTE FUNCTION check_issue_reference_erasure();

-- Inserts no row under a reference that was used and erased, as ON CONFLICT DO NOTHING does under one that was used.
CREATE FUNCTION check_erased_issue_reference() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock_shared(hashtext('issue ' || NEW.organization_id), hashtext(NEW.issue_ref));
  IF EXISTS (SELECT FROM issue_references AS r
              WHERE r.organization_id = NEW.organization_id
                AND r.issue_ref = erased_form(NEW.organization_id, NEW.issue_ref)) THEN
    RETURN NULL;
  END IF;
  RETURN NEW;
END
$$;
CREATE TRIGGER issue_references_not_erased BEFORE INSERT ON issue_references
  FOR EACH ROW EXECUTE FUNCTION check_erased_issue_reference();

-- Waits for redemptions and batches under a reference, which later statements see. Then replaces the reference of a
-- batch, also in the audit entry, unless it was issued after `up_to`, and returns the number of texts. A partner's
-- reference for an order may be the same text and has a lock of its own, so that an issue does not delay a redeem.
CREATE FUNCTION erase_reference(
  of_organization text, of_reference text, up_to timestamptz DEFAULT 'infinity', OUT erased_texts bigint
) LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  replaced bigint;
  done_at timestamptz;
  of_batch text;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtext('issue ' || of_organization), hashtext(of_reference));
  PERFORM pg_advisory_xact_lock(hashtext(of_organization), hashtext(of_reference));
  SELECT r.batch_id INTO of_batch FROM issue_references AS r
   WHERE r.organization_id = of_organization AND r.issue_ref = of_reference AND r.erased_at IS NULL
     AND r.issued_at < up_to + interval '1 millisecond';
  UPDATE audit_entries AS a
     SET arguments = jsonb_set(a.arguments, '{issueRef}', to_jsonb(erased_form('', a.arguments->>'issueRef')))
   WHERE a.entity_id = of_batch AND NOT starts_with(a.arguments->>'issueRef', 'erased:');
  GET DIAGNOSTICS replaced = ROW_COUNT;
  done_at := date_trunc('milliseconds', clock_timestamp());
  UPDATE issue_references AS r
     SET issue_ref = erased_form(of_organization, of_reference),
         erased_at = done_at, erased_up_to = least(up_to, done_at)
   WHERE r.batch_id = of_batch;
  GET DIAGNOSTICS erased_texts = ROW_COUNT;
  erased_texts := erased_texts + replaced;
END
$$;

-- The references of batches, of a list of replaced texts, that are in the database as they were, as after a restore.
CREATE FUNCTION find_erased_references(of_organizations text[], forms text[])
RETURNS TABLE (organization_id text, issue_ref text, form text) LANGUAGE sql STABLE SECURITY DEFINER
SET search_path FROM CURRENT AS $$
  SELECT r.organization_id, r.issue_ref, w.form
    FROM issue_references AS r
    JOIN unnest(of_organizations, forms) AS w (organization_id, form)
      ON w.organization_id = r.organization_id AND w.form = erased_form(r.organization_id, r.issue_ref)
   WHERE r.erased_at IS NULL
$$;

REVOKE ALL ON FUNCTION erase_reference(text, text, timestamptz), find_erased_references(text[], text[]) FROM PUBLIC;

-- The redemption of an organization under a reference, also if the reference was erased since. If there are two, because
-- a release without erasures redeemed it again, returns the one with the unchanged text, which the caller heard last.
CREATE FUNCTION redemptions_under(of_organization text, of_reference text) RETURNS SETOF redemptions
LANGUAGE sql STABLE AS $$
  SELECT o.* FROM redemptions AS o
   WHERE o.organization_id = of_organization
     AND o.external_ref = ANY (ARRAY[of_reference, (SELECT erased_form(k.owner, of_reference) FROM erasure_keys AS k
                                                     WHERE k.owner = of_organization AND k.used)])
   ORDER BY o.external_ref = of_reference DESC LIMIT 1
$$;

-- Processes of a release that knows no erasure may run until an upgrade ends. They look for a reference as it was, and
-- do not find a redemption whose reference was erased. So the database refuses to redeem under such a reference, and
-- to record that nothing was redeemed under it. The lock makes the check see an erasure that is under way: processes
-- of this release hold it already. On VS001, the caller decides again.
CREATE FUNCTION check_erased_references() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock_shared(hashtext(i.organization_id), hashtext(i.external_ref)) FROM inserted AS i;
  IF EXISTS (SELECT FROM inserted AS i
               JOIN erasure_keys AS k ON k.owner = ANY (ARRAY[i.organization_id]) AND k.used
              CROSS JOIN LATERAL (SELECT FROM redemptions AS r
                                   WHERE r.organization_id = i.organization_id
                                     AND r.external_ref = ANY (ARRAY[erased_form(i.organization_id, i.external_ref)])
                                  OFFSET 0) AS redeemed) THEN
    RAISE EXCEPTION 'the reference was redeemed before, and erased since' USING ERRCODE = 'VS001';
  END IF;
  RETURN NULL;
END
$$;
-- A process that names its schema in application_name looks for erased references itself, under the same lock. It is
-- spared a second search.
CREATE TRIGGER redemptions_not_erased AFTER INSERT ON redemptions REFERENCING NEW TABLE AS inserted
  FOR EACH STATEMENT WHEN (current_setting('application_name') NOT LIKE '% (schema %)') EXECUTE FUNCTION check_erased_references();
CREATE TRIGGER reference_ends_not_erased AFTER INSERT ON reference_ends REFERENCING NEW TABLE AS inserted
  FOR EACH STATEMENT WHEN (current_setting('application_name') NOT LIKE '% (schema %)') EXECUTE FUNCTION check_erased_references();

-- An erased event is not sent. Its delivery becomes due at once, however long it would wait for its next attempt, so
-- that a worker ends it as Erased, in the order of the voucher's events.
CREATE FUNCTION end_erased_deliveries() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE webhook_deliveries AS d SET next_attempt_at = clock_timestamp()
   WHERE d.endpoint_id = ANY (ARRAY(SELECT e.id FROM webhook_endpoints AS e JOIN vouchers AS v USING (organization_id)
                                     WHERE v.id = NEW.voucher_id))
     AND d.voucher_id = NEW.voucher_id AND d.finished_at IS NULL
     AND d.sequence = NEW.sequence AND d.next_attempt_at > clock_timestamp();
  RETURN NULL;
END
$$;
CREATE TRIGGER voucher_events_end_deliveries AFTER UPDATE ON voucher_events FOR EACH ROW
  WHEN (OLD.payload IS NOT NULL AND NEW.payload IS NULL) EXECUTE FUNCTION end_erased_deliveries();
