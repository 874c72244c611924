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
// says that only the first 10,000 were looked at.
func Failures(ctx context.Context, db dlq.DB, batch int64) (list []Failure, more bool, err error) {
	list, err = collect[Failure](ctx, db, "failures", `
		SELECT f.new_fingerprint AS fingerprint, f.same, coalesce(g.template, '') AS template, coalesce(g.error_class, '') AS error_class,
		       f.n, f.sample_job
		FROM (SELECT new_fingerprint, new_fingerprint = fingerprint AS same, count(*) AS n, min(dead_job_id) AS sample_job
		      FROM (SELECT new_fingerprint, fingerprint, dead_job_id
		            FROM redrive.replays
		            WHERE batch_id = @batch AND outcome = 'failed'
		            ORDER BY id
		            LIMIT @cap) x
		      GROUP BY 1, 2) f
		LEFT JOIN redrive.groups g ON g.fingerprint = f.new_fingerprint
		ORDER BY f.n DESC, f.new_fingerprint
		LIMIT @limit`, pgx.NamedArgs{"batch": batch, "cap": reportCap, "limit": maxFailures})
	n := 0
	for _, f := range list {
		n += f.N
	}
	return list, n >= reportCap, err
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
			WHERE batch_id = @batch AND outcome = o.outcome
			ORDER BY id
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

// speedWindow is how far back the speed of a batch is looked at.
const speedWindow = 10 * time.Second

// Speed is how many replays of a batch left a second, over the last 10 seconds.
func Speed(ctx context.Context, db dlq.DB, batch int64, now time.Time) (perSecond float64, err error) {
	err = db.QueryRow(ctx, `
		SELECT count(*) / $3::float8
		FROM redrive.replays
		WHERE batch_id = $1 AND released_at > $2`, batch, now.Add(-speedWindow), speedWindow.Seconds()).Scan(&perSecond)
	if err != nil {
		return 0, fmt.Errorf("board: speed: %w", err)
	}
	return perSecond, nil
}
