-- +goose Up
CREATE TABLE redrive.users (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    email          text NOT NULL,
    name           text NOT NULL DEFAULT '',
    password_hash  text NOT NULL,                    -- argon2id, PHC string
    disabled_at    timestamptz,
    created_at     timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX users_email ON redrive.users (lower(email));

-- Roles add up; '' means every environment or every type.
CREATE TABLE redrive.grants (
    user_id      bigint NOT NULL REFERENCES redrive.users ON DELETE CASCADE,
    role         text NOT NULL CHECK (role IN ('viewer', 'operator', 'oncall', 'approver', 'auditor', 'admin')),
    environment  text NOT NULL DEFAULT '',
    job_type     text NOT NULL DEFAULT '',
    granted_by   text NOT NULL DEFAULT '',
    granted_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_id, role, environment, job_type)
);

CREATE TABLE redrive.sessions (
    token_hash       bytea PRIMARY KEY,              -- SHA-256 of the 256-bit token; the token is stored nowhere
    id               uuid NOT NULL DEFAULT gen_random_uuid() UNIQUE, -- names the session on /account
    user_id          bigint REFERENCES redrive.users ON DELETE CASCADE, -- null before sign-in
    created_at       timestamptz NOT NULL,
    last_seen_at     timestamptz NOT NULL,
    authenticated_at timestamptz,                    -- last passphrase, for step-up
    ip               text NOT NULL DEFAULT '',
    user_agent       text NOT NULL DEFAULT '',
    data             bytea NOT NULL DEFAULT ''
);
CREATE INDEX sessions_user ON redrive.sessions (user_id);

-- A token acts as its owner, with no more than its own grants.
CREATE TABLE redrive.tokens (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name         text NOT NULL,
    token_hash   bytea NOT NULL UNIQUE,
    owner_id     bigint NOT NULL REFERENCES redrive.users ON DELETE CASCADE,
    roles        text[] NOT NULL DEFAULT '{}',
    capture      boolean NOT NULL DEFAULT false,     -- may write dead jobs
    environment  text NOT NULL DEFAULT '',           -- default and limit; '' = none
    sources      text[] NOT NULL DEFAULT '{}',       -- may write only these; the first is the default
    created_at   timestamptz NOT NULL DEFAULT now(),
    stepped_up_at timestamptz,
    expires_at   timestamptz,
    revoked_at   timestamptz,
    last_used_at timestamptz
);

CREATE TABLE redrive.login_failures (
    subject      text PRIMARY KEY,                   -- account:<sha256 of e-mail> or address:<ip>
    failures     integer NOT NULL,
    last_at      timestamptz NOT NULL,
    blocked_until timestamptz
);

-- Append-only. The body is the canonical JSON text that gets sealed; the
-- searching columns are generated from it, so what is shown can't differ.
CREATE TABLE redrive.audit_entries (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    body         text NOT NULL,
    at           timestamptz NOT NULL GENERATED ALWAYS AS (to_timestamp(((body::jsonb ->> 'at_us')::double precision) / 1000000)) STORED,
    actor_kind   text NOT NULL GENERATED ALWAYS AS (body::jsonb #>> '{actor,kind}') STORED CHECK (actor_kind IN ('person', 'token', 'system')),
    actor        text NOT NULL GENERATED ALWAYS AS (body::jsonb #>> '{actor,name}') STORED CHECK (actor <> ''),
    action       text NOT NULL GENERATED ALWAYS AS (body::jsonb ->> 'action') STORED CHECK (action <> ''),
    object_kind  text NOT NULL GENERATED ALWAYS AS (body::jsonb #>> '{object,kind}') STORED,
    object_id    text NOT NULL GENERATED ALWAYS AS (body::jsonb #>> '{object,id}') STORED,
    environment  text NOT NULL GENERATED ALWAYS AS (coalesce(body::jsonb ->> 'environment', '')) STORED,
    job_type     text NOT NULL GENERATED ALWAYS AS (coalesce(body::jsonb ->> 'job_type', '')) STORED,
    dead_job_id  bigint GENERATED ALWAYS AS ((body::jsonb ->> 'dead_job')::bigint) STORED,
    batch_id     bigint GENERATED ALWAYS AS ((body::jsonb ->> 'batch')::bigint) STORED,
    reason       text NOT NULL GENERATED ALWAYS AS (coalesce(body::jsonb ->> 'reason', '')) STORED
);
CREATE INDEX audit_entries_at ON redrive.audit_entries (at DESC, id DESC);
CREATE INDEX audit_entries_actor ON redrive.audit_entries (actor, at DESC, id DESC);
CREATE INDEX audit_entries_action ON redrive.audit_entries (action, at DESC, id DESC);
CREATE INDEX audit_entries_job ON redrive.audit_entries (dead_job_id, id) WHERE dead_job_id IS NOT NULL;
CREATE INDEX audit_entries_batch ON redrive.audit_entries (batch_id, id) WHERE batch_id IS NOT NULL;

-- +goose StatementBegin
CREATE FUNCTION redrive.audit_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit log is append-only: % on % is refused', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'insufficient_privilege';
END $$;
-- +goose StatementEnd
CREATE TRIGGER audit_entries_no_change BEFORE UPDATE OR DELETE ON redrive.audit_entries
    FOR EACH ROW EXECUTE FUNCTION redrive.audit_append_only();
CREATE TRIGGER audit_entries_no_truncate BEFORE TRUNCATE ON redrive.audit_entries
    FOR EACH STATEMENT EXECUTE FUNCTION redrive.audit_append_only();
ALTER TABLE redrive.audit_entries ENABLE ALWAYS TRIGGER audit_entries_no_change;
ALTER TABLE redrive.audit_entries ENABLE ALWAYS TRIGGER audit_entries_no_truncate;

-- +goose Down
SELECT 1;
