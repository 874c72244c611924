package replay

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq/ledger"
	"github.com/redrive-dlq/redrive/dlq/problem"
)

// cancelChunk is how many replays are ended in one transaction.
const cancelChunk = 1000

// doCancel ends a part of what has not left of a cancelled batch; its jobs are
// open again. What is out goes on to its outcome, and the batch is cancelled
// when nothing is out any more. The command's entry in the audit log speaks for
// each of them.
func (s *Service) doCancel(ctx context.Context, batch int64) (done bool, err error) {
	var n int64
	err = pgx.BeginFunc(ctx, s.Pool, func(tx pgx.Tx) error {
		if err := ledger.GiveWay(ctx, tx); err != nil {
			return err
		}
		b, err := readBatch(ctx, tx, batch, "FOR UPDATE")
		if problem.Is(err, problem.NotFound) {
			done = true
			return nil
		}
		if err != nil {
			return err
		}
		if b.State != "cancelling" && b.State != "cancelled" {
			done = true
			return nil
		}
		if n, err = s.cancelSome(ctx, tx, batch); err != nil || n > 0 {
			return err
		}
		done, err = s.cancelled(ctx, tx, batch)
		return err
	})
	if ledger.IsBusy(err) {
		err = nil
	}
	if err == nil && n == 0 && !done { // somebody holds what is left: it is asked for again
		wait(ctx, startPause)
	}
	return done && err == nil, err
}

// cancelSome ends up to a chunk of replays that have not left, jobs that were
// taken first. What somebody holds is left for later.
func (s *Service) cancelSome(ctx context.Context, tx pgx.Tx, batch int64) (n int64, err error) {
	for _, which := range []string{`state IN ('pending', 'ready')`, `state = 'planned' AND verdict = 'eligible'`} {
		rows, err := tx.Query(ctx, `
			WITH c AS (
				SELECT id, state
				FROM redrive.replays
				WHERE batch_id = $1 AND `+which+`
				LIMIT $2
				FOR UPDATE SKIP LOCKED),
			r AS (
				UPDATE redrive.replays
				SET state = 'ended', outcome = 'cancelled', outcome_code = 'cancelled', outcome_at = $3,
				    outcome_detail = 'cancelled with its batch before it left'
				FROM c
				WHERE replays.id = c.id
				RETURNING replays.dead_job_id, replays.generation, replays.environment, replays.entity, replays.key_scope,
				          replays.idempotency_key, c.state AS was),
			j AS (
				UPDATE redrive.dead_jobs d
				SET status = 'open', updated_at = $3
				FROM r
				WHERE d.id = r.dead_job_id AND d.generation = r.generation AND d.status = 'replaying' AND r.was <> 'planned')
			SELECT dead_job_id, environment, entity, key_scope, idempotency_key, was
			FROM r`, batch, cancelChunk, s.now())
		if err != nil {
			return 0, fmt.Errorf("replay: cancel: %w", err)
		}
		var it Item
		var was string
		var held []Item // what they held is free
		tag, err := pgx.ForEachRow(rows, []any{&it.DeadJobID, &it.Environment, &it.Entity, &it.Key.Scope, &it.Key.Key, &was}, func() error {
			if was == "ready" {
				held = append(held, it)
			}
			return nil
		})
		if err != nil {
			return 0, fmt.Errorf("replay: cancel: %w", err)
		}
		for _, it := range held {
			if err := wake(ctx, tx, it); err != nil {
				return 0, err
			}
		}
		if n = tag.RowsAffected(); n > 0 {
			return n, nil
		}
	}
	return 0, nil
}

// untaken says whether a batch still has eligible jobs that were never taken:
// from the counters, however many replays it has.
func untaken(batch string) string {
	return `EXISTS (
			SELECT FROM redrive.batch_tallies
			WHERE batch_id = ` + batch + ` AND tally = 'plan.eligible' AND n > 0)`
}

// cancelled ends the batch when nothing of it waits or is out; done says that
// nothing is left to cancel.
func (s *Service) cancelled(ctx context.Context, tx pgx.Tx, batch int64) (done bool, err error) {
	var waits, out bool
	err = tx.QueryRow(ctx, `
		SELECT EXISTS (SELECT FROM redrive.replays WHERE batch_id = $1 AND state IN ('pending', 'ready')) OR `+untaken("$1")+`,
		       EXISTS (SELECT FROM redrive.replays WHERE batch_id = $1 AND state = 'released')`, batch).Scan(&waits, &out)
	if err != nil {
		return false, fmt.Errorf("replay: cancel: %w", err)
	}
	if waits || out {
		return !waits, nil
	}
	_, err = tx.Exec(ctx, `
		WITH u AS (DELETE FROM redrive.runs WHERE batch_id = $1)
		UPDATE redrive.batches
		SET state = 'cancelled', finished_at = coalesce(finished_at, $2)
		WHERE id = $1 AND state = 'cancelling'`, batch, s.now())
	if err != nil {
		return false, fmt.Errorf("replay: cancel: %w", err)
	}
	return true, nil
}
