-- A program reads codes page by page. One audit entry counts what a key reads of a batch in an hour, because an entry for
-- each page filled the table.

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
