-- Functions that the tables and statements of every topic share.

-- Trigger function: rejects the statement that fired it and gives the trigger's argument as the reason.
CREATE FUNCTION reject_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% on % is not allowed: %', TG_OP, TG_TABLE_NAME, TG_ARGV[0] USING ERRCODE = 'restrict_violation';
END
$$;

-- Raises VS001 unless a statement found as many rows as its caller decided on. The service sends its last writes together with COMMIT and
-- does not wait for their results, so the statement itself must roll the transaction back.
CREATE FUNCTION assert_row_count(actual bigint, expected integer, what text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF actual <> expected THEN
    RAISE EXCEPTION 'found % of % expected %', actual, expected, what USING ERRCODE = 'VS001';
  END IF;
END
$$;
