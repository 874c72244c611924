package console

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/redrive-dlq/redrive/dlq/replay"
	httptarget "github.com/redrive-dlq/redrive/dlq/target/http"
	rivertarget "github.com/redrive-dlq/redrive/dlq/target/river"
	"github.com/redrive-dlq/redrive/migrations"
)

const (
	handOverQueue = "hand_over"
	// A delivery over HTTP keeps its worker until the answer; a destination that
	// hangs must not take them all.
	handOverWorkers = 128
	handOverTries   = 25
	// fetchPause lies between two fetches of hand-overs: with it a queue moves
	// thousands a second.
	fetchPause = 25 * time.Millisecond
)

// engine is Redrive's own River, in its own schema: it runs what must survive
// a crash. Its jobs carry ids only.
type engine struct {
	client *river.Client[pgx.Tx]
}

func newEngine(pool *pgxpool.Pool, replays *replay.Service, target *rivertarget.Target, log *slog.Logger) (*engine, error) {
	workers := river.NewWorkers()
	river.AddWorker(workers, &rivertarget.HandOverWorker{Target: target, Service: replays})
	river.AddWorker(workers, &batchWorker{Service: replays})
	river.AddWorker(workers, &httptarget.Worker{Service: replays, Client: httptarget.NewClient(), Retry: 2 * time.Second})
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		Schema:  migrations.Schema,
		Workers: workers,
		Queues: map[string]river.QueueConfig{
			handOverQueue: {MaxWorkers: handOverWorkers},
			batchQueue:    {MaxWorkers: batchWorkers},
		},
		FetchCooldown:     fetchPause,
		FetchPollInterval: 250 * time.Millisecond,
		JobTimeout:        httptarget.SendTimeout + 10*time.Second,
		// A hand-over that a killed process left behind is looked at again soon;
		// what was claimed is never sent twice.
		RescueStuckJobsAfter: time.Minute,
		Logger:               log,
	})
	if err != nil {
		return nil, fmt.Errorf("engine: %w", err)
	}
	return &engine{client}, nil
}

func (e *engine) start(ctx context.Context) error {
	// It stops by stop alone, so that running hand-overs can end.
	if err := e.client.Start(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("engine: start: %w", err)
	}
	return nil
}

func (e *engine) stop(ctx context.Context) error { return e.client.Stop(ctx) }

func (e *engine) handOverToRiver(ctx context.Context, tx pgx.Tx, replayIDs []int64) error {
	return e.insert(ctx, tx, replayIDs, func(id int64) river.JobArgs { return rivertarget.HandOverArgs{ReplayID: id} })
}

func (e *engine) deliver(ctx context.Context, tx pgx.Tx, replayIDs []int64) error {
	return e.insert(ctx, tx, replayIDs, func(id int64) river.JobArgs { return httptarget.DeliverArgs{ReplayID: id} })
}

func (e *engine) insert(ctx context.Context, tx pgx.Tx, ids []int64, args func(int64) river.JobArgs) error {
	all := make([]river.InsertManyParams, 0, len(ids))
	for _, id := range ids {
		all = append(all, river.InsertManyParams{Args: args(id), InsertOpts: &river.InsertOpts{Queue: handOverQueue, MaxAttempts: handOverTries}})
	}
	_, err := e.client.InsertManyFastTx(ctx, tx, all)
	return err
}

// work hands background work on a batch to the engine.
func (e *engine) work(ctx context.Context, tx pgx.Tx, w replay.Work, batch int64) error {
	_, err := e.client.InsertTx(ctx, tx, batchArgs{Work: w, Batch: batch}, &river.InsertOpts{Queue: batchQueue, MaxAttempts: batchTries})
	return err
}
