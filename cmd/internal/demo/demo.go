// Package demo is the living world behind "redrive demo": an application with
// River workers in three environments, fake providers that fail as real ones
// do, two weeks of dead jobs, and a few new ones every minute. Everything it
// owns stands in schemas of its own; Redrive sees it only through River.
package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"github.com/redrive-dlq/redrive/cmd/internal/demo/providers"
	"github.com/redrive-dlq/redrive/dlq/jobtype"
)

// environments in the order of their share of the jobs.
var environments = []string{"production", "staging", "development"}

// rivers is the schema of each environment's River.
var rivers = map[string]string{
	"production":  "demo_app_production",
	"staging":     "demo_app_staging",
	"development": "demo_app_development",
}

// Options change what New builds; the zero value suits the demo.
type Options struct {
	Logger *slog.Logger
	// Trickle is the time between two new jobs that will fail; 0 means 20 s,
	// a negative value none.
	Trickle time.Duration
	// ProvidersAddr is where the fake providers listen, loopback only; empty
	// picks a free port.
	ProvidersAddr string
	// Now is the clock of the seeded history; nil means time.Now.
	Now func() time.Time
}

// World is the demo application. Call Migrate, Seed and Start in this order.
type World struct {
	pool      *pgxpool.Pool
	opts      Options
	catalogue *jobtype.Catalogue

	// Owned by Start and Stop.
	app       *pgxpool.Pool
	providers *providers.Server
	clients   map[string]*river.Client[pgx.Tx]
	cancel    context.CancelFunc
	stopPlay  context.CancelFunc
	trickling sync.WaitGroup
}

// New builds the world on a database that Redrive's own migrations have run on.
func New(pool *pgxpool.Pool, opts Options) (*World, error) {
	c, err := LoadCatalogue()
	if err != nil {
		return nil, err
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Trickle == 0 {
		opts.Trickle = 20 * time.Second
	}
	if opts.ProvidersAddr == "" {
		opts.ProvidersAddr = "127.0.0.1:0"
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	return &World{pool: pool, opts: opts, catalogue: c}, nil
}

// Catalogue is the demo's job types.
func (w *World) Catalogue() *jobtype.Catalogue { return w.catalogue }

// Rivers is the schema of River in each environment.
func (w *World) Rivers() map[string]string { return maps.Clone(rivers) }

// ProvidersURL is the base address of the fake providers while the world runs.
// It is also kept in demo_app.settings under providers_url.
func (w *World) ProvidersURL() string {
	if w.providers == nil {
		return ""
	}
	return w.providers.URL()
}

// Start runs the providers, the workers of every environment and the trickle.
// What had started is stopped again when it fails.
func (w *World) Start(ctx context.Context) error {
	if err := w.start(ctx); err != nil {
		stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		return errors.Join(err, w.Stop(stopCtx))
	}
	return nil
}

func (w *World) start(ctx context.Context) error {
	// A pool of its own: three listeners and their workers must not take
	// connections from the console.
	config := w.pool.Config()
	config.MaxConns, config.MinConns = 12, 0
	app, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return fmt.Errorf("demo: connect: %w", err)
	}
	w.app = app
	if w.providers, err = providers.Start(app, w.opts.ProvidersAddr, w.opts.Logger); err != nil {
		return err
	}
	if err := keep(ctx, app, "providers_url", w.providers.URL()); err != nil {
		return err
	}
	// The workers live until Stop, not until the caller's start-up ends.
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	w.cancel = cancel
	w.clients = map[string]*river.Client[pgx.Tx]{}
	for _, environment := range environments {
		client, err := w.newClient(environment)
		if err != nil {
			return err
		}
		if err := client.Start(running); err != nil {
			return fmt.Errorf("demo: start workers of %s: %w", environment, err)
		}
		w.clients[environment] = client
	}
	if w.opts.Trickle > 0 {
		w.trickling.Go(func() { w.trickle(running) })
	}
	return nil
}

// Stop ends the trickle, lets running jobs finish within ctx, and closes the
// providers. It may be called after a failed Start, and more than once.
func (w *World) Stop(ctx context.Context) error {
	var errs []error
	stopped := make(chan error, len(w.clients))
	for environment, client := range w.clients {
		go func() {
			if err := client.Stop(ctx); err != nil {
				stopped <- fmt.Errorf("demo: stop workers of %s: %w", environment, err)
				return
			}
			stopped <- nil
		}()
	}
	for range w.clients {
		errs = append(errs, <-stopped)
	}
	w.clients = nil
	if w.cancel != nil {
		w.cancel()
		w.cancel = nil
	}
	if w.stopPlay != nil {
		w.stopPlay()
		w.stopPlay = nil
	}
	w.trickling.Wait()
	if w.providers != nil {
		errs = append(errs, w.providers.Stop(ctx))
		w.providers = nil
	}
	if w.app != nil {
		w.app.Close()
		w.app = nil
	}
	return errors.Join(errs...)
}
