-- A program reads codes page by page. One audit entry counts what a key reads of a batch in an hour: an entry for each
-- page filled the table. And an erasure finds the entries that name a user by an index, which the next migration makes,
-- because it reads them while it locks members and contracts.

-- As in 00026. Also accepts that the counts of a key's reading grow.
CREATE OR REPLACE FUNCTION check_audit_erasure() RETURNS trigger LANGUAGE plpgsql AS $$
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

-- Adds to the counts of a key's entry of the last hour about codes of a batch. Returns false if there is none.
-- SECURITY DEFINER: no role may change audit entries. The caller has locked the batch's name, as for each entry.
CREATE FUNCTION count_codes_read(of_batch text, of_key text, codes integer) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  UPDATE audit_entries AS a
     SET after = a.after || jsonb_build_object('codesExported', (a.after->>'codesExported')::bigint + codes,
                                               'readings', (a.after->>'readings')::bigint + 1)
   WHERE a.id = (SELECT e.id FROM audit_entries AS e
                  WHERE e.entity_id = of_batch AND e.command = 'batch export' AND e.by = 'key' AND e.os_user = of_key
                    AND e.at > clock_timestamp() - interval '1 hour' AND e.after ? 'readings'
                  ORDER BY e.id DESC LIMIT 1);
  RETURN FOUND;
END
$$;
REVOKE ALL ON FUNCTION count_codes_read(text, text, integer) FROM PUBLIC;

-- As in 00026. Finds audit entries by the index.
CREATE OR REPLACE FUNCTION erase_user(
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
