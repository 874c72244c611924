package replay

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq/ledger"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
)

// change runs a person's act on a batch in one transaction. It may wait for the
// bucket and the batch: only short transactions of ours hold them.
func (s *Service) change(ctx context.Context, act func(tx pgx.Tx) error) error {
	err := pgx.BeginFunc(ctx, s.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SET LOCAL lock_timeout = '5s'`); err != nil {
			return fmt.Errorf("replay: set lock timeout: %w", err)
		}
		return act(tx)
	})
	if ledger.IsBusy(err) {
		return problem.Wrap(err, problem.Conflict, "Somebody else is changing this right now. Nothing was changed; try again in a moment.")
	}
	return err
}

// steer runs a command on a batch that may be under way: it holds the bucket,
// so that no release is half-way, and the batch.
func (s *Service) steer(ctx context.Context, seen batchRow, act func(tx pgx.Tx, b batchRow) error) error {
	return s.change(ctx, func(tx pgx.Tx) error {
		if err := lockBucket(ctx, tx, seen.Environment, seen.JobType); err != nil {
			return err
		}
		b, err := readBatch(ctx, tx, seen.ID, "FOR UPDATE")
		if err != nil {
			return err
		}
		return act(tx, b)
	})
}

// lockBucket waits for the release round of a type and keeps the next one away.
func lockBucket(ctx context.Context, tx pgx.Tx, environment, jobType string) error {
	if err := ensureBucket(ctx, tx, environment, jobType); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `
		SELECT FROM redrive.release_buckets
		WHERE environment = $1 AND job_type = $2
		FOR UPDATE`, environment, jobType)
	if err != nil {
		return fmt.Errorf("replay: lock bucket: %w", err)
	}
	return nil
}

// setLive lets the release loop serve the batch, or not.
func setLive(ctx context.Context, tx pgx.Tx, batchID int64, live bool) error {
	_, err := tx.Exec(ctx, `UPDATE redrive.runs SET live = $2 WHERE batch_id = $1`, batchID, live)
	if err != nil {
		return fmt.Errorf("replay: set live: %w", err)
	}
	return nil
}

// nameOf is a principal as rows name who acted; the audit log names a token too.
func nameOf(p *rbac.Principal) string {
	if p.Email != "" {
		return p.Email
	}
	return p.Actor().Name
}
