package demo

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/redrive-dlq/redrive/cmd/internal/demo/providers"
)

// Migrate creates the schemas of the demo; it may run any number of times.
func (w *World) Migrate(ctx context.Context) error {
	if err := providers.Migrate(ctx, w.pool); err != nil {
		return err
	}
	if err := w.migrateCustomers(ctx); err != nil {
		return err
	}
	for _, environment := range environments {
		schema := rivers[environment]
		if _, err := w.pool.Exec(ctx, `CREATE SCHEMA IF NOT EXISTS `+pgx.Identifier{schema}.Sanitize()); err != nil {
			return fmt.Errorf("demo: create schema %s: %w", schema, err)
		}
		m, err := rivermigrate.New(riverpgxv5.New(w.pool), &rivermigrate.Config{Schema: schema, Logger: quiet(w.opts.Logger)})
		if err != nil {
			return fmt.Errorf("demo: migrate %s: %w", schema, err)
		}
		if _, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
			return fmt.Errorf("demo: migrate %s: %w", schema, err)
		}
	}
	return nil
}

// newClient is the application's own River client of one environment.
func (w *World) newClient(environment string) (*river.Client[pgx.Tx], error) {
	rt := &runtime{
		pool: w.app, log: w.opts.Logger, catalogue: w.catalogue,
		environment: environment, schema: rivers[environment], policy: demoPolicy(),
		client: &client{base: w.providers.URL(), environment: environment, http: &http.Client{
			Transport: &http.Transport{DisableKeepAlives: true}, // a stopped provider must not hold connections
		}},
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, &worker[sendWelcomeEmail]{rt: rt})
	river.AddWorker(workers, &worker[chargeCard]{rt: rt})
	river.AddWorker(workers, &worker[sendInvoice]{rt: rt})
	river.AddWorker(workers, &worker[syncContact]{rt: rt})
	river.AddWorker(workers, &worker[resizeImage]{rt: rt})
	river.AddWorker(workers, &worker[deliverWebhook]{rt: rt})
	river.AddWorker(workers, &worker[sendReceipt]{rt: rt})
	river.AddWorker(workers, &worker[refundPayment]{rt: rt})
	river.AddWorker(workers, &worker[importCatalog]{rt: rt})
	river.AddWorker(workers, &worker[updateSearchIndex]{rt: rt})

	queues := map[string]river.QueueConfig{}
	for _, t := range w.catalogue.Types() {
		if target, ok := t.Target(environment); ok && target.River != nil {
			queues[target.River.Queue] = river.QueueConfig{MaxWorkers: 4}
		}
	}
	c, err := river.NewClient(riverpgxv5.New(w.app), &river.Config{
		Schema: rivers[environment], Queues: queues, Workers: workers,
		Logger: quiet(w.opts.Logger), MaxAttempts: rt.policy.MaxAttempts,
		// Nothing is cleaned away: the dead jobs are what the demo shows, and
		// the completed ones are how outcomes are found.
		CancelledJobRetentionPeriod: -1, CompletedJobRetentionPeriod: -1, DiscardedJobRetentionPeriod: -1,
		// A killed process leaves jobs running; River's hour is too long to watch.
		JobTimeout: 10 * time.Second, RescueStuckJobsAfter: 20 * time.Second,
		FetchPollInterval: time.Second, SoftStopTimeout: 3 * time.Second,
	})
	if err != nil {
		return nil, fmt.Errorf("demo: workers of %s: %w", environment, err)
	}
	return c, nil
}

// insert adds a job with its facts, in the transaction that may plant its fault.
func (w *World) insert(ctx context.Context, tx pgx.Tx, environment string, args task, facts jobFacts) error {
	queue := w.queue(args.Kind(), environment)
	_, err := w.clients[environment].InsertTx(ctx, tx, args, &river.InsertOpts{Queue: queue, Metadata: jobMetadata(facts)})
	if err != nil {
		return fmt.Errorf("demo: insert %s: %w", args.Kind(), err)
	}
	return nil
}

func (w *World) queue(kind, environment string) string {
	if t, ok := w.catalogue.Type(kind); ok {
		if target, ok := t.Target(environment); ok && target.River != nil {
			return target.River.Queue
		}
	}
	return river.QueueDefault
}

// quiet passes on River's own errors only, and without the text of a job's
// error: it may quote the payload.
func quiet(l *slog.Logger) *slog.Logger { return slog.New(quietHandler{l.Handler()}) }

type quietHandler struct{ slog.Handler }

func (h quietHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelError && h.Handler.Enabled(ctx, level)
}

func (h quietHandler) Handle(ctx context.Context, r slog.Record) error {
	clean := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		if a.Key != "error" && a.Key != "err" {
			clean.AddAttrs(a)
		}
		return true
	})
	return h.Handler.Handle(ctx, clean)
}

func (h quietHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quietHandler{h.Handler.WithAttrs(attrs)}
}

func (h quietHandler) WithGroup(name string) slog.Handler {
	return quietHandler{h.Handler.WithGroup(name)}
}
