package replay

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
)

// Confirmation is what the second page shows before anything is confirmed or
// approved.
type Confirmation struct {
	Batch         int64
	PlanHash      string
	ReviewHash    string
	Phrase        string // to be typed exactly
	Risk          string // "may send 32 e-mails"; completes "This …"
	NeedsApproval string // why a second person is asked; empty: not
	CoolsOff      bool   // a wait of 30 minutes stands in for that person
	Nonce         string // one use, for this person and review; empty for a token
}

// Confirming prepares the second page: for a planned batch the confirmation,
// for a waiting one the approval. It writes nothing. Errors: NotFound,
// Forbidden, Conflict that says what is missing (not reviewed, stale plan,
// another state, a type that can't be replayed any more).
func (s *Service) Confirming(ctx context.Context, p *rbac.Principal, batch int64) (c Confirmation, err error) {
	b, err := s.seen(ctx, p, batch)
	if err != nil {
		return c, err
	}
	switch b.State {
	case "planned":
		err = s.mayConfirm(p, b)
	case "waiting":
		if err = s.mayApprove(p, b); err == nil {
			err = s.firstStill(ctx, s.Pool, b)
		}
	default:
		err = problem.New(problem.Conflict, "Batch %d %s. There is nothing to confirm.", b.ID, b.stateWords())
	}
	if err != nil {
		return c, err
	}
	t, err := s.runnable(b)
	if err != nil {
		return c, err
	}
	c = Confirmation{Batch: b.ID, PlanHash: b.PlanHash, ReviewHash: b.ReviewHash, Phrase: b.phrase(), Risk: Risk(t, b.Eligible), NeedsApproval: b.NeedsApproval}
	err = pgx.BeginTxFunc(ctx, s.Pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if b.State == "planned" {
			if c.NeedsApproval, err = s.approvalWhy(ctx, tx, p, b, t); err != nil {
				return err
			}
			c.CoolsOff = c.NeedsApproval != "" && s.Types().CoolsOff(b.Environment, t)
		}
		if p.TokenID == 0 {
			c.Nonce, err = newNonce(ctx, tx, p, b)
		}
		return err
	})
	return c, err
}

// mayConfirm checks right and review before the page is shown.
func (s *Service) mayConfirm(p *rbac.Principal, b batchRow) error {
	if err := s.mayRun(p, b); err != nil {
		return err
	}
	if err := b.isReviewed(); err != nil {
		return err
	}
	return s.checkPlan(b, b.PlanHash)
}
