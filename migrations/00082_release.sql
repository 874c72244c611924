-- +goose Up
-- How often a replay couldn't be handed over; after a few times it ends.
ALTER TABLE redrive.replays ADD COLUMN faults smallint NOT NULL DEFAULT 0;

-- What waits behind another of its entity, key or job.
CREATE INDEX replays_behind ON redrive.replays (batch_id, wave, id) WHERE state = 'pending' AND behind;
-- What was released to a destination that doesn't hold it yet.
CREATE INDEX replays_undelivered ON redrive.replays (environment, destination, id)
    WHERE state = 'released' AND delivered_at IS NULL;
CREATE INDEX runs_due ON redrive.runs (environment, job_type, due_at) WHERE live;

-- Ids are above 0: the condition keeps the planner from taking this index, which
-- looks small whenever little is out, for questions about keys and entities.
DROP INDEX redrive.replays_one_per_job;
CREATE UNIQUE INDEX replays_one_per_job ON redrive.replays (dead_job_id)
    WHERE state IN ('ready', 'released') AND dead_job_id > 0;

ALTER TABLE redrive.runs
    ADD COLUMN start_cursor bigint NOT NULL DEFAULT -1,      -- the last replay whose job was taken; -1: not even the canary's
    -- how the batch stood at watch_from: what ended before, and who was out, doesn't count
    ADD COLUMN base_good bigint NOT NULL DEFAULT 0,
    ADD COLUMN base_bad bigint NOT NULL DEFAULT 0,
    ADD COLUMN stragglers bigint[] NOT NULL DEFAULT '{}';

-- At most so many are out, or out and not delivered: a count, plus what left
-- since. It is counted anew only when it reaches the limit. Null: not known.
ALTER TABLE redrive.destinations
    ADD COLUMN out_bound bigint,
    ADD COLUMN undelivered_bound bigint;

-- +goose Down
SELECT 1;
