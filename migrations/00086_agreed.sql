-- +goose Up
-- A batch is also paused when whoever agreed to it lost the right to; somebody
-- who holds it takes it over by resuming.
ALTER TABLE redrive.batches
    DROP CONSTRAINT batches_pause_kind_check,
    ADD CONSTRAINT batches_pause_kind CHECK (pause_kind IN ('', 'person', 'failures', 'catalogue', 'rights'));

-- +goose Down
SELECT 1;
