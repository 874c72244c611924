-- +goose Up
-- A batch moves planning → planned → (waiting →) scheduled → running ⇄ paused
-- → done; cancelling → cancelled from anywhere before done. A single replay is
-- a batch of one that starts as running or scheduled.
ALTER TABLE redrive.batches
    DROP CONSTRAINT batches_state_check,
    ADD CONSTRAINT batches_state CHECK (state IN
        ('planning', 'planned', 'waiting', 'scheduled', 'running', 'paused', 'cancelling', 'done', 'cancelled')),
    -- the selection, frozen: filter (canonical text) or selected ids
    ADD COLUMN selected bigint[],
    ADD COLUMN in_scope boolean NOT NULL DEFAULT true,       -- the planner may plan this type here
    ADD COLUMN created_by_id bigint NOT NULL DEFAULT 0,
    ADD COLUMN parent_batch bigint REFERENCES redrive.batches, -- whose failed replays this one plans again
    -- planning; a rejudge begins it anew with the same members
    ADD COLUMN plan_cursor bigint NOT NULL DEFAULT 0,        -- last dead job frozen (or judged again)
    ADD COLUMN plan_last bigint NOT NULL DEFAULT 0,          -- the highest dead job id at the cut-off
    ADD COLUMN plan_revision integer NOT NULL DEFAULT 0,     -- raised by each completed plan
    ADD COLUMN planned_at timestamptz,
    ADD COLUMN plan_problem text NOT NULL DEFAULT '',        -- why planning can't go on, for people
    ADD COLUMN verdicts jsonb NOT NULL DEFAULT '{}',         -- {"eligible": 28, "key_done": 3} of the completed plan
    -- where it goes, as the catalogue said when it was planned
    ADD COLUMN target_kind text NOT NULL DEFAULT '',
    ADD COLUMN target jsonb NOT NULL DEFAULT '{}',
    ADD COLUMN destination text NOT NULL DEFAULT '',
    -- the review
    ADD COLUMN review_hash text NOT NULL DEFAULT '',         -- over plan hash, settings and their revision; '' = not reviewed
    ADD COLUMN review_revision integer NOT NULL DEFAULT 0,
    ADD COLUMN reviewed_by text NOT NULL DEFAULT '',
    ADD COLUMN reviewed_at timestamptz,
    ADD COLUMN start_after_s integer NOT NULL DEFAULT 300,   -- seconds after the last confirmation …
    ADD COLUMN start_at timestamptz,                         -- … unless a time was chosen
    ADD COLUMN rate_per_minute integer NOT NULL DEFAULT 0,   -- 0 = the type's limit
    ADD COLUMN canary integer NOT NULL DEFAULT 0,            -- 0 = none
    ADD COLUMN accept_repeat boolean NOT NULL DEFAULT false, -- chosen explicitly for a type that isn't idempotent
    -- confirmation and approval
    ADD COLUMN confirmed_by_id bigint NOT NULL DEFAULT 0,
    ADD COLUMN needs_approval text NOT NULL DEFAULT '',      -- why a second person is asked; '' = not
    ADD COLUMN approve_until timestamptz,
    ADD COLUMN approved_by text NOT NULL DEFAULT '',
    ADD COLUMN approved_by_id bigint NOT NULL DEFAULT 0,
    ADD COLUMN approved_at timestamptz,
    -- the run
    ADD COLUMN started_at timestamptz,                       -- its first release was allowed
    ADD COLUMN activated_at timestamptz,                     -- all eligible jobs are taken: nothing of the plan is still to come
    ADD COLUMN pause_kind text NOT NULL DEFAULT '' CHECK (pause_kind IN ('', 'person', 'failures', 'catalogue')),
    ADD COLUMN pause_why text NOT NULL DEFAULT '',
    ADD COLUMN paused_by text NOT NULL DEFAULT '',
    ADD COLUMN paused_at timestamptz,
    ADD COLUMN canary_passed_at timestamptz,
    ADD COLUMN cancelled_by text NOT NULL DEFAULT '',
    ADD COLUMN end_reason text NOT NULL DEFAULT '';          -- why it was cancelled or ran out
