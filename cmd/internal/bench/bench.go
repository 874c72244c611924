// Package bench measures Redrive against plain PostgreSQL on the same machine
// in the same run: figures are ratios and medians, so that a noisy machine
// blurs them less.
package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/redrive-dlq/redrive/cmd/internal/console"
	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/internal/embeddedpg"
	"github.com/redrive-dlq/redrive/migrations"
	"github.com/redrive-dlq/redrive/rbac"
)

// Options choose what is measured, and how long.
type Options struct {
	Only          []string      // of Parts; empty: all of them
	Rows          int           // dead jobs of the large store, 1,000,000 for the bars
	Rounds        int           // of each capture measurement
	Plan          int           // jobs of the large plan, and of the batch that runs while pages are read
	Pending       int           // replays that wait while releases are measured
	Sample        int           // replays of one sample of releases
	Samples       int           // of each kind of release
	Window        time.Duration // of a rate's error, at least
	During        time.Duration // how long pages are read while replays run, at full speed and slowed down
	SharedBuffers string        // PostgreSQL's
	Profile       string        // a file for the CPU profile of this process; empty: none
	Out           io.Writer
	Log           *slog.Logger
}

// part is a measurement that can be run alone.
type part struct {
	name string
	run  func(*bench, context.Context) error
}

// The one that leaves a large batch behind comes last.
var parts = []part{
	{"capture", (*bench).captures},
	{"pages", (*bench).pages},
	{"plan", (*bench).plans},
	{"release", (*bench).releases},
	{"rate", (*bench).rates},
	{"first", (*bench).firsts},
	{"during", (*bench).during},
}

// Parts are the names of what can be measured alone, in the order of a run.
func Parts() []string {
	var names []string
	for _, p := range parts {
		names = append(names, p.name)
	}
	return names
}

// bench is one run on a private server.
type bench struct {
	Options
	pool     *pgxpool.Pool
	capturer *dlq.Capturer
	console  *console.Console
	base     string // URL of the console on pool
	person   *rbac.Principal
	sink     *sink // where the console's replays go
	next     int   // number of the next document
	world    *releaseWorld
}

// Run measures and prints "name: value" lines.
func Run(ctx context.Context, o Options) (err error) {
	for _, name := range o.Only {
		if !slices.Contains(Parts(), name) {
			return fmt.Errorf("bench: there is no part %q; choose of %s", name, strings.Join(Parts(), ", "))
		}
	}
	dir, err := os.MkdirTemp("", "redrive-bench-")
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	if err := os.Chmod(dir, 0o711); err != nil { // the database's own account passes through
		return fmt.Errorf("bench: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // a temporary folder
	pg, err := embeddedpg.Start(ctx, embeddedpg.Config{DataDir: filepath.Join(dir, "pg"), Logger: slog.New(slog.DiscardHandler),
		// Fills write gigabytes; a checkpoint in the middle of one sample would be
		// that sample's alone.
		Settings: []string{"shared_buffers=" + o.SharedBuffers, "max_wal_size=16GB", "checkpoint_timeout=30min"}})
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
	defer func() {
		if b.world != nil {
			b.world.end()
		}
	}()
	return b.serveAnd(ctx, b.measure)
}

func (b *bench) measure(ctx context.Context) (err error) {
	if b.Profile != "" {
		f, err := os.Create(b.Profile)
		if err != nil {
			return fmt.Errorf("bench: profile: %w", err)
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		if err := pprof.StartCPUProfile(f); err != nil {
			return fmt.Errorf("bench: profile: %w", err)
		}
		defer pprof.StopCPUProfile()
	}
	for _, p := range parts {
		if len(b.Only) > 0 && !slices.Contains(b.Only, p.name) {
			continue
		}
		began := time.Now()
		if err := p.run(b, ctx); err != nil {
			return fmt.Errorf("bench: %s: %w", p.name, err)
		}
		b.print("seconds_"+p.name, time.Since(began).Seconds())
	}
	return nil
}

func (b *bench) print(name string, value float64) {
	fmt.Fprintf(b.Out, "%s: %.3g\n", name, value)
}

// median of durations, in seconds.
func median(d []time.Duration) float64 {
	d = slices.Clone(d)
	slices.Sort(d)
	return d[len(d)/2].Seconds()
}

// timed says how long f took.
func timed(f func() error) (time.Duration, error) {
	started := time.Now()
	err := f()
	return time.Since(started), err
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
