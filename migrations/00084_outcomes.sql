-- +goose Up
-- The next of an entity in each batch, without reading all that wait.
CREATE INDEX replays_waiting ON redrive.replays (environment, entity, batch_id, order_at, id)
    WHERE state = 'pending' AND entity <> '';
-- A failed replay whose death its source hasn't told of yet.
CREATE INDEX replays_untold ON redrive.replays (outcome_at, id) WHERE outcome = 'failed' AND next_generation = 0;
-- How fast a batch leaves, and the failures of one, without reading the rest.
CREATE INDEX replays_left ON redrive.replays (batch_id, released_at DESC) WHERE released_at IS NOT NULL;
CREATE INDEX replays_outcome ON redrive.replays (batch_id, outcome, id) WHERE outcome IS NOT NULL;
-- What of a batch stands where, in order.
DROP INDEX redrive.replays_unended;
CREATE INDEX replays_standing ON redrive.replays (batch_id, state, id) WHERE state IN ('pending', 'ready', 'released');

-- What ended last of a type.
DROP INDEX redrive.replays_recent;
CREATE INDEX replays_recent ON redrive.replays (environment, job_type, outcome_at DESC, id DESC) WHERE outcome_at IS NOT NULL;
-- The last batches of a type.
CREATE INDEX batches_of_type ON redrive.batches (environment, job_type, id DESC) WHERE kind = 'batch';

-- What a completed plan knows of its members together.
ALTER TABLE redrive.batches
    ADD COLUMN tenants integer NOT NULL DEFAULT 0,           -- of its eligible jobs
    ADD COLUMN older_left_out integer NOT NULL DEFAULT 0;    -- entities with an older open job that stays behind

-- +goose Down
SELECT 1;
