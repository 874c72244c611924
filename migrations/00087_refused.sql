-- +goose Up
-- How often, and when last, the destination took no connection for a replay that
-- is out: the breaker opens by it, before any outcome.
ALTER TABLE redrive.replays
    ADD COLUMN refusals integer NOT NULL DEFAULT 0,
    ADD COLUMN refused_at timestamptz;
CREATE INDEX replays_refused ON redrive.replays (environment, destination, refused_at DESC)
    WHERE state = 'released' AND delivered_at IS NULL AND refused_at IS NOT NULL;

-- +goose Down
SELECT 1;
