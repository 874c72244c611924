package replay

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/audit"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
)

// Rejudge judges the members of an unconfirmed batch again (the same jobs, as
// they are now); reviews and confirmations of the plan before are void. Errors:
// NotFound, Forbidden, Conflict (another state).
func (s *Service) Rejudge(ctx context.Context, p *rbac.Principal, batch int64) error {
	return s.again(ctx, p, batch, rbac.PlanBatch, func(tx pgx.Tx, b batchRow) error {
		_, err := audit.Append(ctx, tx, p.Actor(), b.entry("batch.judge", "", map[string]any{"plan_hash": b.PlanHash}, s.now()))
		return err
	})
}

// AllowOld takes along the members that are older than their type allows, on a
// person's word, and judges again. Errors: NotFound, Forbidden, Invalid (the
// reason), Conflict (another state).
func (s *Service) AllowOld(ctx context.Context, p *rbac.Principal, batch int64, reason string) error {
	reason, err := reasonOf(reason)
	if err != nil {
		return err
	}
	return s.again(ctx, p, batch, rbac.RunBatch, func(tx pgx.Tx, b batchRow) error {
		if _, err := tx.Exec(ctx, `UPDATE redrive.batches SET allow_old = $2 WHERE id = $1`, b.ID, reason); err != nil {
			return fmt.Errorf("replay: allow old: %w", err)
		}
		_, err := audit.Append(ctx, tx, p.Actor(), b.entry("batch.allow_old", reason, map[string]any{"plan_hash": b.PlanHash}, s.now()))
		return err
	})
}

// again runs an act that changes verdicts, and has the members judged again.
func (s *Service) again(ctx context.Context, p *rbac.Principal, batch int64, needs rbac.Permission, act func(pgx.Tx, batchRow) error) error {
	seen, err := s.seen(ctx, p, batch)
	if err != nil {
		return err
	}
	if err := p.Require(seen.Environment, seen.JobType, needs); err != nil {
		return err
	}
	return s.change(ctx, func(tx pgx.Tx) error {
		b, err := readBatch(ctx, tx, batch, "FOR UPDATE")
		if err != nil {
			return err
		}
		if b.State != "planned" && b.State != "waiting" {
			return problem.New(problem.Conflict, "Batch %d %s, so its jobs can't be judged again. Nothing was changed.", b.ID, b.stateWords())
		}
		if err := act(tx, b); err != nil {
			return err
		}
		return s.judgeAgain(ctx, tx, b)
	})
}

// judgeAgain puts a planned batch back to planning with the members it has.
func (s *Service) judgeAgain(ctx context.Context, tx pgx.Tx, b batchRow) error {
	_, err := tx.Exec(ctx, `
		UPDATE redrive.batches
		SET state = 'planning', judging = true, plan_cursor = 0, review_hash = '',
		    confirmed_by = '', confirmed_by_id = 0, confirmed_at = NULL, needs_approval = '', approve_until = NULL
		WHERE id = $1`, b.ID)
	if err != nil {
		return fmt.Errorf("replay: judge again: %w", err)
	}
	return s.enqueue(ctx, tx, WorkPlan, b.ID)
}
