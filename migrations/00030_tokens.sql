-- +goose Up
-- A token's environment is a limit; where its documents go that name no
-- environment is a thing of its own, so that one token may serve all of them.
ALTER TABLE redrive.tokens ADD COLUMN default_environment text NOT NULL DEFAULT '';
COMMENT ON COLUMN redrive.tokens.environment IS 'limit; empty = every environment';
CREATE INDEX tokens_owner ON redrive.tokens (owner_id);

-- +goose Down
SELECT 1;
