-- +goose Up
-- Captures run in callers' transactions, so counts and groups are never
-- updated in them: triggers insert deltas, a job folds them in key order,
-- and a count is base plus deltas.
CREATE TABLE redrive.counters (
    environment  text NOT NULL,
    job_type     text NOT NULL,
    category     text NOT NULL,
    status       text NOT NULL,
    fingerprint  text NOT NULL,
    n            bigint NOT NULL,
    PRIMARY KEY (environment, job_type, category, status, fingerprint)
) WITH (fillfactor = 50);

-- The same without fingerprints: what every page asks for stays small however
-- many groups there are.
CREATE TABLE redrive.type_counters (
    environment  text NOT NULL,
    job_type     text NOT NULL,
    category     text NOT NULL,
    status       text NOT NULL,
    n            bigint NOT NULL,
    PRIMARY KEY (environment, job_type, category, status)
) WITH (fillfactor = 50);

CREATE TABLE redrive.counter_deltas (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    environment  text NOT NULL,
    job_type     text NOT NULL,
    category     text NOT NULL,
    status       text NOT NULL,
    fingerprint  text NOT NULL,
    n            bigint NOT NULL
);

CREATE TABLE redrive.death_counters (
    environment  text NOT NULL,
    hour         timestamptz NOT NULL,
    job_type     text NOT NULL,
    category     text NOT NULL,
    n            bigint NOT NULL,
    PRIMARY KEY (environment, hour, job_type, category)
) WITH (fillfactor = 50);

CREATE TABLE redrive.death_deltas (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    environment  text NOT NULL,
    hour         timestamptz NOT NULL,
    job_type     text NOT NULL,
    category     text NOT NULL,
    fingerprint  text NOT NULL,
    n            bigint NOT NULL,
    first_at     timestamptz NOT NULL,
    last_at      timestamptz NOT NULL,
    sample_death bigint NOT NULL
);

CREATE TABLE redrive.groups (
    fingerprint  text PRIMARY KEY,
    job_type     text NOT NULL,
    category     text NOT NULL,
    error_class  text NOT NULL,
    template     text NOT NULL,
    fold_version integer NOT NULL DEFAULT 1,
    first_seen   timestamptz NOT NULL,
    last_seen    timestamptz NOT NULL,
    deaths       bigint NOT NULL DEFAULT 0,
    sample_death bigint NOT NULL,
    owner        text NOT NULL DEFAULT '',
    note         text NOT NULL DEFAULT ''
) WITH (fillfactor = 70);
CREATE INDEX groups_last_seen ON redrive.groups (last_seen DESC, fingerprint);

-- +goose StatementBegin
CREATE FUNCTION redrive.dead_jobs_count_insert() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO redrive.counter_deltas (environment, job_type, category, status, fingerprint, n)
    SELECT environment, job_type, category, status, fingerprint, count(*)
    FROM added
    GROUP BY environment, job_type, category, status, fingerprint;
    RETURN NULL;
END $$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE FUNCTION redrive.dead_jobs_count_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO redrive.counter_deltas (environment, job_type, category, status, fingerprint, n)
    SELECT environment, job_type, category, status, fingerprint, sum(n)
    FROM (SELECT environment, job_type, category, status, fingerprint, 1 AS n FROM added
          UNION ALL
          SELECT environment, job_type, category, status, fingerprint, -1 FROM removed) d
    GROUP BY environment, job_type, category, status, fingerprint
    HAVING sum(n) <> 0;
    RETURN NULL;
END $$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE FUNCTION redrive.dead_jobs_count_delete() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO redrive.counter_deltas (environment, job_type, category, status, fingerprint, n)
    SELECT environment, job_type, category, status, fingerprint, -count(*)
    FROM removed
    GROUP BY environment, job_type, category, status, fingerprint;
    RETURN NULL;
END $$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE FUNCTION redrive.deaths_count_insert() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO redrive.death_deltas (environment, hour, job_type, category, fingerprint, n, first_at, last_at, sample_death)
    SELECT environment, date_trunc('hour', died_at, 'UTC'), job_type, category, fingerprint,
           count(*), min(died_at), max(died_at), min(id)
    FROM added
    GROUP BY environment, date_trunc('hour', died_at, 'UTC'), job_type, category, fingerprint;
    RETURN NULL;
END $$;
-- +goose StatementEnd

CREATE TRIGGER dead_jobs_count_insert AFTER INSERT ON redrive.dead_jobs
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION redrive.dead_jobs_count_insert();
CREATE TRIGGER dead_jobs_count_update AFTER UPDATE ON redrive.dead_jobs
    REFERENCING OLD TABLE AS removed NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION redrive.dead_jobs_count_update();
CREATE TRIGGER dead_jobs_count_delete AFTER DELETE ON redrive.dead_jobs
    REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION redrive.dead_jobs_count_delete();
CREATE TRIGGER deaths_count_insert AFTER INSERT ON redrive.deaths
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION redrive.deaths_count_insert();

-- What readers use: base plus what isn't folded yet.
CREATE VIEW redrive.counts AS
    SELECT environment, job_type, category, status, fingerprint, sum(n) AS n
    FROM (SELECT environment, job_type, category, status, fingerprint, n FROM redrive.counters
          UNION ALL
          SELECT environment, job_type, category, status, fingerprint, n FROM redrive.counter_deltas) c
    GROUP BY environment, job_type, category, status, fingerprint;

CREATE VIEW redrive.type_counts AS
    SELECT environment, job_type, category, status, sum(n) AS n
    FROM (SELECT environment, job_type, category, status, n FROM redrive.type_counters
          UNION ALL
          SELECT environment, job_type, category, status, n FROM redrive.counter_deltas) c
    GROUP BY environment, job_type, category, status;

CREATE VIEW redrive.deaths_per_hour AS
    SELECT environment, hour, job_type, category, sum(n) AS n
    FROM (SELECT environment, hour, job_type, category, n FROM redrive.death_counters
          UNION ALL
          SELECT environment, hour, job_type, category, n FROM redrive.death_deltas) d
    GROUP BY environment, hour, job_type, category;

-- +goose Down
SELECT 1;
