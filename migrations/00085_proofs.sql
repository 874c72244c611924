-- +goose Up
-- The second run of a proof: it may leave although its key is done. Only an
-- administrator orders one, and never in the first environment.
ALTER TABLE redrive.replays ADD COLUMN proof boolean NOT NULL DEFAULT false;

-- +goose Down
SELECT 1;
