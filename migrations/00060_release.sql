-- +goose Up
-- How often the key's effect had been begun when the replay left. A ledger row
-- speaks of this run only when it was begun again since: times can't tell, they
-- come from several clocks.
ALTER TABLE redrive.replays ADD COLUMN ledger_begins integer NOT NULL DEFAULT 0;

-- The next of an entity, found without reading everything that waits.
CREATE INDEX replays_pending_entity ON redrive.replays (environment, entity, due_at, id)
    WHERE state = 'pending' AND entity <> '';

-- +goose Down
DROP INDEX redrive.replays_pending_entity;
ALTER TABLE redrive.replays DROP COLUMN ledger_begins;