DROP INDEX redrive.batches_unfinished;
CREATE INDEX batches_unfinished ON redrive.batches (state, id)
    WHERE state IN ('planning', 'waiting', 'scheduled', 'running', 'paused', 'cancelling');
CREATE INDEX batches_confirmed ON redrive.batches (confirmed_by_id, environment, job_type, confirmed_at)
    WHERE confirmed_at IS NOT NULL; -- what one person released in 24 hours
CREATE INDEX batches_parent ON redrive.batches (parent_batch) WHERE parent_batch IS NOT NULL;

ALTER TABLE redrive.replays
    DROP COLUMN target,
    ADD COLUMN destination text NOT NULL DEFAULT '',
    ADD COLUMN order_at timestamptz NOT NULL DEFAULT now(),  -- of its entity the oldest leaves first, then by id
    ADD COLUMN fingerprint text NOT NULL DEFAULT '',         -- of the failure that it follows
    ADD COLUMN behind boolean NOT NULL DEFAULT false,        -- pending behind another of its entity, key or job
    ADD COLUMN wave smallint NOT NULL DEFAULT 1,             -- 0: of the canary, which leaves first
    ADD COLUMN canary_rank integer,                          -- 1 = the first choice for a canary
    ADD COLUMN new_fingerprint text NOT NULL DEFAULT '',     -- of the failure that it made
    ADD COLUMN new_category text NOT NULL DEFAULT '',        -- its category; what the breaker reads
    ADD COLUMN next_generation integer NOT NULL DEFAULT 0;   -- the generation that its death made; 0 = none known
-- The claim: the next of a tenant, tenant after tenant. A paused batch is never looked at.
CREATE INDEX replays_lane ON redrive.replays (batch_id, wave, tenant, id) WHERE state = 'ready';
CREATE INDEX replays_arm ON redrive.replays (batch_id, wave, tenant, id) WHERE state = 'pending' AND NOT behind;
CREATE INDEX replays_in_flight ON redrive.replays (environment, destination, id) WHERE state = 'released';
CREATE INDEX replays_judged ON redrive.replays (environment, destination, outcome_at DESC)
    WHERE outcome IN ('succeeded', 'already_done', 'failed', 'unconfirmed'); -- what the breaker reads
CREATE INDEX replays_verdict ON redrive.replays (batch_id, verdict, id);
CREATE INDEX replays_canary ON redrive.replays (batch_id, canary_rank) WHERE canary_rank IS NOT NULL;
CREATE INDEX replays_batch_entity ON redrive.replays (batch_id, entity, order_at, id) WHERE entity <> '';
DROP INDEX redrive.replays_ready;
DROP INDEX redrive.replays_pending;
DROP INDEX redrive.replays_unended;
CREATE INDEX replays_unended ON redrive.replays (batch_id) WHERE state IN ('pending', 'ready', 'released');
DROP INDEX redrive.replays_pending_entity;
CREATE INDEX replays_pending_entity ON redrive.replays (environment, entity, order_at, id)
    WHERE state = 'pending' AND entity <> '';

-- What the release loop knows of a batch that has something to release.
CREATE TABLE redrive.runs (
    batch_id        bigint PRIMARY KEY REFERENCES redrive.batches,
    environment     text NOT NULL,
    job_type        text NOT NULL,
    due_at          timestamptz NOT NULL,
    live            boolean NOT NULL DEFAULT true,           -- false while paused or being cancelled
    wave            smallint NOT NULL DEFAULT 1,             -- whose items may leave: 0 the canary's, 1 the rest's
    rate_per_minute integer NOT NULL DEFAULT 0,              -- 0 = the type's limit
    tokens          double precision NOT NULL DEFAULT 0,
    refilled_at     timestamptz,
    served_at       timestamptz NOT NULL DEFAULT '-infinity',
    tenant_cursor   text NOT NULL DEFAULT '',                -- the lane served last
    arm_cursor      text NOT NULL DEFAULT '',
    watch_from      timestamptz                              -- outcomes of replays released since count for canary and stop
) WITH (fillfactor = 50);
CREATE INDEX runs_live ON redrive.runs (environment, job_type, served_at, batch_id) WHERE live;

