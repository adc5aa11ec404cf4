DO $$ BEGIN RAISE EXCEPTION 'this migration fails on purpose'; END $$;
