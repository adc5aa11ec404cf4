-- An organization's reference for a batch and a partner's reference for an order may be the same text. Each has a lock
-- of its own, so that an issue does not delay a redeem. An erasure by reference takes both, in this order.
CREATE OR REPLACE FUNCTION check_erased_issue_reference() RETURNS trigger LANGUAGE plpgsql AS $$
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
CREATE OR REPLACE FUNCTION erase_reference(
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
