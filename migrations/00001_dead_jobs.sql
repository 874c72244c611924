-- +goose Up
CREATE SCHEMA IF NOT EXISTS redrive;

-- One row: the store's identity, part of the associated data of sealed payloads.
CREATE TABLE redrive.store (
    singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    store_id uuid NOT NULL DEFAULT gen_random_uuid()
);
INSERT INTO redrive.store DEFAULT VALUES;

-- Narrow rows for lists: nothing here is raw. Every text column holds the
-- redacted, NUL-free form; raw bytes live in payloads and raw_documents.
CREATE TABLE redrive.dead_jobs (
    id                bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    environment       text NOT NULL CHECK (environment <> ''),
    source            text NOT NULL CHECK (source <> ''),
    job_id            text NOT NULL CHECK (job_id <> ''),
    generation        integer NOT NULL DEFAULT 1 CHECK (generation >= 1),
    job_type          text NOT NULL CHECK (job_type <> ''),
    queue             text NOT NULL DEFAULT '',
    tenant            text NOT NULL DEFAULT '',
    entity            text NOT NULL DEFAULT '',
    event             text NOT NULL DEFAULT '',
    destination       text NOT NULL DEFAULT '',
    key_scope         text NOT NULL,                 -- ledger scope: the catalogue's, else the job type
    idempotency_key   text NOT NULL DEFAULT '',      -- empty matches nothing
    status            text NOT NULL DEFAULT 'open'
        CHECK (status IN ('open', 'snoozed', 'replaying', 'recovered', 'resolved', 'discarded')),
    effect            text NOT NULL DEFAULT 'none' CHECK (effect IN ('none', 'done', 'unknown')),
    effect_id         text NOT NULL DEFAULT '',      -- the provider's id, when effect is done
    category          text NOT NULL DEFAULT 'unknown'
        CHECK (category IN ('transient', 'throttled', 'missing_state', 'invalid_input', 'auth', 'unknown')),
    category_by       text NOT NULL DEFAULT 'redrive' CHECK (category_by IN ('redrive', 'worker')),
    reason_code       text NOT NULL DEFAULT '',
    reason_text       text NOT NULL DEFAULT '',
    gave_up           text NOT NULL DEFAULT ''
        CHECK (gave_up IN ('', 'attempts', 'window', 'not_retryable', 'poison', 'cancelled')),
    error_class       text NOT NULL DEFAULT '',      -- of the root cause, at most 255 characters
    error_message     text NOT NULL DEFAULT '',      -- redacted, one line, at most 500 characters
    status_code       integer NOT NULL DEFAULT 0,    -- HTTP status found in the failure, 0 = none
    fingerprint       text NOT NULL,
    attempt_count     integer NOT NULL DEFAULT 0,
    max_attempts      integer NOT NULL DEFAULT 0,    -- 0 = not told
    worker_version    text NOT NULL DEFAULT '',
    payload_version   integer NOT NULL DEFAULT 1,    -- current version in payloads
    schema_version    integer NOT NULL DEFAULT 1,    -- the worker's payload_version: which schema
    payload_size      bigint NOT NULL DEFAULT 0,     -- bytes of the current version
    payload_kind      text NOT NULL DEFAULT 'json'
        CHECK (payload_kind IN ('json', 'text', 'binary', 'empty', 'printout')), -- printout: only a repr was kept
    enqueued_at       timestamptz,
    first_failed_at   timestamptz,
    died_at           timestamptz NOT NULL,          -- plausible time of death, else the capture's
    died_at_note      text NOT NULL DEFAULT '',      -- why died_at isn't the worker's word
    last_death_attempt integer NOT NULL DEFAULT 0,
    last_death_at     timestamptz,                   -- as told; null when not told or implausible
    captured_at       timestamptz NOT NULL DEFAULT now(),
    updated_at        timestamptz NOT NULL DEFAULT now(),
    source_ref        jsonb NOT NULL DEFAULT '{}',   -- what the source needs to find the job again
    assignee          text NOT NULL DEFAULT '',
    snoozed_until     timestamptz,
    settled_reason    text NOT NULL DEFAULT '',      -- why resolved, discarded or snoozed
    settled_ref       text NOT NULL DEFAULT '',
    settled_by        text NOT NULL DEFAULT '',
    settled_at        timestamptz,
    fix_kind          text NOT NULL DEFAULT '' CHECK (fix_kind IN ('', 'edit', 'worker_version', 'ticket', 'record')),
    fix_ref           text NOT NULL DEFAULT '',      -- the declared fix that lifts invalid input and auth; cleared by a new death
    CONSTRAINT dead_jobs_identity UNIQUE (environment, source, job_id)
) WITH (fillfactor = 85);

