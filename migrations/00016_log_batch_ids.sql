-- The id of a leaf batch comes from the sequence: only the last id that the session has drawn can be inserted. So no role can choose an id that the
-- sequence has not reached. The trigger also accepts the statements of the release before.
CREATE TRIGGER log_batches_id_drawn BEFORE INSERT ON log_batches FOR EACH ROW
  WHEN (NEW.id IS DISTINCT FROM currval('log_batch_ids'))
  EXECUTE FUNCTION reject_change('its id must be the last one that this session drew from the sequence');

-- A slot has 53 bits, of which the id has 41. NOT VALID, because a batch from before may have a greater id: the sequencer sets it aside.
ALTER TABLE log_batches ADD CONSTRAINT log_batches_id_in_slot CHECK (id BETWEEN 1 AND 2199023255551) NOT VALID;
