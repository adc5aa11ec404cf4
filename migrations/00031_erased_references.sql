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
