package board

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/rbac"
)

// Flow is what replays of a type did in an environment lately.
type Flow struct {
	Environment string
	JobType     string
	InFlight    int        // sent, outcome awaited
	Succeeded   int        // in 24 hours, those found already done too
	Failed      int        // in 24 hours
	Unconfirmed int        // in 24 hours: no outcome came
	LastSentAt  *time.Time // nil: not within 30 days
	More        bool       // there were more: only the last 10,000 of their destination are counted
}

// Flows reads what replays did, by environment and type: of each destination
// what is out and its last outcomes, at most 10,000 each, along their indexes.
func Flows(ctx context.Context, db dlq.DB, p *rbac.Principal, environment string, now time.Time) ([]Flow, error) {
	where, args, err := scoped(p, "r", environment, pgx.NamedArgs{
		"day": now.Add(-24 * time.Hour), "month": now.Add(-30 * 24 * time.Hour), "cap": MaxCounted})
	if err != nil {
		return nil, err
	}
	return collect[Flow](ctx, db, "flows", `
		SELECT r.environment, r.job_type,
		       count(*) FILTER (WHERE r.outcome IS NULL) AS in_flight,
		       count(*) FILTER (WHERE r.outcome IN ('succeeded', 'already_done') AND r.outcome_at > @day) AS succeeded,
		       count(*) FILTER (WHERE r.outcome = 'failed' AND r.outcome_at > @day) AS failed,
		       count(*) FILTER (WHERE r.outcome = 'unconfirmed' AND r.outcome_at > @day) AS unconfirmed,
		       max(r.released_at) AS last_sent_at, bool_or(r.full) AS more
		FROM redrive.destinations d
		CROSS JOIN LATERAL (
			SELECT environment, job_type, outcome, outcome_at, released_at, count(*) OVER () >= @cap AS full
			FROM (SELECT environment, job_type, outcome, outcome_at, released_at
			      FROM redrive.replays
			      WHERE environment = d.environment AND destination = d.name AND state = 'released'
			      LIMIT @cap) o
			UNION ALL
			SELECT environment, job_type, outcome, outcome_at, released_at, count(*) OVER () >= @cap AS full
			FROM (`+judgedSQL+`
			        AND outcome_at > @month
			      ORDER BY outcome_at DESC
			      LIMIT @cap) j) r
		WHERE `+where+`
		GROUP BY r.environment, r.job_type`, args)
}

// Source is a place that dead jobs came from.
type Source struct {
	Environment string
	Name        string
	Kind        string // river, http, sql, go; empty: only its jobs are known
	LastSeenAt  *time.Time
	LastError   string // redacted; empty: healthy
	LastErrorAt *time.Time
	Trigger     bool // deaths are also told by a trigger
	Jobs        int  // dead jobs from it, at most MaxCounted
}

// MaxCounted is where counting the jobs of a source stops.
const MaxCounted = 10_000

// Sources reads the sources in scope: those that are registered, and those
// that only jobs name. The names are walked along an index, one step a source.
func Sources(ctx context.Context, db dlq.DB, p *rbac.Principal, environment string) ([]Source, error) {
	if err := p.Require("", "", rbac.Read); err != nil {
		return nil, err
	}
	only := environments(p)
	return collect[Source](ctx, db, "sources", `
		WITH RECURSIVE seen AS (
			(SELECT environment, source
			 FROM redrive.dead_jobs
			 ORDER BY environment, source
			 LIMIT 1)
			UNION ALL
			SELECT n.environment, n.source
			FROM seen s
			CROSS JOIN LATERAL (
				SELECT d.environment, d.source
				FROM redrive.dead_jobs d
				WHERE (d.environment, d.source) > (s.environment, s.source)
				ORDER BY d.environment, d.source
				LIMIT 1) n
		)
		SELECT environment, name, coalesce(s.kind, '') AS kind, s.last_seen_at, coalesce(s.last_error, '') AS last_error,
		       s.last_error_at,
		       EXISTS (SELECT
		               FROM pg_trigger t
		               WHERE t.tgfoid = 'redrive.river_death()'::regprocedure
		                 AND split_part(encode(t.tgargs, 'escape'), '\000', 1) = encode(convert_to(environment, 'UTF8'), 'escape')
		                 AND split_part(encode(t.tgargs, 'escape'), '\000', 2) = encode(convert_to(name, 'UTF8'), 'escape')) AS trigger,
		       (SELECT count(*)
		        FROM (SELECT
		              FROM redrive.dead_jobs d
		              WHERE d.environment = k.environment AND d.source = k.name
		              LIMIT @most) c) AS jobs
		FROM (SELECT environment, source AS name FROM seen
		      UNION
		      SELECT environment, name FROM redrive.sources) k
		LEFT JOIN redrive.sources s USING (environment, name)
		WHERE (@only::text[] IS NULL OR environment = ANY(@only))
		  AND (@environment = '' OR environment = @environment)
		ORDER BY environment, name`, pgx.NamedArgs{"only": only, "environment": environment, "most": MaxCounted})
}

// Quarantined is a capture that could not be read.
type Quarantined struct {
	ID          int64
	Door        string // sql, http, river or go
	Environment string
	Source      string
	Error       string // what was wrong and where, redacted
	Size        int64  // bytes as received
	ReceivedAt  time.Time
}

// Quarantine reads the newest quarantined captures in scope and how many there
// are. Those without an environment are shown to people without a limit.
func Quarantine(ctx context.Context, db dlq.DB, p *rbac.Principal, environment string) ([]Quarantined, int, error) {
	if err := p.Require("", "", rbac.Read); err != nil {
		return nil, 0, err
	}
	args := pgx.NamedArgs{"only": environments(p), "environment": environment, "limit": pageSize}
	const where = `
		WHERE (@only::text[] IS NULL OR environment = ANY(@only))
		  AND (@environment = '' OR environment IN (@environment, ''))`
	rows, err := collect[Quarantined](ctx, db, "quarantine", `
		SELECT id, door, environment, source, error, octet_length(raw) AS size, received_at
		FROM redrive.quarantine`+where+`
		ORDER BY received_at DESC, id DESC
		LIMIT @limit`, args)
	if err != nil {
		return nil, 0, err
	}
	type total struct{ N int }
	n, err := collect[total](ctx, db, "quarantine count", `SELECT count(*) AS n FROM redrive.quarantine`+where, args)
	if err != nil {
		return nil, 0, err
	}
	return rows, n[0].N, nil
}