-- Token buckets: the type's, and one a tenant where the type caps tenants.
ALTER TABLE redrive.release_buckets
    ADD COLUMN tokens double precision,                      -- null: never used, so full
    ADD COLUMN refilled_at timestamptz;
CREATE TABLE redrive.tenant_buckets (
    environment  text NOT NULL,
    job_type     text NOT NULL,
    tenant       text NOT NULL,
    tokens       double precision NOT NULL,
    refilled_at  timestamptz NOT NULL,
    PRIMARY KEY (environment, job_type, tenant)
) WITH (fillfactor = 50);

-- The endpoint behind targets: its breaker, shared by all processes.
CREATE TABLE redrive.destinations (
    environment  text NOT NULL,
    name         text NOT NULL,                              -- jobtype.Target.Destination()
    breaker      text NOT NULL DEFAULT 'closed' CHECK (breaker IN ('closed', 'open', 'half_open')),
    failing_since timestamptz,                               -- of the failures that opened it
    opened_at    timestamptz,
    retry_at     timestamptz,                                -- when the next few may try
    openings     integer NOT NULL DEFAULT 0,                 -- in a row; the pause grows with them
    why          text NOT NULL DEFAULT '',
    changed_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (environment, name)
);

-- "Hold all replays": of an environment, of a type in it, or of a destination.
CREATE TABLE redrive.holds (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    environment    text NOT NULL,
    job_type       text NOT NULL DEFAULT '',
    destination    text NOT NULL DEFAULT '',
    reason         text NOT NULL DEFAULT '',                 -- may follow later
    placed_by      text NOT NULL,
    placed_at      timestamptz NOT NULL DEFAULT now(),
    lifted_by      text NOT NULL DEFAULT '',
    lifted_at      timestamptz,
    lift_reason    text NOT NULL DEFAULT '',
    CONSTRAINT holds_one_kind CHECK (job_type = '' OR destination = '')
);
CREATE UNIQUE INDEX holds_once ON redrive.holds (environment, job_type, destination) WHERE lifted_at IS NULL;

-- A page's right to confirm once: bound to review, person and one use.
CREATE TABLE redrive.confirmations (
    nonce_sha256 bytea PRIMARY KEY,
    batch_id     bigint NOT NULL REFERENCES redrive.batches,
    review_hash  text NOT NULL,
    user_id      bigint NOT NULL,
    made_at      timestamptz NOT NULL DEFAULT now(),
    used_at      timestamptz
);

-- A fix declared for a whole group or batch lifts invalid input and auth of
-- the jobs that died before it; a later death is a new failure.
CREATE TABLE redrive.fixes (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    environment  text NOT NULL,
    job_type     text NOT NULL,
    fingerprint  text NOT NULL DEFAULT '',
    batch_id     bigint REFERENCES redrive.batches,
    kind         text NOT NULL CHECK (kind IN ('worker_version', 'ticket', 'record')),
    ref          text NOT NULL,
    reason       text NOT NULL,
    declared_by  text NOT NULL,
    declared_at  timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT fixes_of_one CHECK ((fingerprint = '') <> (batch_id IS NULL))
);
CREATE INDEX fixes_group ON redrive.fixes (environment, fingerprint, declared_at DESC) WHERE fingerprint <> '';
CREATE INDEX fixes_batch ON redrive.fixes (batch_id) WHERE batch_id IS NOT NULL;

-- The first final outcome wins; what came later is kept.
CREATE TABLE redrive.late_outcomes (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    replay_id    bigint NOT NULL,
    at           timestamptz NOT NULL,
    outcome      text NOT NULL,
    code         text NOT NULL DEFAULT '',
    detail       text NOT NULL DEFAULT '',                   -- redacted
    effect_id    text NOT NULL DEFAULT ''
);
CREATE INDEX late_outcomes_replay ON redrive.late_outcomes (replay_id, id);

