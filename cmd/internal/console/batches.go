package console

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/redrive-dlq/redrive/dlq/replay"
)

const (
	batchQueue   = "batches"
	batchWorkers = 4
	// batchTurn is how long one turn of work on a batch may take: far below what
	// the engine calls stuck.
	batchTurn = 20 * time.Second
	// batchTimeout is when a turn is broken off: the end of a large plan is one
	// part, and may begin at the end of a turn. A killed process's work goes on
	// after as long.
	batchTimeout = time.Minute
	// batchTries is how often work is tried: for days. Nobody else takes it up.
	batchTries = 10_000
	// stalledEvery is how often a process looks for work that another left behind:
	// the engine itself would take it up only after batchTimeout.
	stalledEvery = 3 * time.Second
)

// batchArgs is Redrive's own job for work on a batch: it carries an id only.
type batchArgs struct {
	Work  replay.Work `json:"work"`
	Batch int64       `json:"batch"`
}

// Kind implements river.JobArgs.
func (batchArgs) Kind() string { return "redrive_batch" }

// batchWorker does parts of the work until all is done, in turns.
type batchWorker struct {
	river.WorkerDefaults[batchArgs]
	Service *replay.Service
}

// Work implements river.Worker.
func (w *batchWorker) Work(ctx context.Context, job *river.Job[batchArgs]) error {
	for until := time.Now().Add(batchTurn); time.Now().Before(until); {
		done, err := w.Service.Do(ctx, job.Args.Work, job.Args.Batch)
		if err != nil || done {
			return err
		}
	}
	return river.JobSnooze(0)
}

// Timeout implements river.Worker.
func (w *batchWorker) Timeout(*river.Job[batchArgs]) time.Duration { return batchTimeout }

// NextRetry implements river.Worker: a part that failed left nothing behind.
func (w *batchWorker) NextRetry(job *river.Job[batchArgs]) time.Time {
	return time.Now().Add(time.Duration(min(job.Attempt, 30)) * time.Second)
}

// takeUp hands out again what a killed process left behind, unless the engine
// still has it in a queue.
func (e *engine) takeUp(ctx context.Context, replays *replay.Service) error {
	return pgx.BeginFunc(ctx, replays.Pool, func(tx pgx.Tx) error {
		stalled, err := replays.Stalled(ctx, tx)
		if err != nil {
			return err
		}
		for _, s := range stalled {
			var queued bool
			err := tx.QueryRow(ctx, `
				SELECT EXISTS (
					SELECT FROM redrive.river_job
					WHERE kind = $1 AND args @> $2 AND state IN ('available', 'pending', 'retryable', 'scheduled'))`,
				batchArgs{}.Kind(), batchArgs{Work: s.Work, Batch: s.Batch}).Scan(&queued)
			if err != nil {
				return fmt.Errorf("engine: look for work on batch %d: %w", s.Batch, err)
			}
			if queued {
				continue
			}
			if err := e.work(ctx, tx, s.Work, s.Batch); err != nil {
				return fmt.Errorf("engine: take up work on batch %d: %w", s.Batch, err)
			}
		}
		return nil
	})
}
