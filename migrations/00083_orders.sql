-- +goose Up
-- What the right to confirm that a page carries is signed with: asking for the
-- page then writes nothing, and every process knows it.
ALTER TABLE redrive.store
    ADD COLUMN confirm_key bytea NOT NULL
        DEFAULT sha256(convert_to(gen_random_uuid()::text || gen_random_uuid()::text || gen_random_uuid()::text, 'UTF8'));
COMMENT ON TABLE redrive.confirmations IS 'nonces that were used: each is good once';

-- +goose Down
SELECT 1;
