package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq/ledger"
	"github.com/redrive-dlq/redrive/dlq/problem"
)

const (
	releaseEvery = 200 * time.Millisecond
	sweepEvery   = 5 * time.Second
	releaseChunk = 20 // items a bucket in one short transaction
)

// RunRelease releases due replays until ctx ends. Every process runs it; any
// may die at any point.
func (s *Service) RunRelease(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(func() { s.runExpiry(ctx) })
	defer wg.Wait()
	tick := time.NewTicker(releaseEvery)
	defer tick.Stop()
	for {
		if _, err := s.ReleaseDue(ctx); err != nil && ctx.Err() == nil {
			s.log().ErrorContext(ctx, "release round failed", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// runExpiry ends what is overdue, beside the releases: it may wait for the
// transactions of workers.
func (s *Service) runExpiry(ctx context.Context) {
	tick := time.NewTicker(releaseEvery)
	defer tick.Stop()
	var swept time.Time
	for {
		if _, err := s.Expire(ctx); err != nil && ctx.Err() == nil {
			s.log().ErrorContext(ctx, "expiry round failed", "error", err)
		}
		if time.Since(swept) > sweepEvery {
			swept = time.Now()
			if _, err := s.EndBatches(ctx); err != nil && ctx.Err() == nil {
				s.log().ErrorContext(ctx, "batches not ended", "error", err)
			}
			if _, err := s.AgeRequests(ctx); err != nil && ctx.Err() == nil {
				s.log().ErrorContext(ctx, "old requests not ended", "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// ReleaseDue releases what is due now and returns how many replays left.
func (s *Service) ReleaseDue(ctx context.Context) (int, error) {
	type bucket struct{ environment, jobType string }
	// One probe of an index for each type, however many wait.
	rows, err := s.Pool.Query(ctx, `
		SELECT b.environment, b.job_type
		FROM redrive.release_buckets b
		WHERE EXISTS (
			SELECT FROM redrive.replays r
			WHERE r.environment = b.environment AND r.job_type = b.job_type AND r.state = 'ready' AND r.due_at <= $1)
		   OR EXISTS (
			SELECT FROM redrive.replays r
			WHERE r.environment = b.environment AND r.job_type = b.job_type AND r.state = 'pending' AND r.due_at <= $1)`, s.now())
	if err != nil {
		return 0, fmt.Errorf("replay: due buckets: %w", err)
	}
	due, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (b bucket, err error) {
		err = r.Scan(&b.environment, &b.jobType)
		return b, err
	})
	if err != nil {
		return 0, fmt.Errorf("replay: due buckets: %w", err)
	}
	released := 0
	var failed error
	for _, b := range due {
		n, err := s.releaseBucket(ctx, b.environment, b.jobType)
		released += n
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s in %s: %w", b.jobType, b.environment, err))
		}
	}
	return released, failed
}

// releaseBucket is one short transaction: the bucket's lock first, then, with
// a fresh snapshot, the items. Locking and reading in one statement would read
// with a snapshot older than the lock.
func (s *Service) releaseBucket(ctx context.Context, environment, jobType string) (released int, err error) {
	err = pgx.BeginFunc(ctx, s.Pool, func(tx pgx.Tx) error {
		released = 0
		var locked bool
		err := tx.QueryRow(ctx, `
			SELECT true
			FROM redrive.release_buckets
			WHERE environment = $1 AND job_type = $2
			FOR UPDATE SKIP LOCKED`, environment, jobType).Scan(&locked)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil // another process is at it
		}
		if err != nil {
			return fmt.Errorf("replay: lock bucket: %w", err)
		}
		// A target's row may be held by a worker who then asks for our key.
		if err := ledger.GiveWay(ctx, tx); err != nil {
			return err
		}
		if err := s.promote(ctx, tx, environment, jobType); err != nil {
			return err
		}
		items, err := s.takeReady(ctx, tx, environment, jobType)
		if err != nil {
			return err
		}
		for _, it := range items {
			left, err := s.releaseOne(ctx, tx, it)
			switch {
			case errors.Is(err, errBusy) || ledger.IsBusy(err):
				err = s.postpone(ctx, tx, it, busyPause)
			case err != nil:
				// One item's fault harms only itself: its savepoint is gone, it stays
				// ready, and it leaves its place to those behind it.
				s.log().WarnContext(ctx, "replay not released, it is tried again later", "replay", it.ReplayID, "error", err)
				err = s.postpone(ctx, tx, it, faultPause)
			case left:
				released++
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return released, err
}

// promote makes due replays ready that nothing of their entity or key stands
// in front of: those scheduled for now, and those whose predecessor has ended.
func (s *Service) promote(ctx context.Context, tx pgx.Tx, environment, jobType string) error {
	rows, err := tx.Query(ctx, `
		SELECT r.id
		FROM redrive.replays r
		WHERE r.state = 'pending' AND r.environment = $1 AND r.job_type = $2 AND r.due_at <= $3
		  AND NOT EXISTS (
			SELECT FROM redrive.replays a
			WHERE a.environment = r.environment AND a.entity = r.entity AND r.entity <> '' AND a.entity <> ''
			  AND a.state IN ('ready', 'released'))
		  AND NOT EXISTS (
			SELECT FROM redrive.replays a
			WHERE a.environment = r.environment AND a.key_scope = r.key_scope AND a.idempotency_key = r.idempotency_key
			  AND r.idempotency_key <> '' AND a.idempotency_key <> '' AND a.state IN ('ready', 'released'))
		ORDER BY r.due_at, r.id
		LIMIT $4
		FOR UPDATE SKIP LOCKED`, environment, jobType, s.now(), releaseChunk)
	if err != nil {
		return fmt.Errorf("replay: waiting: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return fmt.Errorf("replay: waiting: %w", err)
	}
	for _, id := range ids {
		if err := makeReady(ctx, tx, id); err != nil && !isUnique(err) && !ledger.IsBusy(err) {
			return err
		}
	}
	return nil
}

// takeReady locks due ready items whose batch runs and whose order is written.
func (s *Service) takeReady(ctx context.Context, tx pgx.Tx, environment, jobType string) ([]Item, error) {
	return s.items(ctx, tx, `
		WHERE r.state = 'ready' AND r.environment = @environment AND r.job_type = @job_type AND r.due_at <= @now
		  AND b.state = 'running' AND b.order_entry IS NOT NULL
		ORDER BY r.due_at, r.id
		LIMIT @chunk
		FOR UPDATE OF r SKIP LOCKED`,
		pgx.NamedArgs{"environment": environment, "job_type": jobType, "now": s.now(), "chunk": releaseChunk})
}

// releaseOne judges the item once more under its locks and hands it over. It
// reports whether the replay left.
func (s *Service) releaseOne(ctx context.Context, tx pgx.Tx, it Item) (left bool, err error) {
	err = pgx.BeginFunc(ctx, tx, func(sp pgx.Tx) error {
		left = false
		free, err := ledger.TryLock(ctx, sp, it.Key)
		if err != nil {
			return err
		}
		if !free {
			return errBusy
		}
		j, err := readJob(ctx, sp, it.DeadJobID, "FOR UPDATE SKIP LOCKED")
		if problem.Is(err, problem.NotFound) {
			return s.lockedOrGone(ctx, sp, it)
		}
		if err != nil {
			return err
		}
		end, err := s.stillDue(ctx, sp, it, j)
		if err != nil {
			return err
		}
		if end != nil {
			return s.end(ctx, sp, it, *end)
		}
		kept, err := hasPayload(ctx, sp, it)
		if err != nil {
			return err
		}
		if !kept {
			return s.end(ctx, sp, it, payloadGone)
		}
		it.SourceRef, it.AttemptCount, it.Queue = j.SourceRef, j.AttemptCount, j.Queue
		to, ok := s.Targets[it.TargetKind]
		if !ok {
			return s.end(ctx, sp, it, End{Outcome: Skipped, Code: NotReplayable, Detail: "this process knows no target of kind " + it.TargetKind})
		}
		outs, err := to.Release(ctx, sp, []Item{it})
		if err != nil {
			return err
		}
		out := outs[0]
		if out.Err != nil {
			return out.Err
		}
		if refusal := out.Refusal; refusal != nil {
			return s.end(ctx, sp, it, End{Outcome: Skipped, Code: refusal.Code, Detail: "not replayed because " + refusal.Detail})
		}
		left = true
		return s.markReleased(ctx, sp, it, out)
	})
	return left, err
}

// stillDue is the last check before a replay leaves; nil means go.
func (s *Service) stillDue(ctx context.Context, tx pgx.Tx, it Item, j job) (*End, error) {
	if j.Status != "replaying" || j.Generation != it.Generation || j.PayloadVersion != it.PayloadVersion {
		return &End{Outcome: Skipped, Code: "changed", Detail: "the job changed after it was confirmed"}, nil
	}
	row, ok, err := ledger.Of(ctx, tx, it.Key)
	if err != nil {
		return nil, err
	}
	if ok && row.State == "done" {
		return &End{Outcome: AlreadyDone, Code: KeyDone, Detail: "the effect of this key is in the ledger", EffectID: row.EffectID}, nil
	}
	t, known := s.Types().Type(it.JobType)
	if !known {
		return &End{Outcome: Skipped, Code: TypeUnknown, Detail: "the type is no longer declared"}, nil
	}
	other, err := readTwin(ctx, tx, j)
	if err != nil {
		return nil, err
	}
	if other.Done {
		return &End{Outcome: AlreadyDone, Code: KeyDone, Detail: fmt.Sprintf("job %d of the same key has done it", other.ID), EffectID: other.EffectID}, nil
	}
	if t.Idempotency.ProviderDeduplicates {
		return nil, nil
	}
	if (ok && row.State == "begun") || j.Effect == "unknown" || other.ID != 0 {
		return &End{Outcome: Skipped, Code: EffectUnknown, Detail: "its effect was begun meanwhile and its end isn't known", EffectUnknown: true}, nil
	}
	return nil, nil
}

func (s *Service) markReleased(ctx context.Context, tx pgx.Tx, it Item, out Released) error {
	if len(out.Ref) == 0 {
		out.Ref = json.RawMessage("{}")
	}
	now := s.now()
	var delivered *time.Time
	if out.Delivered {
		delivered = &now
	}
	_, err := tx.Exec(ctx, `
		UPDATE redrive.replays
		SET state = 'released', released_at = $2, delivered_at = $3, deadline_at = $4, target_ref = $5,
		    ledger_begins = coalesce((
				SELECT l.begins FROM redrive.ledger l
				WHERE l.environment = replays.environment AND l.scope = key_scope AND l.key = idempotency_key), 0)
		WHERE id = $1`, it.ReplayID, now, delivered, now.Add(it.Target.OutcomeWithin), out.Ref)
	if err != nil {
		return fmt.Errorf("replay: mark released: %w", err)
	}
	return nil
}
