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
	handOverQueue   = "hand_over"
	handOverWorkers = 16
	handOverTries   = 25
)

// engine is Redrive's own River, in its own schema: it runs what must survive
// a crash. Its jobs carry ids only.
type engine struct {
	client *river.Client[pgx.Tx]
}

func newEngine(pool *pgxpool.Pool, replays *replay.Service, target *rivertarget.Target, log *slog.Logger) (*engine, error) {
	workers := river.NewWorkers()
	river.AddWorker(workers, &rivertarget.HandOverWorker{Target: target, Service: replays})
	river.AddWorker(workers, &httptarget.Worker{Service: replays, Client: httptarget.NewClient(), Retry: 2 * time.Second})
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		Schema:            migrations.Schema,
		Workers:           workers,
		Queues:            map[string]river.QueueConfig{handOverQueue: {MaxWorkers: handOverWorkers}},
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

func (e *engine) handOverToRiver(ctx context.Context, tx pgx.Tx, replayID int64) error {
	return e.insert(ctx, tx, rivertarget.HandOverArgs{ReplayID: replayID})
}

func (e *engine) deliver(ctx context.Context, tx pgx.Tx, replayID int64) error {
	return e.insert(ctx, tx, httptarget.DeliverArgs{ReplayID: replayID})
}

func (e *engine) insert(ctx context.Context, tx pgx.Tx, args river.JobArgs) error {
	_, err := e.client.InsertTx(ctx, tx, args, &river.InsertOpts{Queue: handOverQueue, MaxAttempts: handOverTries})
	return err
}