CREATE INDEX dead_jobs_status_died ON redrive.dead_jobs (status, died_at DESC, id DESC);
CREATE INDEX dead_jobs_env_status_died ON redrive.dead_jobs (environment, status, died_at DESC, id DESC);
CREATE INDEX dead_jobs_type_status_died ON redrive.dead_jobs (job_type, status, died_at DESC, id DESC);
CREATE INDEX dead_jobs_class_died ON redrive.dead_jobs (error_class, died_at DESC, id DESC);
CREATE INDEX dead_jobs_category_status_died ON redrive.dead_jobs (category, status, died_at DESC, id DESC);
CREATE INDEX dead_jobs_fingerprint_died ON redrive.dead_jobs (fingerprint, died_at DESC, id DESC);
CREATE INDEX dead_jobs_key ON redrive.dead_jobs (environment, key_scope, idempotency_key) WHERE idempotency_key <> '';
CREATE INDEX dead_jobs_job_id ON redrive.dead_jobs (job_id);
CREATE INDEX dead_jobs_key_alone ON redrive.dead_jobs (idempotency_key) WHERE idempotency_key <> '';
CREATE INDEX dead_jobs_entity ON redrive.dead_jobs (environment, entity, died_at DESC, id DESC) WHERE entity <> '';
CREATE INDEX dead_jobs_snoozed ON redrive.dead_jobs (snoozed_until) WHERE status = 'snoozed';

-- Every death ever told of a job; death_key makes a redelivery recognisable.
CREATE TABLE redrive.deaths (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    dead_job_id   bigint NOT NULL REFERENCES redrive.dead_jobs ON DELETE CASCADE,
    generation    integer NOT NULL,
    attempt       integer NOT NULL,
    death_key     text NOT NULL,
    died_at       timestamptz NOT NULL,
    environment   text NOT NULL,
    job_type      text NOT NULL,
    category      text NOT NULL,
    fingerprint   text NOT NULL,
    template      text NOT NULL DEFAULT '',          -- the folded message, for the group's row
    error_class   text NOT NULL DEFAULT '',
    captured_at   timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT deaths_once UNIQUE (dead_job_id, death_key)
);

-- Payload bytes exactly as the door gave them; an edit adds a version, nothing overwrites one.
CREATE TABLE redrive.payloads (
    dead_job_id  bigint NOT NULL REFERENCES redrive.dead_jobs ON DELETE CASCADE,
    version      integer NOT NULL CHECK (version >= 1),
    bytes        bytea,                              -- sealed by `sealing`; null when shredded or never given
    sealing      text NOT NULL DEFAULT 'plain',
    encoding     text NOT NULL CHECK (encoding IN ('json', 'base64', 'none')),
    size         bigint NOT NULL,
    sha256       bytea NOT NULL,
    redacted     bytea NOT NULL,                     -- what people read
    redact_version integer NOT NULL,
    hidden       integer NOT NULL DEFAULT 0,         -- how many values the copy hides
    origin       text NOT NULL CHECK (origin IN ('capture', 'edit')),
    created_by   text NOT NULL DEFAULT '',
    reason       text NOT NULL DEFAULT '',
    created_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (dead_job_id, version)
);
ALTER TABLE redrive.payloads ALTER COLUMN bytes SET STORAGE EXTERNAL;

-- Raw headers and the envelope as sent, and their redacted copy.
CREATE TABLE redrive.documents (
    dead_job_id  bigint NOT NULL REFERENCES redrive.dead_jobs ON DELETE CASCADE,
    generation   integer NOT NULL,
    headers_raw  bytea,
    extra_raw    bytea,                              -- unknown fields, a JSON object as sent
    sealing      text NOT NULL DEFAULT 'plain',
    headers      text NOT NULL DEFAULT '[]',         -- redacted JSON list for display, NUL-free
    extra        text NOT NULL DEFAULT '{}',
    PRIMARY KEY (dead_job_id, generation)
);

-- Attempts in the order they were sent; texts redacted. Raw texts stand in attempt_raws.
CREATE TABLE redrive.attempts (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    dead_job_id  bigint NOT NULL REFERENCES redrive.dead_jobs ON DELETE CASCADE,
    generation   integer NOT NULL,
    seq          integer NOT NULL,                   -- 1-based, as sent
    at           timestamptz,                        -- null when missing or unreadable
    at_raw       text NOT NULL DEFAULT '',
    at_note      text NOT NULL DEFAULT '',           -- implausible, missing, no zone, …
    error_class  text NOT NULL DEFAULT '',
    message      text NOT NULL DEFAULT '',
    stack        text NOT NULL DEFAULT '',
    causes       text NOT NULL DEFAULT '[]',         -- redacted JSON [{error_class, message}], outermost first
    worker       text NOT NULL DEFAULT '',
    worker_version text NOT NULL DEFAULT '',
    duration_ms  bigint,
    side_effect  text NOT NULL DEFAULT '',
    status_code  integer NOT NULL DEFAULT 0,
    replay_id    bigint,                             -- the replay that made this attempt
    UNIQUE (dead_job_id, generation, seq)
);

CREATE TABLE redrive.attempt_raws (
    attempt_id   bigint PRIMARY KEY REFERENCES redrive.attempts ON DELETE CASCADE,
    raw          bytea NOT NULL,                     -- the attempt's JSON object as sent
    sealing      text NOT NULL DEFAULT 'plain'
);

CREATE TABLE redrive.notes (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    dead_job_id  bigint NOT NULL REFERENCES redrive.dead_jobs ON DELETE CASCADE,
    author       text NOT NULL,
    body         text NOT NULL CHECK (body <> ''),
    created_at   timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX notes_job ON redrive.notes (dead_job_id, id);

-- +goose Down
DROP SCHEMA redrive CASCADE;
