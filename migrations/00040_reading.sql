-- +goose Up
-- The list's own order, for the page without a filter and for filters that
-- most rows pass; then the fields that had no index beginning with them.
CREATE INDEX dead_jobs_died ON redrive.dead_jobs (died_at DESC, id DESC);
CREATE INDEX dead_jobs_source_died ON redrive.dead_jobs (source, died_at DESC, id DESC);
CREATE INDEX dead_jobs_tenant_died ON redrive.dead_jobs (tenant, died_at DESC, id DESC) WHERE tenant <> '';
CREATE INDEX dead_jobs_entity_alone ON redrive.dead_jobs (entity, died_at DESC, id DESC) WHERE entity <> '';

-- How many effects wait for somebody to look them up, for the overview.
CREATE INDEX dead_jobs_effect_unknown ON redrive.dead_jobs (environment, job_type)
    WHERE effect = 'unknown' AND status = 'open';

-- "What happened to this key, user or batch?", and one environment's log.
CREATE INDEX audit_entries_object ON redrive.audit_entries (object_kind, object_id, at DESC, id DESC);
CREATE INDEX audit_entries_environment ON redrive.audit_entries (environment, at DESC, id DESC);
-- +goose Down
DROP INDEX redrive.audit_entries_environment;
DROP INDEX redrive.audit_entries_object;
DROP INDEX redrive.dead_jobs_effect_unknown;
DROP INDEX redrive.dead_jobs_entity_alone;
DROP INDEX redrive.dead_jobs_tenant_died;
DROP INDEX redrive.dead_jobs_source_died;
DROP INDEX redrive.dead_jobs_died;
