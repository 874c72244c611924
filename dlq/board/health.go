package board

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/rbac"
)

const (
	// lately is how far back the pace of a type is looked at, and outcomes how
	// far back those of a destination.
	lately       = time.Minute
	outcomesBack = 10 * time.Minute
)

// Health is how replays fare now.
type Health struct {
	Types        []TypeHealth        // that ever had a replay ordered, by environment and name
	Destinations []DestinationHealth // that replays ever went to, by environment and name
	Holds        []Held              // in force, oldest first
}

// TypeHealth is how the replays of a type fare in an environment.
type TypeHealth struct {
	Environment string
	JobType     string
	Tokens      *float64   // in its bucket as of RefilledAt; nil: never used, so it is full
	RefilledAt  *time.Time // by the database's clock
	PerMinute   int        // how many left in the last minute
	Waiting     int        // ordered and still to leave
	Out         int        // sent, outcome awaited
	Batches     int        // ordered, not ended
}

// TokensNow is how many replays the bucket lets leave at once now, under the
// type's limit.
func (t TypeHealth) TokensNow(limit jobtype.Rate, now time.Time) float64 {
	if t.Tokens == nil || t.RefilledAt == nil {
		return float64(limit.Burst)
	}
	since := max(0, now.Sub(*t.RefilledAt).Minutes())
	return min(float64(limit.Burst), *t.Tokens+since*float64(limit.PerMinute))
}

// DestinationHealth is how an endpoint behind targets fares. Counts of rows stop
// at 10,000.
type DestinationHealth struct {
	Environment string
	Name        string
	Destination
	Out         int        // sent, outcome awaited
	Undelivered int        // of them those that it doesn't hold yet
	Succeeded   int        // in 10 minutes, those found already done too
	Failed      int        // in 10 minutes
	Unconfirmed int        // in 10 minutes: no outcome came
	LastSentAt  *time.Time // of those that are out or ended in 10 minutes
}

// Held is a hold in force on an environment, a type in it or a destination.
type Held struct {
	ID          int64
	Environment string
	JobType     string // empty: not limited to a type
	Destination string // empty: not limited to a destination
	Reason      string // empty: none was given yet
	PlacedBy    string
	PlacedAt    time.Time
}

// Stops reports whether the hold stops replays of a type to a destination.
func (h Held) Stops(environment, jobType, destination string) bool {
	return h.Environment == environment && (h.JobType == "" || h.JobType == jobType) &&
		(h.Destination == "" || h.Destination == destination)
}

// ReadHealth reads how replays fare in scope; an empty environment means all.
// Each part is bounded by an index, however many replays there are.
func ReadHealth(ctx context.Context, db dlq.DB, p *rbac.Principal, environment string, now time.Time) (h Health, err error) {
	if h.Types, err = typesHealth(ctx, db, p, environment, now); err != nil {
		return h, err
	}
	args := pgx.NamedArgs{"only": environments(p), "environment": environment, "since": now.Add(-outcomesBack), "cap": reportCap}
	h.Destinations, err = collect[DestinationHealth](ctx, db, "health of destinations", `
		SELECT d.environment, d.name, d.breaker, d.failing_since, d.retry_at, d.why,
		       o.out, o.undelivered, j.succeeded, j.failed, j.unconfirmed, greatest(o.sent_at, j.sent_at) AS last_sent_at
		FROM redrive.destinations d
		CROSS JOIN LATERAL (
			SELECT count(*) AS out, count(*) FILTER (WHERE delivered_at IS NULL) AS undelivered, max(released_at) AS sent_at
			FROM (SELECT delivered_at, released_at
			      FROM redrive.replays
			      WHERE environment = d.environment AND destination = d.name AND state = 'released'
			      LIMIT @cap) r) o
		CROSS JOIN LATERAL (
			SELECT count(*) FILTER (WHERE outcome IN ('succeeded', 'already_done')) AS succeeded,
			       count(*) FILTER (WHERE outcome = 'failed') AS failed,
			       count(*) FILTER (WHERE outcome = 'unconfirmed') AS unconfirmed, max(released_at) AS sent_at
			FROM (`+judgedSQL+`
			        AND outcome_at > @since
			      ORDER BY outcome_at DESC
			      LIMIT @cap) r) j
		WHERE (@only::text[] IS NULL OR d.environment = ANY(@only))
		  AND (@environment = '' OR d.environment = @environment)
		ORDER BY d.environment, d.name`, args)
	if err != nil {
		return h, err
	}
	h.Holds, err = collect[Held](ctx, db, "holds", `
		SELECT id, environment, job_type, destination, reason, placed_by, placed_at
		FROM redrive.holds
		WHERE lifted_at IS NULL
		  AND (@only::text[] IS NULL OR environment = ANY(@only))
		  AND (@environment = '' OR environment = @environment)
		ORDER BY id`, args)
	return h, err
}

// judgedSQL reads the outcomes at destination d, along the index that the
// breaker uses; a condition on outcome_at, order and limit follow.
const judgedSQL = `
	SELECT environment, job_type, outcome, outcome_at, released_at
	FROM redrive.replays
	WHERE environment = d.environment AND destination = d.name
	  AND outcome IN ('succeeded', 'already_done', 'failed', 'unconfirmed')`
