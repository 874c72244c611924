-- +goose Up
-- One row names one effect in the real world.
CREATE TABLE redrive.ledger (
    environment  text NOT NULL CHECK (environment <> ''),
    scope        text NOT NULL CHECK (scope <> ''),
    key          text NOT NULL CHECK (key <> ''),
    state        text NOT NULL CHECK (state IN ('begun', 'done', 'failed')),
    result       text NOT NULL DEFAULT '',           -- JSON as told by finish_effect; '' = none
    effect_id    text NOT NULL DEFAULT '',           -- the provider's id, from result.id or a person
    begins       integer NOT NULL DEFAULT 1,         -- how many times it was begun
    begun_at     timestamptz NOT NULL DEFAULT now(),
    finished_at  timestamptz,
    settled_by   text NOT NULL DEFAULT '',           -- the person who settled it by hand
    PRIMARY KEY (environment, scope, key)
);

-- A batch is a set of replays of one environment and one type.
CREATE TABLE redrive.batches (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    environment   text NOT NULL,
    job_type      text NOT NULL,
    kind          text NOT NULL CHECK (kind IN ('single', 'batch')),
    state         text NOT NULL CHECK (state IN ('planning', 'planned', 'scheduled', 'running', 'paused', 'done', 'cancelled')),
    filter        text NOT NULL DEFAULT '',
    cutoff        timestamptz NOT NULL,
    reason        text NOT NULL DEFAULT '',
    plan_hash     text NOT NULL DEFAULT '',
    planned       integer NOT NULL DEFAULT 0,
    eligible      integer NOT NULL DEFAULT 0,
    due_at        timestamptz,
    created_by    text NOT NULL,
    created_at    timestamptz NOT NULL DEFAULT now(),
    confirmed_by  text NOT NULL DEFAULT '',
    confirmed_at  timestamptz,
    order_entry   bigint REFERENCES redrive.audit_entries, -- the entry that ordered it; release waits for it
    finished_at   timestamptz
);
CREATE INDEX batches_recent ON redrive.batches (created_at DESC, id DESC);
CREATE INDEX batches_unfinished ON redrive.batches (state, due_at) WHERE state IN ('scheduled', 'running');

-- planned → pending → ready → released → ended. Ready marks the head of its
-- entity and of its key; a claim only ever looks at ready items.
CREATE TABLE redrive.replays (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    batch_id        bigint NOT NULL REFERENCES redrive.batches,
    dead_job_id     bigint NOT NULL,                 -- no foreign key: a replay outlives a purge
    generation      integer NOT NULL,
    payload_version integer NOT NULL,
    environment     text NOT NULL,
    source          text NOT NULL,
    job_id          text NOT NULL,
    job_type        text NOT NULL,
    tenant          text NOT NULL DEFAULT '',
    entity          text NOT NULL DEFAULT '',
    key_scope       text NOT NULL,
    idempotency_key text NOT NULL DEFAULT '',
    target_kind     text NOT NULL DEFAULT '',        -- river, http
    target          jsonb NOT NULL DEFAULT '{}',     -- where it goes, as the catalogue said when it was planned
    verdict         text NOT NULL DEFAULT 'eligible',
    verdict_detail  text NOT NULL DEFAULT '',
    state           text NOT NULL CHECK (state IN ('planned', 'pending', 'ready', 'released', 'ended')),
    due_at          timestamptz,
    released_at     timestamptz,
    delivered_at    timestamptz,                     -- the target accepted it
    deadline_at     timestamptz,                     -- no outcome by then: unconfirmed
    target_ref      jsonb NOT NULL DEFAULT '{}',     -- what the outcome is found by (river row and attempt)
    outcome         text CHECK (outcome IN ('succeeded', 'already_done', 'failed', 'skipped', 'unconfirmed', 'cancelled')),
    outcome_code    text NOT NULL DEFAULT '',
    outcome_detail  text NOT NULL DEFAULT '',        -- redacted
    effect_id       text NOT NULL DEFAULT '',
    outcome_at      timestamptz,
    CONSTRAINT replays_ended CHECK ((state = 'ended') = (outcome IS NOT NULL)),
    CONSTRAINT replays_once_a_batch UNIQUE (batch_id, dead_job_id)
) WITH (fillfactor = 70);

