-- +goose Up
-- Whether anything of a batch is still to end, without reading what has ended.
CREATE INDEX replays_unended ON redrive.replays (batch_id) WHERE state <> 'ended';

-- +goose Down
DROP INDEX redrive.replays_unended;
