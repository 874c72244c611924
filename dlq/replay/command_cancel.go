package replay

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/audit"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
)

// Cancel ends what has not left; what is out goes on to its outcome. It also
// withdraws a batch that was only planned or waits for approval. It returns
// how many it stops and how many are out. Errors: NotFound, Forbidden, Invalid
// at reason, Conflict (ended, or being cancelled).
func (s *Service) Cancel(ctx context.Context, p *rbac.Principal, batch int64, reason string) (stops, out int64, err error) {
	seen, err := s.seen(ctx, p, batch)
	if err != nil {
		return 0, 0, err
	}
	if reason, err = reasonOf(reason); err != nil {
		return 0, 0, err
	}
	err = s.steer(ctx, seen, func(tx pgx.Tx, b batchRow) error {
		if err := s.mayCancel(p, b); err != nil {
			return err
		}
		// Under the bucket's lock nothing leaves: the numbers stay true.
		if stops, out, err = stillToGo(ctx, tx, b); err != nil {
			return err
		}
		details := map[string]any{"was": b.State, "stops": stops, "out": out}
		if _, err := audit.Append(ctx, tx, p.Actor(), b.entry("batch.cancel", reason, details, s.now())); err != nil {
			return err
		}
		return s.stop(ctx, tx, p, b, reason)
	})
	if err != nil {
		return 0, 0, err
	}
	return stops, out, nil
}

// mayCancel checks the right, which depends on how far the batch is: a plan is
// withdrawn by those who may plan, a request also by those who may approve it.
func (s *Service) mayCancel(p *rbac.Principal, b batchRow) error {
	switch b.State {
	case "planning", "planned":
		return p.Require(b.Environment, b.JobType, rbac.PlanBatch)
	case "waiting":
		if p.Can(rbac.ApproveBatch, b.Environment, b.JobType) {
			return nil
		}
	case "scheduled", "running", "paused":
		// Whoever would have been asked may still say no.
		if b.NeedsApproval != "" && b.ApprovedBy == "" && p.Can(rbac.ApproveBatch, b.Environment, b.JobType) {
			return nil
		}
	default:
		return problem.New(problem.Conflict, "Batch %d %s, so it can't be cancelled. Nothing was changed.", b.ID, b.stateWords())
	}
	return s.mayRun(p, b)
}

// stillToGo counts, from counters, what would still leave and what is out.
func stillToGo(ctx context.Context, tx pgx.Tx, b batchRow) (stops, out int64, err error) {
	err = tx.QueryRow(ctx, `
		SELECT coalesce(sum(n) FILTER (WHERE tally IN ('plan.eligible', 'pending', 'ready')), 0)::bigint,
		       coalesce(sum(n) FILTER (WHERE tally = 'released'), 0)::bigint
		FROM redrive.batch_tallies
		WHERE batch_id = $1`, b.ID).Scan(&stops, &out)
	if err != nil {
		return 0, 0, fmt.Errorf("replay: count what is left: %w", err)
	}
	return stops, out, nil
}

// stop ends a batch that took no job yet; of any other the work in the
// background ends what has not left.
func (s *Service) stop(ctx context.Context, tx pgx.Tx, p *rbac.Principal, b batchRow, reason string) error {
	state := "cancelling"
	if b.State == "planning" || b.State == "planned" || b.State == "waiting" {
		state = "cancelled"
	}
	_, err := tx.Exec(ctx, `
		UPDATE redrive.batches
		SET state = $2, cancelled_by = $3, end_reason = $4, pause_kind = '', pause_why = '', paused_by = '', paused_at = NULL,
		    finished_at = CASE WHEN $2 = 'cancelled' THEN $5::timestamptz END
		WHERE id = $1`, b.ID, state, nameOf(p), reason, s.now())
	if err != nil {
		return fmt.Errorf("replay: cancel: %w", err)
	}
	if state == "cancelled" {
		return nil
	}
	if err := setLive(ctx, tx, b.ID, false); err != nil {
		return err
	}
	return s.enqueue(ctx, tx, WorkCancel, b.ID)
}