-- At most one active replay for a job, for a key, and for an entity.
CREATE UNIQUE INDEX replays_one_per_job ON redrive.replays (dead_job_id) WHERE state IN ('ready', 'released');
CREATE UNIQUE INDEX replays_one_per_key ON redrive.replays (environment, key_scope, idempotency_key)
    WHERE state IN ('ready', 'released') AND idempotency_key <> '';
CREATE UNIQUE INDEX replays_one_per_entity ON redrive.replays (environment, entity)
    WHERE state IN ('ready', 'released') AND entity <> '';
CREATE INDEX replays_ready ON redrive.replays (environment, job_type, due_at, id) WHERE state = 'ready';
CREATE INDEX replays_pending ON redrive.replays (environment, job_type, due_at, id) WHERE state = 'pending';
CREATE INDEX replays_pending_key ON redrive.replays (environment, key_scope, idempotency_key)
    WHERE state IN ('pending', 'ready') AND idempotency_key <> '';
CREATE INDEX replays_released ON redrive.replays (target_kind, released_at) WHERE state = 'released';
CREATE INDEX replays_deadline ON redrive.replays (deadline_at) WHERE state = 'released';
CREATE INDEX replays_job ON redrive.replays (dead_job_id, id);
CREATE INDEX replays_batch ON redrive.replays (batch_id, id);
CREATE INDEX replays_recent ON redrive.replays (outcome_at DESC, id DESC) WHERE outcome_at IS NOT NULL;

-- The row that a release locks first: one per environment and type.
CREATE TABLE redrive.release_buckets (
    environment  text NOT NULL,
    job_type     text NOT NULL,
    PRIMARY KEY (environment, job_type)
);

-- +goose StatementBegin
CREATE FUNCTION redrive.lock_key(p_environment text, p_scope text, p_key text) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT hashtextextended(p_environment || chr(31) || p_scope || chr(31) || p_key, 7310)
$$;
-- +goose StatementEnd

