-- +goose Up
-- "Which job sent ch_123?": a provider's id is looked up from outside.
CREATE INDEX dead_jobs_effect_id ON redrive.dead_jobs (effect_id, died_at DESC, id DESC) WHERE effect_id <> '';

-- +goose Down
DROP INDEX redrive.dead_jobs_effect_id;
