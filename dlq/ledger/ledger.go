// Package ledger keeps one row per effect in the real world, named by
// (environment, scope, key): begun, done with its result, or failed. The rules
// live in SQL functions, so that Go, SQL and the API share them; this package
// is their Go face.
package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/redrive-dlq/redrive/dlq/problem"
)

// Answer is what Begin says.
type Answer string

// The answers of Begin.
const (
	Begun   Answer = "begun"   // go ahead
	Done    Answer = "done"    // it is in place already: don't repeat it
	Unknown Answer = "unknown" // begun before, and nobody knows its end
)

// MaxKey is the longest key in bytes: the primary key has to fit a B-tree page.
const MaxKey = 1024

// Key names one effect. Environment is part of it: a staging key never blocks
// a production effect.
type Key struct{ Environment, Scope, Key string }

func (k Key) check() error {
	switch {
	case k.Environment == "" || k.Scope == "" || k.Key == "":
		return problem.New(problem.Invalid, "An effect needs an environment, a scope and a key that are not empty.")
	case len(k.Key) > MaxKey || len(k.Scope) > MaxKey || len(k.Environment) > MaxKey:
		return problem.New(problem.Invalid, "The environment, scope or key of an effect is longer than %d bytes.", MaxKey)
	}
	return nil
}

// Row is one effect as the ledger knows it. Result is raw JSON as the worker
// told it; redact it before a person reads it.
type Row struct {
	State      string // begun, done, failed
	Result     string
	EffectID   string
	Begins     int
	BegunAt    time.Time
	FinishedAt *time.Time
	SettledBy  string
}

// DB is what reads and writes need: a pool or a transaction.
type DB interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Begin says in a transaction of its own, committed on return, that an effect
// is about to happen. Call it before the outside call.
func Begin(ctx context.Context, pool *pgxpool.Pool, k Key) (Answer, error) {
	if err := k.check(); err != nil {
		return "", err
	}
	var a Answer
	err := pool.QueryRow(ctx, `SELECT redrive.begin_effect($1, $2, $3)`, k.Environment, k.Scope, k.Key).Scan(&a)
	if err != nil {
		return "", fmt.Errorf("ledger: begin: %w", err)
	}
	return a, nil
}

// Finish writes that the effect happened. result is JSON; its "id" is kept as
// the provider's id. What is done stays done, with its first result. Other
// open jobs and waiting replays of the key end as already done in the same
// transaction.
func Finish(ctx context.Context, db DB, k Key, result json.RawMessage) error {
	return finish(ctx, db, k, result, "done")
}

// Fail writes that the effect certainly did not happen, so that it may begin again.
func Fail(ctx context.Context, db DB, k Key, result json.RawMessage) error {
	return finish(ctx, db, k, result, "failed")
}

func finish(ctx context.Context, db DB, k Key, result json.RawMessage, outcome string) error {
	if err := k.check(); err != nil {
		return err
	}
	if len(result) == 0 {
		result = json.RawMessage("null")
	}
	if !json.Valid(result) {
		return problem.At(problem.Invalid, "result", "The result of an effect must be JSON.")
	}
	_, err := db.Exec(ctx, `SELECT redrive.finish_effect($1, $2, $3, $4::text::json, $5)`,
		k.Environment, k.Scope, k.Key, string(result), outcome)
	if err != nil {
		return fmt.Errorf("ledger: finish: %w", err)
	}
	return nil
}

// Of reads the row of a key; ok is false when there is none or the key is empty.
func Of(ctx context.Context, db DB, k Key) (row Row, ok bool, err error) {
	if k.Key == "" {
		return Row{}, false, nil
	}
	err = db.QueryRow(ctx, `
		SELECT state, result, effect_id, begins, begun_at, finished_at, settled_by
		FROM redrive.ledger
		WHERE environment = $1 AND scope = $2 AND key = $3`, k.Environment, k.Scope, k.Key).
		Scan(&row.State, &row.Result, &row.EffectID, &row.Begins, &row.BegunAt, &row.FinishedAt, &row.SettledBy)
	if errors.Is(err, pgx.ErrNoRows) {
		return Row{}, false, nil
	}
	if err != nil {
		return Row{}, false, fmt.Errorf("ledger: read: %w", err)
	}
	return row, true, nil
}

// Lock takes the key's lock until the end of the transaction. Everything that
// decides by the ledger and then acts takes it first; lock order is key,
// replays, dead jobs.
func Lock(ctx context.Context, tx pgx.Tx, k Key) error {
	if k.Key == "" {
		return nil
	}
	_, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(redrive.lock_key($1, $2, $3))`, k.Environment, k.Scope, k.Key)
	if err != nil {
		return fmt.Errorf("ledger: lock key: %w", err)
	}
	return nil
}

// GiveWay makes the transaction give up a lock that it can't have within half
// a second. A caller's open transaction may hold a job's row and then ask for
// its key, which we hold: ours ends then, before PostgreSQL looks for a
// deadlock and ends the caller's. PostgreSQL ends it too, and lets its locks go,
// when its process says nothing for five seconds: stopped, or its machine gone.
func GiveWay(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `SELECT set_config('lock_timeout', '500ms', true), set_config('idle_in_transaction_session_timeout', '5s', true)`)
	if err != nil {
		return fmt.Errorf("ledger: give way: %w", err)
	}
	return nil
}

// BeginGivingWay begins a transaction that gives way, in one go, and whose locks
// many wait for: its process may be silent for a second.
const BeginGivingWay = `BEGIN; SET LOCAL lock_timeout = '500ms'; SET LOCAL idle_in_transaction_session_timeout = '1s'`

// IsBusy reports whether a transaction gave way.
func IsBusy(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "55P03" || pg.Code == "40P01")
}

// Busy turns the error of a transaction that gave way into one that says so;
// any other error stays as it is.
func Busy(err error) error {
	if IsBusy(err) {
		return problem.Wrap(err, problem.Conflict, "A worker is writing to this job or key right now. Nothing was changed; try again in a moment.")
	}
	return err
}