-- begin_effect answers begun (go ahead), done (it is in place already: don't
-- repeat it) or unknown (begun before, its end isn't known). Commit it before
-- the outside call.
-- +goose StatementBegin
CREATE FUNCTION redrive.begin_effect(environment text, scope text, key text) RETURNS text
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE found_state text;
BEGIN
    IF coalesce($1, '') = '' OR coalesce($2, '') = '' OR coalesce($3, '') = '' THEN
        RAISE EXCEPTION 'begin_effect needs an environment, a scope and a key that are not empty'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM pg_advisory_xact_lock(redrive.lock_key($1, $2, $3));
    INSERT INTO redrive.ledger AS l (environment, scope, key, state)
    VALUES ($1, $2, $3, 'begun')
    ON CONFLICT (environment, scope, key) DO UPDATE
        SET state = 'begun', begins = l.begins + 1, begun_at = now(), finished_at = NULL, result = '', effect_id = '', settled_by = ''
        WHERE l.state = 'failed'
    RETURNING state INTO found_state;
    IF found_state IS NOT NULL THEN
        RETURN 'begun';
    END IF;
    SELECT l.state INTO found_state FROM redrive.ledger l
    WHERE l.environment = $1 AND l.scope = $2 AND l.key = $3;
    RETURN CASE found_state WHEN 'done' THEN 'done' ELSE 'unknown' END;
END $$;
-- +goose StatementEnd

-- finish_effect writes the end of an effect: done with its result, or (with
-- outcome 'failed') that it certainly did not happen. What is done stays done.
-- +goose StatementBegin
CREATE FUNCTION redrive.finish_effect(environment text, scope text, key text, result json, outcome text DEFAULT 'done') RETURNS void
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE provider_id text := '';
BEGIN
    IF coalesce($1, '') = '' OR coalesce($2, '') = '' OR coalesce($3, '') = '' THEN
        RAISE EXCEPTION 'finish_effect needs an environment, a scope and a key that are not empty'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF $5 IS NULL OR $5 NOT IN ('done', 'failed') THEN
        RAISE EXCEPTION 'finish_effect: outcome is %, it must be done or failed', coalesce($5, 'null')
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    BEGIN
        IF json_typeof($4) = 'object' THEN
            provider_id := coalesce($4 ->> 'id', '');
        END IF;
    EXCEPTION WHEN untranslatable_character OR invalid_text_representation THEN
        provider_id := ''; -- a result that holds \u0000 is kept as text, unread
    END;
    PERFORM pg_advisory_xact_lock(redrive.lock_key($1, $2, $3));
    INSERT INTO redrive.ledger AS l (environment, scope, key, state, result, effect_id, finished_at)
    VALUES ($1, $2, $3, $5, coalesce($4::text, ''), provider_id, now())
    ON CONFLICT (environment, scope, key) DO UPDATE
        SET state = excluded.state, result = excluded.result, effect_id = excluded.effect_id, finished_at = now()
        WHERE l.state <> 'done';
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION redrive.effect_of(environment text, scope text, key text)
RETURNS TABLE (state text, result json, effect_id text, begun_at timestamptz, finished_at timestamptz)
LANGUAGE sql STABLE AS $$
    SELECT l.state, nullif(l.result, '')::json, l.effect_id, l.begun_at, l.finished_at
    FROM redrive.ledger l
    WHERE l.environment = $1 AND l.scope = $2 AND l.key = $3
$$;
-- +goose StatementEnd

-- When a key is done, replays of it that have not left and other open jobs of
-- it end as already done, in the transaction that says so. Lock order: key,
-- replays, dead jobs.
-- +goose StatementBegin
CREATE FUNCTION redrive.ledger_done() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    ended bigint[];
    closed bigint[];
    touched bigint[];
BEGIN
    WITH r AS (
        UPDATE redrive.replays
        SET state = 'ended', outcome = 'already_done', outcome_code = 'key_done', outcome_at = now(),
            outcome_detail = 'another job of this key did it first', effect_id = NEW.effect_id
        WHERE environment = NEW.environment AND key_scope = NEW.scope AND idempotency_key = NEW.key
          AND idempotency_key <> '' AND state IN ('pending', 'ready')
        RETURNING id, batch_id)
    SELECT coalesce(array_agg(id ORDER BY id), '{}'), coalesce(array_agg(DISTINCT batch_id), '{}')
    INTO ended, touched FROM r;
    UPDATE redrive.batches b
    SET state = 'done', finished_at = now()
    WHERE b.id = ANY (touched) AND b.state IN ('scheduled', 'running')
      AND NOT EXISTS (SELECT FROM redrive.replays r WHERE r.batch_id = b.id AND r.state <> 'ended');
    WITH j AS (
        UPDATE redrive.dead_jobs d
        SET status = 'resolved', effect = 'done', effect_id = NEW.effect_id,
            settled_reason = CASE WHEN NEW.settled_by <> '' THEN 'settled by hand: the effect happened'
                                  ELSE 'already done: the effect of this key is in the ledger' END,
            settled_ref = NEW.effect_id, settled_by = coalesce(nullif(NEW.settled_by, ''), 'redrive'),
            settled_at = now(), updated_at = now()
        WHERE d.environment = NEW.environment AND d.key_scope = NEW.scope AND d.idempotency_key = NEW.key
          AND d.idempotency_key <> '' AND d.status IN ('open', 'snoozed', 'replaying')
          AND NOT EXISTS (SELECT FROM redrive.replays r WHERE r.dead_job_id = d.id AND r.state = 'released')
        RETURNING d.id)
    SELECT coalesce(array_agg(id ORDER BY id), '{}') INTO closed FROM j;
    IF cardinality(ended) + cardinality(closed) > 0 THEN
        INSERT INTO redrive.audit_entries (body)
        SELECT json_build_object(
            'action', 'key.done',
            'actor', json_build_object('id', '', 'kind', 'system', 'name', 'redrive'),
            'at_us', (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
            'details', json_build_object('effect_id', NEW.effect_id, 'jobs', closed, 'replays', ended),
            'environment', NEW.environment,
            'object', json_build_object('id', NEW.scope || ':' || NEW.key, 'kind', 'key'),
            'reason', 'the effect of this key is done')::text;
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER ledger_done_insert AFTER INSERT ON redrive.ledger
    FOR EACH ROW WHEN (NEW.state = 'done') EXECUTE FUNCTION redrive.ledger_done();
CREATE TRIGGER ledger_done_update AFTER UPDATE ON redrive.ledger
    FOR EACH ROW WHEN (NEW.state = 'done' AND OLD.state <> 'done') EXECUTE FUNCTION redrive.ledger_done();

-- +goose Down
SELECT 1;
