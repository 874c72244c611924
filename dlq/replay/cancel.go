package replay

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/audit"
	"github.com/redrive-dlq/redrive/dlq/ledger"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
)

// CancelOne takes back a replay that has not left yet; its job is open again.
// Errors: NotFound, Forbidden, Invalid (the reason), Conflict when it has left
// or ended.
func (s *Service) CancelOne(ctx context.Context, p *rbac.Principal, replayID int64, reason string) error {
	reason, err := reasonOf(reason)
	if err != nil {
		return err
	}
	var k ledger.Key
	var jobType string
	err = s.Pool.QueryRow(ctx, `
		SELECT environment, key_scope, idempotency_key, job_type FROM redrive.replays WHERE id = $1`, replayID).
		Scan(&k.Environment, &k.Scope, &k.Key, &jobType)
	if errors.Is(err, pgx.ErrNoRows) || (err == nil && !p.Can(rbac.Read, k.Environment, jobType)) {
		return problem.New(problem.NotFound, "There is no replay %d.", replayID)
	}
	if err != nil {
		return fmt.Errorf("replay: cancel: %w", err)
	}
	t, _ := s.Types().Type(jobType)
	if err := p.Require(k.Environment, jobType, Needs(t)); err != nil {
		return err
	}
	return ledger.Busy(pgx.BeginFunc(ctx, s.Pool, func(tx pgx.Tx) error {
		if err := ledger.GiveWay(ctx, tx); err != nil {
			return err
		}
		if err := ledger.Lock(ctx, tx, k); err != nil {
			return err
		}
		items, err := s.items(ctx, tx, `
			WHERE r.id = @id AND r.state IN ('pending', 'ready')
			FOR UPDATE OF r`, pgx.NamedArgs{"id": replayID})
		if err != nil {
			return err
		}
		if len(items) == 0 {
			return problem.New(problem.Conflict, "Replay %d has left or ended already; it can't be taken back.", replayID)
		}
		it := items[0]
		_, err = audit.Append(ctx, tx, p.Actor(), audit.Entry{
			Action: "replay.cancel", Object: audit.Object{Kind: "replay", ID: strconv.FormatInt(replayID, 10)},
			Environment: it.Environment, JobType: it.JobType, DeadJob: it.DeadJobID, Batch: it.BatchID, Reason: reason,
		})
		if err != nil {
			return err
		}
		return s.finish(ctx, tx, it, End{Outcome: Cancelled, Code: "cancelled", Detail: "cancelled by " + p.Email + " before it left"})
	}))
}
