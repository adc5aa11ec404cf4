-- The redemption of an organization under a reference, also if the reference was erased since. There may be two, if a
-- release without erasures redeemed it again before the triggers of 00031: then the one with the text as it is, which
-- is what the caller heard last.
CREATE OR REPLACE FUNCTION redemptions_under(of_organization text, of_reference text) RETURNS SETOF redemptions
LANGUAGE sql STABLE AS $$
  SELECT o.* FROM redemptions AS o
   WHERE o.organization_id = of_organization
     AND o.external_ref = ANY (ARRAY[of_reference, (SELECT erased_form(k.owner, of_reference) FROM erasure_keys AS k
                                                     WHERE k.owner = of_organization AND k.used)])
   ORDER BY o.external_ref = of_reference DESC LIMIT 1
$$;
