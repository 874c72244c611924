// Package bench measures Redrive against plain PostgreSQL on the same machine
// in the same run: figures are ratios and medians, so that a noisy machine
// blurs them less.
package bench

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/redrive-dlq/redrive/cmd/internal/console"
	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/internal/embeddedpg"
	"github.com/redrive-dlq/redrive/migrations"
	"github.com/redrive-dlq/redrive/rbac"
)

// Options choose what is measured.
type Options struct {
	Rows   int // of the large store, 1,000,000 for the bars
	Rounds int // of each capture measurement
	Out    io.Writer
	Log    *slog.Logger
}

const catalogue = `
environments: [production]
types:
  send_invoice:
    side_effects: [{kind: email, text: sends one invoice}]
    idempotency: {by: key, scope: invoice}
    targets:
      production: {http: {url: "http://127.0.0.1:9/"}, outcome_within: 15m}
`

// bench is one run on a private server.
type bench struct {
	Options
	pool     *pgxpool.Pool
	capturer *dlq.Capturer
	base     string // URL of a whole console on pool
	next     int    // number of the next document
}

// Run measures and prints "name: value" lines.
func Run(ctx context.Context, o Options) (err error) {
	dir, err := os.MkdirTemp("", "redrive-bench-")
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	if err := os.Chmod(dir, 0o711); err != nil { // the database's own account passes through
		return fmt.Errorf("bench: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // a temporary folder
	pg, err := embeddedpg.Start(ctx, embeddedpg.Config{DataDir: filepath.Join(dir, "pg"), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer func() {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		_ = pg.Stop(stop) // its folder goes with it
	}()
	pool, err := pgxpool.New(ctx, pg.URL())
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := migrations.Up(ctx, pool); err != nil {
		return err
	}
	b := &bench{Options: o, pool: pool, capturer: dlq.NewCapturer(nil, nil, nil)}
	return b.serveAnd(ctx, b.measure)
}

// serveAnd runs a whole console on the store while f measures.
func (b *bench) serveAnd(ctx context.Context, f func(context.Context) error) error {
	people := rbac.New(b.pool, nil, rbac.NewHasher(2))
	if err := pgx.BeginFunc(ctx, b.pool, func(tx pgx.Tx) error { return people.SeedDemo(ctx, tx) }); err != nil {
		return err
	}
	types, err := jobtype.Load(fstest.MapFS{"types.yaml": {Data: []byte(catalogue)}}, "types.yaml")
	if err != nil {
		return err
	}
	c, err := console.New(ctx, console.Config{Pool: b.pool, Catalogue: types, Demo: true, Log: b.Log})
	if err != nil {
		return err
	}
	defer c.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	b.base = "http://" + listener.Addr().String()
	running, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- c.Run(running, listener) }()
	err = f(ctx)
	stop()
	if e := <-done; err == nil {
		err = e
	}
	return err
}

func (b *bench) measure(ctx context.Context) error {
	for _, part := range []func(context.Context) error{b.captures, b.pages, b.plans, b.releases} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) print(name string, value float64) {
	fmt.Fprintf(b.Out, "%s: %.3g\n", name, value)
}

// median of durations, in seconds.
func median(d []time.Duration) float64 {
	slices.Sort(d)
	return d[len(d)/2].Seconds()
}

// timed says how long f took.
func timed(f func() error) (time.Duration, error) {
	started := time.Now()
	err := f()
	return time.Since(started), err
}

// get fetches a page as the signed-in person and reads it whole.
func (b *bench) get(ctx context.Context, client *http.Client, path, cookie string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.base+path, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Cookie", cookie)
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }() // read whole below
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("bench: %s answered %d", path, res.StatusCode)
	}
	return nil
}
