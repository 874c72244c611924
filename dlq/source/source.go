// Package source holds what the console knows of the places that jobs die in:
// one row per environment and name, with when it was last read and what is
// wrong with it. The packages inside it read one kind of source each.
package source

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// The kinds of sources.
const (
	KindRiver = "river" // read by us
	KindHTTP  = "http"  // POST /api/v1/dead-jobs
	KindSQL   = "sql"   // redrive.capture_dead_job
	KindGo    = "go"    // the Go function, in a caller's transaction
)

// ID names a source; environment is part of its identity.
type ID struct {
	Environment string
	Name        string
}

// DB is a pool, a connection or a transaction of the store.
type DB interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Status is one source as the console shows it. LastError is redacted.
type Status struct {
	ID
	Kind           string
	LastSeenAt     *time.Time // last successful poll or last document; nil = never
	LastCompleteAt *time.Time // end of the last complete pass; nil = never, or not that kind
	LastError      string     // "" = healthy
	LastErrorAt    *time.Time
	Captured       int64  // deaths taken by polls
	WaitingRetry   *int64 // jobs that wait for their next attempt; nil = the source doesn't tell
	InFlight       *int64 // jobs being worked
}

// Register makes the source's row, or corrects its kind. It keeps everything
// else, so that it may run at each start of each process.
func Register(ctx context.Context, db DB, id ID, kind string) error {
	return exec(ctx, db, "register", `
		INSERT INTO redrive.sources (environment, name, kind)
		VALUES (@environment, @name, @kind)
		ON CONFLICT (environment, name) DO UPDATE
		    SET kind = excluded.kind
		    WHERE sources.kind <> excluded.kind`,
		pgx.NamedArgs{"environment": id.Environment, "name": id.Name, "kind": kind})
}

// Seen records a successful read and with it that the source is healthy.
func Seen(ctx context.Context, db DB, id ID) error {
	return exec(ctx, db, "seen", `
		UPDATE redrive.sources
		SET last_seen_at = now(), last_error = ''
		WHERE environment = @environment AND name = @name`, args(id))
}

// Failed records what is wrong with the source. The message is for people; the
// caller has redacted it.
func Failed(ctx context.Context, db DB, id ID, message string) error {
	a := args(id)
	a["error"] = message
	return exec(ctx, db, "failed", `
		UPDATE redrive.sources
		SET last_error = @error, last_error_at = now()
		WHERE environment = @environment AND name = @name`, a)
}

// Completed records the end of a complete pass.
func Completed(ctx context.Context, db DB, id ID) error {
	return exec(ctx, db, "completed", `
		UPDATE redrive.sources
		SET last_complete_at = now()
		WHERE environment = @environment AND name = @name`, args(id))
}

// AddCaptured adds n deaths to the source's count, in the transaction that
// captured them.
func AddCaptured(ctx context.Context, tx pgx.Tx, id ID, n int) error {
	a := args(id)
	a["n"] = n
	return exec(ctx, tx, "count captures", `
		UPDATE redrive.sources
		SET captured = captured + @n
		WHERE environment = @environment AND name = @name`, a)
}

// SetLive records how many jobs wait to be retried and how many are worked now.
func SetLive(ctx context.Context, db DB, id ID, waiting, inFlight int64) error {
	a := args(id)
	a["waiting"], a["in_flight"] = waiting, inFlight
	return exec(ctx, db, "count live jobs", `
		UPDATE redrive.sources
		SET waiting_retry = @waiting, in_flight = @in_flight
		WHERE environment = @environment AND name = @name`, a)
}

// List returns the sources of the environments, all of them when environments
// is nil, by environment and name.
func List(ctx context.Context, db DB, environments []string) ([]Status, error) {
	rows, err := db.Query(ctx, `
		SELECT environment, name, kind, last_seen_at, last_complete_at,
		       last_error, last_error_at, captured, waiting_retry, in_flight
		FROM redrive.sources
		WHERE @environments::text[] IS NULL OR environment = ANY(@environments)
		ORDER BY environment, name`, pgx.NamedArgs{"environments": environments})
	if err != nil {
		return nil, fmt.Errorf("source: list: %w", err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Status, error) {
		var s Status
		err := row.Scan(&s.Environment, &s.Name, &s.Kind, &s.LastSeenAt, &s.LastCompleteAt,
			&s.LastError, &s.LastErrorAt, &s.Captured, &s.WaitingRetry, &s.InFlight)
		return s, err
	})
	if err != nil {
		return nil, fmt.Errorf("source: list: %w", err)
	}
	return list, nil
}

func args(id ID) pgx.NamedArgs {
	return pgx.NamedArgs{"environment": id.Environment, "name": id.Name}
}

func exec(ctx context.Context, db DB, what, sql string, args pgx.NamedArgs) error {
	if _, err := db.Exec(ctx, sql, args); err != nil {
		return fmt.Errorf("source: %s: %w", what, err)
	}
	return nil
}
