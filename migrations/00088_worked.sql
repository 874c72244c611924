-- +goose Up
-- When somebody last worked on a batch in the background: where nobody does any
-- more, the work is handed out again.
ALTER TABLE redrive.batches ADD COLUMN worked_at timestamptz;

-- +goose Down
SELECT 1;
