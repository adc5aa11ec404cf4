-- A log that is recovered from a copy keeps the places that leaves have in the copy. A batch whose leaves do not follow each other there, or
-- of which the copy has only some, lists the place of each leaf.

-- NULL: the leaves follow each other from first_index on. Otherwise the leaf of slot s is places[(s & 4095) + 1].
ALTER TABLE log_batches ADD COLUMN places bigint[];

-- NOT VALID: no batch has places yet, so there is nothing to read.
ALTER TABLE log_batches ADD CONSTRAINT log_batches_places CHECK (places IS NULL OR (cardinality(places) = leaves
  AND array_position(places, NULL) IS NULL AND places[1] IS NOT DISTINCT FROM first_index)) NOT VALID;
