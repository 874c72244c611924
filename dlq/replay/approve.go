package replay

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/audit"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
)

// ApproveWithin is how long a request for a second person stands.
const ApproveWithin = 24 * time.Hour

// ask makes a confirmed batch wait for a second person.
func (s *Service) ask(ctx context.Context, tx pgx.Tx, b batchRow, why string) error {
	_, err := tx.Exec(ctx, `
		UPDATE redrive.batches
		SET state = 'waiting', needs_approval = $2, approve_until = $3
		WHERE id = $1`, b.ID, why, s.now().Add(ApproveWithin))
	if err != nil {
		return fmt.Errorf("replay: ask for approval: %w", err)
	}
	return nil
}

// Approve is the second person's word: never of one who planned or confirmed
// the batch, nor of one of their tokens. It orders the batch and answers its
// new state. The caller has checked the step-up. Errors: NotFound, Forbidden,
// Conflict (not waiting, aged out, a review that changed, a page used already,
// a type that can't be replayed any more, a first person who may not run it any
// more), Invalid at phrase.
func (s *Service) Approve(ctx context.Context, p *rbac.Principal, o ConfirmOrder) (state string, err error) {
	seen, err := s.seen(ctx, p, o.Batch)
	if err != nil {
		return "", err
	}
	if err := p.Require(seen.Environment, seen.JobType, rbac.ApproveBatch); err != nil {
		return "", err
	}
	err = s.change(ctx, func(tx pgx.Tx) error {
		if err := ensureBucket(ctx, tx, seen.Environment, seen.JobType); err != nil {
			return err
		}
		b, err := readBatch(ctx, tx, o.Batch, "FOR UPDATE")
		if err != nil {
			return err
		}
		if err := s.checkApprove(p, b, o); err != nil {
			return err
		}
		if err := s.firstStill(ctx, tx, b); err != nil {
			return err
		}
		if err := useNonce(ctx, tx, p, b, o.Nonce, s.now()); err != nil {
			return err
		}
		state, err = s.approve(ctx, tx, p, b)
		return err
	})
	if err != nil {
		return "", err
	}
	return state, nil
}

func (s *Service) checkApprove(p *rbac.Principal, b batchRow, o ConfirmOrder) error {
	if b.State != "waiting" {
		return problem.New(problem.Conflict, "Batch %d %s. Nothing was changed.", b.ID, b.stateWords())
	}
	if err := s.mayApprove(p, b); err != nil {
		return err
	}
	if o.PlanHash != b.PlanHash {
		return problem.New(problem.Conflict, "The plan of batch %d changed since you looked at it. Nothing was changed; open it and look again.", b.ID)
	}
	_, err := s.checkAgreed(b, o)
	return err
}

// mayApprove checks that the principal is another person with the right, in
// time.
func (s *Service) mayApprove(p *rbac.Principal, b batchRow) error {
	if p.UserID == b.ConfirmedByID || p.UserID == b.CreatedByID {
		return problem.New(problem.Forbidden, "You planned or confirmed batch %d, so a second person has to approve it.", b.ID)
	}
	if err := p.Require(b.Environment, b.JobType, rbac.ApproveBatch); err != nil {
		return err
	}
	if b.ApproveUntil == nil || !s.now().Before(*b.ApproveUntil) {
		return problem.New(problem.Conflict, "The request to approve batch %d is more than 24 hours old, so it can't be approved any more.", b.ID)
	}
	return nil
}

// firstStill refuses a request of somebody who may not ask for it any more.
func (s *Service) firstStill(ctx context.Context, db querying, b batchRow) error {
	why, err := s.firstWhy(ctx, db, b)
	if err != nil || why == "" {
		return err
	}
	return problem.New(problem.Conflict, "Batch %d can't be approved: %s. Nothing was changed. Somebody who may has to review and confirm it anew, or cancel it.", b.ID, why)
}

func (s *Service) approve(ctx context.Context, tx pgx.Tx, p *rbac.Principal, b batchRow) (string, error) {
	now := s.now()
	_, err := tx.Exec(ctx, `
		UPDATE redrive.batches
		SET approved_by = $2, approved_by_id = $3, approved_at = $4
		WHERE id = $1`, b.ID, nameOf(p), p.UserID, now)
	if err != nil {
		return "", fmt.Errorf("replay: approve: %w", err)
	}
	details := b.details()
	details["asked_by"], details["needs_approval"] = b.ConfirmedBy, b.NeedsApproval
	details["due_at"] = b.due(now).UTC().Format(time.RFC3339)
	entry, err := audit.Append(ctx, tx, p.Actor(), b.entry("batch.approve", b.Reason, details, now))
	if err != nil {
		return "", err
	}
	return s.order(ctx, tx, b, entry, b.due(now))
}
