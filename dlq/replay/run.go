package replay

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/audit"
	"github.com/redrive-dlq/redrive/dlq/jobtype"
)

// runsARound is how many batches of a type one round serves; they take turns.
const runsARound = 20

// startRun makes an ordered batch known to the release loop, from its row: with
// a canary, only the canary's items may leave at first.
func startRun(ctx context.Context, tx pgx.Tx, batchID int64) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO redrive.runs (batch_id, environment, job_type, due_at, wave, rate_per_minute)
		SELECT id, environment, job_type, due_at, CASE WHEN canary > 0 THEN 0 ELSE 1 END, rate_per_minute
		FROM redrive.batches
		WHERE id = $1`, batchID)
	if err != nil {
		return fmt.Errorf("replay: start run: %w", err)
	}
	return nil
}

// run is a batch as the release loop serves it.
type run struct {
	BatchID       int64
	Kind          string
	State         string
	Wave          int
	RatePerMinute int
	Tokens        *float64
	RefilledAt    *time.Time
	TenantCursor  string
	BaseGood      int64
	BaseBad       int64
	Stragglers    []int64
	TargetKind    string
	RawTarget     []byte
	Destination   string
	ApprovedBy    string
	NeedsApproval string
	Eligible      int
	Canary        int
	AllowOld      bool
	AcceptRepeat  bool
	Activated     bool
	Good          int64 // outcomes, as counted
	Bad           int64
	Already       int64 // of the good ones: the effect was in place

	environment string
	bucket      *bucket // of the round
	target      jobtype.Target
	tokens      float64 // of its own rate, refilled
	left        int     // how many left in this round
	closed      bool    // nothing of it leaves in this round
	elsewhere   bool    // it goes to another destination than the round
	served      string  // the tenant served last
}

// readRuns reads the batches whose turn it is. A single whose replay is out, or
// waits behind another, needs no turn.
func (s *Service) readRuns(ctx context.Context, tx pgx.Tx, b *bucket) ([]*run, error) {
	rows, err := tx.Query(ctx, `
		SELECT u.batch_id, b.kind, b.state, u.wave, u.rate_per_minute, CASE WHEN u.refilled_at IS NOT NULL THEN u.tokens END AS tokens,
		       u.refilled_at, u.tenant_cursor, u.base_good, u.base_bad, u.stragglers, b.target_kind, b.target AS raw_target,
		       b.destination, b.approved_by, b.needs_approval, b.eligible, b.canary, b.allow_old <> '' AS allow_old, b.accept_repeat, b.activated_at IS NOT NULL AS activated,
		       coalesce(c.good, 0) AS good, coalesce(c.bad, 0) AS bad, coalesce(c.already, 0) AS already
		FROM redrive.runs u
		JOIN redrive.batches b ON b.id = u.batch_id
		LEFT JOIN LATERAL (
			SELECT sum(n) FILTER (WHERE tally IN ('succeeded', 'already_done'))::bigint AS good,
			       sum(n) FILTER (WHERE tally = 'already_done')::bigint AS already,
			       sum(n) FILTER (WHERE tally IN ('failed', 'unconfirmed'))::bigint AS bad
			FROM redrive.batch_tallies t
			WHERE t.batch_id = u.batch_id) c ON b.kind = 'batch'
		WHERE u.environment = $1 AND u.job_type = $2 AND u.live AND u.due_at <= $3
		  AND b.state IN ('scheduled', 'running') AND b.order_entry IS NOT NULL
		  AND (b.kind = 'batch' OR EXISTS (
			SELECT FROM redrive.replays r
			WHERE r.batch_id = u.batch_id AND (r.state = 'ready' OR (r.state = 'pending' AND NOT r.behind))))
		ORDER BY u.served_at, u.batch_id
		LIMIT $4`, b.Environment, b.JobType, s.now(), runsARound)
	if err != nil {
		return nil, fmt.Errorf("replay: read runs: %w", err)
	}
	runs, err := pgx.CollectRows(rows, pgx.RowToAddrOfStructByName[run])
	if err != nil {
		return nil, fmt.Errorf("replay: read runs: %w", err)
	}
	for _, u := range runs {
		if u.target, err = decodeTarget(u.TargetKind, u.RawTarget); err != nil {
			return nil, fmt.Errorf("replay: target of batch %d: %w", u.BatchID, err)
		}
		u.bucket = b
		u.environment, u.tokens, u.served = b.Environment, b.Tokens, u.TenantCursor
		if u.RatePerMinute > 0 && u.RatePerMinute < b.Limit.PerMinute {
			u.tokens = b.refilledSmall(u.Tokens, u.RefilledAt, u.RatePerMinute)
		}
	}
	return runs, nil
}

// batch is the run's batch for what is written of it.
func (u *run) batch(b *bucket) batchRow {
	return batchRow{ID: u.BatchID, Environment: b.Environment, JobType: b.JobType, Kind: u.Kind, State: u.State,
		TargetKind: u.TargetKind, Destination: u.Destination, ApprovedBy: u.ApprovedBy, NeedsApproval: u.NeedsApproval,
		Eligible: u.Eligible, Canary: u.Canary, AcceptRepeat: u.AcceptRepeat}
}

// begin makes a scheduled batch running, now that it is due.
func (s *Service) begin(ctx context.Context, tx pgx.Tx, b *bucket, u *run) error {
	_, err := tx.Exec(ctx, `
		UPDATE redrive.batches
		SET state = 'running', started_at = coalesce(started_at, $2)
		WHERE id = $1 AND state = 'scheduled'`, u.BatchID, s.now())
	if err != nil {
		return fmt.Errorf("replay: begin batch: %w", err)
	}
	if u.Kind != "batch" {
		return nil
	}
	_, err = audit.Append(ctx, tx, audit.SystemActor(), u.batch(b).entry("batch.start", "its time came", nil, s.now()))
	return err
}

// put queues the run's new state.
func (u *run) put(batch *pgx.Batch, b *bucket) {
	tokens := b.rest(u.tokens, u.left, u.RatePerMinute, perSecond(u.RatePerMinute))
	batch.Queue(`
		UPDATE redrive.runs
		SET tokens = $2, refilled_at = $3, served_at = $3, tenant_cursor = $4, live = live AND NOT $5
		WHERE batch_id = $1`, u.BatchID, tokens, b.at(), u.served, u.Kind == "single" && u.left > 0)
}
