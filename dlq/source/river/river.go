// Package river reads the deaths of a River queue (PostgreSQL) into the store.
//
// A death there is a row of river_job that is discarded or cancelled, known by
// (id, attempt, finalized_at). River's clients write finalized_at by their own
// clocks and commit late, so no watermark is kept: each poll anti-joins the last
// hour with what is taken already, and a complete pass, at start and every few
// minutes, looks at all rows. While Redrive runs within River's retention no
// death is missed; with the trigger (InstallTrigger) not even those whose row is
// deleted at once.
//
// Nothing here writes to River's tables, and no River client runs: one that
// leads would apply its own retention to the application's jobs.
package river

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/dlq/source"
)

// Limits of one step. A chunk is one transaction of the store.
const (
	chunkRows  = 250     // deaths captured in one transaction
	chunkBytes = 4 << 20 // of their rows as stored, which may be compressed
	pageRows   = 500     // rows looked at in one step of a complete pass

	defaultPoll     = 500 * time.Millisecond
	defaultComplete = 3 * time.Minute
	defaultTimeout  = 30 * time.Second
	recentWindow    = "1 hour"
)

// Source is one River queue in one environment.
type Source struct {
	Environment string
	Name        string
	Schema      string        // River's schema; "" = the search path's
	Client      string        // the catalogue's name of this River, for replays; may be empty
	Pool        *pgxpool.Pool // of the source's database; may be nil when Same
	Same        bool          // River lives in the store's database
}

// Capturer takes deaths into the store inside the caller's transaction.
// *dlq.Capturer is one.
type Capturer interface {
	Capture(ctx context.Context, tx pgx.Tx, docs []*dlq.Document) ([]dlq.Captured, error)
	Quarantine(ctx context.Context, tx pgx.Tx, e dlq.QuarantineEntry) error
}

// Config is what a Reader needs. Zero durations mean the defaults: a poll every
// 500 ms, a complete pass every 3 minutes, 30 seconds for one statement.
type Config struct {
	Store         *pgxpool.Pool
	Source        Source
	Capturer      Capturer
	PollEvery     time.Duration
	CompleteEvery time.Duration
	Timeout       time.Duration
	Logger        *slog.Logger // nil = the default logger
}

// Reader reads one source. Any number of them, in any number of processes, may
// read the same source at once: each death is captured once.
type Reader struct {
	cfg    Config
	src    Source
	store  *pgxpool.Pool
	from   *pgxpool.Pool // the source's database
	id     source.ID
	table  string // river_job, qualified and quoted
	log    *slog.Logger
	health *health
	pass   pass
}

// New checks the configuration. Errors: problem.Invalid, naming the field.
func New(cfg Config) (*Reader, error) {
	src := cfg.Source
	switch {
	case cfg.Store == nil || cfg.Capturer == nil:
		return nil, problem.New(problem.Invalid, "A River source needs the store's pool and a capturer.")
	case src.Environment == "":
		return nil, problem.At(problem.Invalid, "environment", "The River source %q has no environment: name one.", src.Name)
	case src.Name == "":
		return nil, problem.At(problem.Invalid, "name", "A River source of %s has no name: give it one.", src.Environment)
	case src.Pool == nil && !src.Same:
		return nil, problem.At(problem.Invalid, "url", "The River source %q lives in another database: give its address.", src.Name)
	}
	r := &Reader{cfg: cfg, src: src, store: cfg.Store, from: src.Pool, log: cfg.Logger}
	if r.from == nil {
		r.from = cfg.Store
	}
	if r.log == nil {
		r.log = slog.Default()
	}
	r.log = r.log.With("source", src.Name, "environment", src.Environment)
	r.id = source.ID{Environment: src.Environment, Name: src.Name}
	r.table = jobTable(src.Schema)
	r.cfg.PollEvery = orDefault(cfg.PollEvery, defaultPoll)
	r.cfg.CompleteEvery = orDefault(cfg.CompleteEvery, defaultComplete)
	r.cfg.Timeout = orDefault(cfg.Timeout, defaultTimeout)
	r.health = newHealth(cfg.Store, r.id, r.log)
	return r, nil
}

// jobTable is the quoted name of River's table.
func jobTable(schema string) string {
	if schema == "" {
		return "river_job"
	}
	return pgx.Identifier{schema, "river_job"}.Sanitize()
}

func orDefault(d, fallback time.Duration) time.Duration {
	if d <= 0 {
		return fallback
	}
	return d
}

// named are the arguments that almost every statement takes.
func (r *Reader) named() pgx.NamedArgs {
	return pgx.NamedArgs{"environment": r.src.Environment, "source": r.src.Name}
}

// bounded gives one statement, or one transaction, its time.
func (r *Reader) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, r.cfg.Timeout)
}
