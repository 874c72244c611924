package board

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq"
)

const (
	// reportCap is how many rows a breakdown of a batch reads; totals are exact
	// without it.
	reportCap = 10_000
	// maxFailures is how many kinds of failures a report lists.
	maxFailures = 20
)

// Conditions on one outcome are written as a range, and rows ordered by it: only
// the index on outcomes gives that order. Of an equation the planner thinks that
// a few rows of the batch's own index will do, and reads all that ended otherwise.

// Failure is how replays of a batch failed.
type Failure struct {
	Fingerprint string // of the new failure; empty: its source hasn't told of it yet
	Same        bool   // as the jobs had failed before
	Template    string // the folded message, redacted
	ErrorClass  string
	N           int
	SampleJob   int64
}

// Failures reads how replays of a batch failed, the most frequent first. More
// says that there are others: only the first 10,000 failures are looked at, and
// 20 kinds of them listed. A death that isn't linked to its replay yet is the
// next generation of the same job.
func Failures(ctx context.Context, db dlq.DB, batch int64) (list []Failure, more bool, err error) {
	type row struct {
		Failure
		Looked, Kinds int
	}
	found, err := collect[row](ctx, db, "failures", `
		SELECT f.fingerprint, f.same, coalesce(g.template, '') AS template, coalesce(g.error_class, '') AS error_class,
		       f.n, f.sample_job, f.looked, f.kinds
		FROM (SELECT fingerprint, fingerprint <> '' AND fingerprint = was AS same, count(*) AS n, min(dead_job_id) AS sample_job,
		             sum(count(*)) OVER ()::bigint AS looked, count(*) OVER () AS kinds
		      FROM (SELECT coalesce(d.fingerprint, r.new_fingerprint) AS fingerprint, r.fingerprint AS was, r.dead_job_id
		            FROM (SELECT new_fingerprint, fingerprint, dead_job_id, generation, next_generation
		                  FROM redrive.replays
		                  WHERE batch_id = @batch AND outcome >= 'failed' AND outcome <= 'failed'
		                  ORDER BY outcome, id
		                  LIMIT @cap) r
		            LEFT JOIN LATERAL (
			            SELECT fingerprint
			            FROM redrive.deaths
			            WHERE dead_job_id = r.dead_job_id AND generation = r.generation + 1
			            LIMIT 1) d ON r.next_generation = 0) x
		      GROUP BY 1, 2) f
		LEFT JOIN redrive.groups g ON g.fingerprint = f.fingerprint
		ORDER BY f.n DESC, f.fingerprint
		LIMIT @limit`, pgx.NamedArgs{"batch": batch, "cap": reportCap, "limit": maxFailures})
	for _, r := range found {
		list = append(list, r.Failure)
		more = more || r.Looked >= reportCap || r.Kinds > maxFailures
	}
	return list, more, err
}

// Reason is why replays of a batch ended as they did.
type Reason struct {
	Outcome string
	Code    string
	Detail  string // of one of them, redacted
	N       int
}

// Reasons reads why replays were skipped, unconfirmed, cancelled or found
// already done. More says that only the first 10,000 of an outcome were looked at.
func Reasons(ctx context.Context, db dlq.DB, batch int64) (list []Reason, more bool, err error) {
	list, err = collect[Reason](ctx, db, "reasons", `
		SELECT o.outcome, x.outcome_code AS code, min(x.outcome_detail) AS detail, count(*) AS n
		FROM unnest(ARRAY['already_done', 'skipped', 'unconfirmed', 'cancelled']) WITH ORDINALITY o(outcome, place)
		CROSS JOIN LATERAL (
			SELECT outcome_code, outcome_detail
			FROM redrive.replays
			WHERE batch_id = @batch AND outcome >= o.outcome AND outcome <= o.outcome
			ORDER BY outcome, id
			LIMIT @cap) x
		GROUP BY o.place, o.outcome, x.outcome_code
		ORDER BY o.place, n DESC`, pgx.NamedArgs{"batch": batch, "cap": reportCap})
	of := map[string]int{}
	for _, r := range list {
		of[r.Outcome] += r.N
		more = more || of[r.Outcome] >= reportCap
	}
	return list, more, err
}

// speedWindow is how far back the speed of a batch is looked at, unless so few
// leave in that time that one more or less looks like another speed.
const (
	speedWindow = 10 * time.Second
	slowWindow  = time.Minute
	slowRate    = 60 // a minute
)

// Speed is how many replays of a batch, which may leave at a rate a minute, left
// a second: over the last 10 seconds, or the last minute of a slow one.
func Speed(ctx context.Context, db dlq.DB, batch int64, rate int, now time.Time) (perSecond float64, err error) {
	window := speedWindow
	if rate < slowRate {
		window = slowWindow
	}
	err = db.QueryRow(ctx, `
		SELECT count(*) / $3::float8
		FROM redrive.replays
		WHERE batch_id = $1 AND released_at > $2`, batch, now.Add(-window), window.Seconds()).Scan(&perSecond)
	if err != nil {
		return 0, fmt.Errorf("board: speed: %w", err)
	}
	return perSecond, nil
}
