-- An erasure waits for every transaction that may write what it erases, and then reads what these wrote. Besides
-- erase_events and erase_user, erase_reference is the third and last way to erase. Every change of
-- a voucher holds its row. Claims, purchases, events, redemptions and batches hold a lock of the user or the reference.
-- Other texts that name a user are written beside a member or a contract: erase_user locks these tables.

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
  PERFORM pg_advisory_xact_lock_shared(hashtext(NEW.organization_id), hashtext(NEW.issue_ref));
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
-- batch, also in the audit entry, unless it was issued after `up_to`, and returns the number of texts.
CREATE FUNCTION erase_reference(
  of_organization text, of_reference text, up_to timestamptz DEFAULT 'infinity', OUT erased_texts bigint
) LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  replaced bigint;
  done_at timestamptz;
  of_batch text;
BEGIN
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

-- The redemption of an organization under a reference, also if the reference was erased since. OFFSET 0 keeps it one
-- index search for each reference.
CREATE FUNCTION redemptions_under(of_organization text, of_reference text) RETURNS SETOF redemptions
LANGUAGE sql STABLE AS $$
  SELECT o.* FROM redemptions AS o
   WHERE o.organization_id = of_organization
     AND o.external_ref = ANY (ARRAY[of_reference, (SELECT erased_form(k.owner, of_reference) FROM erasure_keys AS k
                                                     WHERE k.owner = of_organization AND k.used)])
  OFFSET 0
$$;
