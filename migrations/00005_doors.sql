-- +goose Up
-- What the console knows of each source and when it was last read.
CREATE TABLE redrive.sources (
    environment      text NOT NULL,
    name             text NOT NULL,
    kind             text NOT NULL CHECK (kind IN ('river', 'http', 'sql', 'go')),
    last_seen_at     timestamptz,                    -- last successful poll, or last document
    last_complete_at timestamptz,                    -- last complete pass
    last_error       text NOT NULL DEFAULT '',       -- redacted; '' = healthy
    last_error_at    timestamptz,
    captured         bigint NOT NULL DEFAULT 0,      -- by polls; doors in callers' transactions don't count here
    waiting_retry    bigint,                         -- jobs waiting to retry, where the source tells
    in_flight        bigint,
    PRIMARY KEY (environment, name)
);

-- Deaths already taken from River: (id, attempt, finalized_at) is a death there.
CREATE TABLE redrive.river_deaths (
    environment  text NOT NULL,
    source       text NOT NULL,
    river_id     bigint NOT NULL,
    attempt      integer NOT NULL,
    finalized_at timestamptz NOT NULL,
    PRIMARY KEY (environment, source, river_id, attempt, finalized_at)
);

-- Filled by the optional trigger on river_job: deaths survive deletion of the row.
CREATE TABLE redrive.river_inbox (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    environment  text NOT NULL,
    source       text NOT NULL,
    job          text NOT NULL,                      -- to_json of the river_job row
    received_at  timestamptz NOT NULL DEFAULT now()
);

-- The SQL door: documents in callers' transactions, unread until they commit.
-- No NOTIFY here: its lock would make callers' commits wait for each other.
CREATE TABLE redrive.inbox (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    document     text NOT NULL,
    environment  text NOT NULL DEFAULT '',           -- from the caller's redrive.environment setting
    received_at  timestamptz NOT NULL DEFAULT now()
);

-- What could not be parsed stays visible.
CREATE TABLE redrive.quarantine (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    door         text NOT NULL CHECK (door IN ('sql', 'http', 'river', 'go')),
    environment  text NOT NULL DEFAULT '',
    source       text NOT NULL DEFAULT '',
    error        text NOT NULL,                      -- what was wrong and where
    raw          bytea NOT NULL,
    sealing      text NOT NULL DEFAULT 'plain',
    preview      text NOT NULL DEFAULT '',           -- redacted, at most 2,000 characters
    received_at  timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX quarantine_recent ON redrive.quarantine (received_at DESC, id DESC);

-- capture_dead_job appends the text and parses nothing; it never raises for content.
-- +goose StatementBegin
CREATE FUNCTION redrive.capture_dead_job(document json) RETURNS void LANGUAGE sql AS $$
    INSERT INTO redrive.inbox (document, environment)
    VALUES (coalesce($1::text, ''), coalesce(current_setting('redrive.environment', true), ''));
$$;
-- +goose StatementEnd
-- The same for callers whose text may not even be JSON: it is quarantined, not refused.
-- +goose StatementBegin
CREATE FUNCTION redrive.capture_dead_job(document text) RETURNS void LANGUAGE sql AS $$
    INSERT INTO redrive.inbox (document, environment)
    VALUES (coalesce($1, ''), coalesce(current_setting('redrive.environment', true), ''));
$$;
-- +goose StatementEnd
-- +goose Down
SELECT 1;
