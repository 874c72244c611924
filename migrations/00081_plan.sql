-- +goose Up
-- The newest job of an entity that has recovered: what makes an older one
-- superseded.
CREATE INDEX dead_jobs_ran ON redrive.dead_jobs
    (environment, entity, job_type, (coalesce(enqueued_at, first_failed_at, died_at)) DESC)
    WHERE entity <> '' AND status = 'recovered';

-- Freezing a selection reads its jobs by id.
CREATE INDEX dead_jobs_type_id ON redrive.dead_jobs (environment, job_type, id);

-- A person took responsibility for jobs that are older than their type allows.
ALTER TABLE redrive.batches
    ADD COLUMN allow_old text NOT NULL DEFAULT '',           -- the reason; '' = not allowed
    ADD COLUMN plan_problem_at timestamptz,
    ADD COLUMN judging boolean NOT NULL DEFAULT false;       -- the members stand; they are being judged again

-- +goose Down
SELECT 1;
