-- Lets the tables be in any schema. `npm run migrate` and each process use the schema of the tables alone, as their search_path.

-- Functions with the rights of the owner must not look where the caller chooses.
ALTER FUNCTION add_mark() SET search_path FROM CURRENT;
ALTER FUNCTION advance_sandbox(text, integer, text, text, text) SET search_path FROM CURRENT;