-- How many replays of a batch stand where: base plus deltas, always exact. A
-- tally is plan.VERDICT before the start and for what is left out, then
-- pending, ready, released, and at last the outcome.
CREATE TABLE redrive.batch_counters (
    batch_id     bigint NOT NULL,
    tally        text NOT NULL,
    n            bigint NOT NULL,
    PRIMARY KEY (batch_id, tally)
) WITH (fillfactor = 50);
CREATE TABLE redrive.batch_deltas (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    batch_id     bigint NOT NULL,
    tally        text NOT NULL,
    n            bigint NOT NULL
);
CREATE INDEX batch_deltas_batch ON redrive.batch_deltas (batch_id);
CREATE VIEW redrive.batch_tallies AS
    SELECT batch_id, tally, sum(n)::bigint AS n
    FROM (SELECT batch_id, tally, n FROM redrive.batch_counters
          UNION ALL
          SELECT batch_id, tally, n FROM redrive.batch_deltas) c
    GROUP BY batch_id, tally
    HAVING sum(n) <> 0;

-- +goose StatementBegin
CREATE FUNCTION redrive.tally_of(state text, outcome text, verdict text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE state WHEN 'planned' THEN 'plan.' || verdict WHEN 'ended' THEN outcome ELSE state END
$$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE FUNCTION redrive.replays_count_insert() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO redrive.batch_deltas (batch_id, tally, n)
    SELECT batch_id, redrive.tally_of(state, outcome, verdict), count(*)
    FROM added
    GROUP BY 1, 2;
    RETURN NULL;
END $$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE FUNCTION redrive.replays_count_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO redrive.batch_deltas (batch_id, tally, n)
    SELECT batch_id, tally, sum(n)
    FROM (SELECT batch_id, redrive.tally_of(state, outcome, verdict) AS tally, 1 AS n FROM added
          UNION ALL
          SELECT batch_id, redrive.tally_of(state, outcome, verdict), -1 FROM removed) d
    GROUP BY batch_id, tally
    HAVING sum(n) <> 0;
    RETURN NULL;
END $$;
-- +goose StatementEnd
INSERT INTO redrive.batch_counters (batch_id, tally, n)
SELECT batch_id, redrive.tally_of(state, outcome, verdict), count(*) FROM redrive.replays GROUP BY 1, 2;
CREATE TRIGGER replays_count_insert AFTER INSERT ON redrive.replays
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION redrive.replays_count_insert();
CREATE TRIGGER replays_count_update AFTER UPDATE ON redrive.replays
    REFERENCING OLD TABLE AS removed NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION redrive.replays_count_update();

-- The catalogue as it was: every version that was in force, with its files.
CREATE TABLE redrive.catalogue_versions (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    sha256       bytea NOT NULL,
    files        jsonb NOT NULL,                             -- path → text; the catalogue itself and its schemas
    main         text NOT NULL,                              -- the catalogue's path among them
    loaded_at    timestamptz NOT NULL DEFAULT now(),
    loaded_by    text NOT NULL DEFAULT ''
);

-- "Proven": one job replayed twice against the ledger had its effect once.
CREATE TABLE redrive.type_proofs (
    job_type     text NOT NULL,
    environment  text NOT NULL,
    proven_at    timestamptz NOT NULL DEFAULT now(),
    proven_by    text NOT NULL,
    dead_job_id  bigint NOT NULL,
    replays      bigint[] NOT NULL,
    catalogue_version bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (job_type, environment)
);

-- A batch ends when nothing of it waits or is out, and nothing of its plan is
-- still to be taken.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION redrive.ledger_done() RETURNS trigger LANGUAGE plpgsql AS $$
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
    WHERE b.id = ANY (touched) AND b.kind = 'single' AND b.state IN ('scheduled', 'running')
      AND NOT EXISTS (SELECT FROM redrive.replays r WHERE r.batch_id = b.id AND r.state IN ('pending', 'ready', 'released'));
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

-- +goose Down
SELECT 1;
