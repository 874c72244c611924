package board

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
)

// batchCursor marks the cursors of the list of batches, newest first.
const batchCursor = 'b'

// Batch is a set of replays of one environment and type.
type Batch struct {
	ID          int64
	Environment string
	JobType     string
	Kind        string // single or batch
	State       string
	Reason      string
	PlanHash    string
	Planned     int
	DueAt       *time.Time // nil: at once
	CreatedBy   string
	CreatedAt   time.Time
	ConfirmedBy string
	FinishedAt  *time.Time
	Ended       int
	Failed      int
	Outcome     string // of a single replay; empty: not ended, or more than one
}

// BatchPage is one page of batches.
type BatchPage struct {
	Rows       []Batch
	Next, Prev string // cursors; empty: there is none
}

// batchSQL reads batches with how far they are.
const batchSQL = `
	SELECT b.id, b.environment, b.job_type, b.kind, b.state, b.reason, b.plan_hash, b.planned, b.due_at,
	       b.created_by, b.created_at, b.confirmed_by, b.finished_at, r.ended, r.failed,
	       CASE WHEN b.kind = 'single' THEN coalesce(r.outcome, '') ELSE '' END AS outcome
	FROM redrive.batches b
	CROSS JOIN LATERAL (
		SELECT count(*) FILTER (WHERE i.state = 'ended') AS ended,
		       count(*) FILTER (WHERE i.outcome = 'failed') AS failed,
		       max(i.outcome) AS outcome
		FROM redrive.replays i
		WHERE i.batch_id = b.id) r
	WHERE `

// Batches reads one page of batches, newest first. Errors: Invalid (cursor),
// Forbidden.
func Batches(ctx context.Context, db dlq.DB, p *rbac.Principal, environment, at string) (BatchPage, error) {
	where, args, err := scoped(p, "b", environment, pgx.NamedArgs{"limit": pageSize + 1})
	if err != nil {
		return BatchPage{}, err
	}
	place, err := readPlace(at, batchCursor, environment)
	if err != nil {
		return BatchPage{}, err
	}
	more, order := place.condition("b.created_at", "b.id", args)
	found, err := collect[Batch](ctx, db, "batches", batchSQL+where+`
		  AND `+more+`
		ORDER BY b.created_at `+order+`, b.id `+order+`
		LIMIT @limit`, args)
	if err != nil {
		return BatchPage{}, err
	}
	var page BatchPage
	page.Rows, page.Next, page.Prev = turn(place, found, func(b Batch) (time.Time, int64) { return b.CreatedAt, b.ID })
	return page, nil
}

// BatchOf reads one batch. Errors: NotFound, also outside the scope.
func BatchOf(ctx context.Context, db dlq.DB, p *rbac.Principal, id int64) (Batch, error) {
	where, args, err := scoped(p, "b", "", pgx.NamedArgs{"id": id})
	if err != nil {
		return Batch{}, err
	}
	found, err := collect[Batch](ctx, db, "batch", batchSQL+where+`
		  AND b.id = @id`, args)
	if err != nil {
		return Batch{}, err
	}
	if len(found) == 0 {
		return Batch{}, problem.New(problem.NotFound, "There is no batch %d that you may see.", id)
	}
	return found[0], nil
}

// Replay is one replay of a batch. Texts are redacted.
type Replay struct {
	ID             int64
	DeadJobID      int64
	JobID          string
	State          string
	Outcome        string // empty: not ended
	OutcomeDetail  string
	VerdictDetail  string
	EffectID       string
	PayloadVersion int
	ReleasedAt     *time.Time
	OutcomeAt      *time.Time
}

// Now is where the replay stands: how it ended, or its state.
func (r Replay) Now() string {
	if r.Outcome != "" {
		return r.Outcome
	}
	return r.State
}

// Replays reads the first MaxItems replays of a batch that BatchOf returned.
func Replays(ctx context.Context, db dlq.DB, batch int64) ([]Replay, error) {
	return collect[Replay](ctx, db, "replays", `
		SELECT id, dead_job_id, job_id, state, coalesce(outcome, '') AS outcome, outcome_detail, verdict_detail,
		       effect_id, payload_version, released_at, outcome_at
		FROM redrive.replays
		WHERE batch_id = @batch
		ORDER BY id
		LIMIT @limit`, pgx.NamedArgs{"batch": batch, "limit": MaxItems})
}

// ReplayTotal is how many replays of a batch stand where.
type ReplayTotal struct {
	State string
	N     int
}

// ReplayTotals counts a batch's replays by outcome, or else by state.
func ReplayTotals(ctx context.Context, db dlq.DB, batch int64) ([]ReplayTotal, error) {
	return collect[ReplayTotal](ctx, db, "replay totals", `
		SELECT coalesce(outcome, state) AS state, count(*) AS n
		FROM redrive.replays
		WHERE batch_id = @batch
		GROUP BY coalesce(outcome, state)
		ORDER BY array_position(ARRAY['planned', 'pending', 'ready', 'released', 'succeeded', 'already_done',
		                              'failed', 'skipped', 'unconfirmed', 'cancelled'], coalesce(outcome, state))`,
		pgx.NamedArgs{"batch": batch})
}
