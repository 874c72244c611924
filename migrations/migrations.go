// Package migrations holds the store's schema and brings a database up to it.
package migrations

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// Schema is where everything of Redrive lives, so that it can share a database
// with an application.
const Schema = "redrive"

// versionTable records which of our files were applied.
const versionTable = Schema + ".goose_db_version"

// lockKey is the advisory lock that one migrating process holds ("redrive" in
// ASCII). It covers our files and River's, so two starts never interleave.
const lockKey int64 = 0x72656472697665

// ErrAhead says that the database was migrated by a newer Redrive.
var ErrAhead = errors.New("the database was migrated by a newer version of Redrive: run that version, or restore a backup from before the upgrade")

//go:embed *.sql
var files embed.FS

// Files are the migration files, in goose's format.
func Files() fs.FS { return files }

// Up applies all pending migrations: ours, then those of River, the engine, into
// the same schema. Any number of processes may call it at once; one works while
// the others wait. It returns ErrAhead without touching a newer database.
func Up(ctx context.Context, pool *pgxpool.Pool) error {
	// Connections of our own: a small pool that the caller half uses must not
	// be able to block us while we hold the lock.
	cfg := pool.Config().ConnConfig
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return fmt.Errorf("migrate: connect: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // gives up the lock
	if err := lock(ctx, conn); err != nil {
		return fmt.Errorf("migrate: wait for another process that migrates: %w", err)
	}
	status, err := read(ctx, conn)
	if err != nil {
		return err
	}
	if status.Ahead() {
		return ErrAhead
	}
	if err := ensureSchema(ctx, conn); err != nil {
		return err
	}
	db := stdlib.OpenDB(*cfg)
	defer func() { _ = db.Close() }()
	provider, err := newProvider(db)
	if err != nil {
		return err
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return upRiver(ctx, cfg)
}

func newProvider(db *sql.DB) (*goose.Provider, error) {
	p, err := goose.NewProvider(goose.DialectPostgres, db, files,
		goose.WithTableName(versionTable),
		goose.WithDisableGlobalRegistry(true),
		goose.WithLogger(goose.NopLogger()),
	)
	if err != nil {
		return nil, fmt.Errorf("migrate: read the migration files: %w", err)
	}
	return p, nil
}

// lock polls: a session that waits inside pg_advisory_lock holds a snapshot, on
// which a CREATE INDEX CONCURRENTLY of the migrating session would wait forever.
func lock(ctx context.Context, conn *pgx.Conn) error {
	for {
		var got bool
		if err := conn.QueryRow(ctx, `select pg_try_advisory_lock($1)`, lockKey).Scan(&got); err != nil {
			return err
		}
		if got {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// ensureSchema asks first: CREATE SCHEMA IF NOT EXISTS needs the right to
// create one even where it exists.
func ensureSchema(ctx context.Context, conn *pgx.Conn) error {
	var exists bool
	err := conn.QueryRow(ctx, `select to_regnamespace($1) is not null`, Schema).Scan(&exists)
	if err == nil && !exists {
		_, err = conn.Exec(ctx, `create schema `+Schema)
	}
	if err != nil {
		return fmt.Errorf("migrate: make the schema %s: %w", Schema, err)
	}
	return nil
}

func upRiver(ctx context.Context, cfg *pgx.ConnConfig) error {
	pool, err := pgxpool.ParseConfig("")
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	pool.ConnConfig = cfg.Copy()
	pool.MaxConns = 2
	p, err := pgxpool.NewWithConfig(ctx, pool)
	if err != nil {
		return fmt.Errorf("migrate: connect: %w", err)
	}
	defer p.Close()
	m, err := rivermigrate.New(riverpgxv5.New(p), &rivermigrate.Config{Schema: Schema})
	if err != nil {
		return fmt.Errorf("migrate: River: %w", err)
	}
	if _, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return fmt.Errorf("migrate: River's tables: %w", err)
	}
	return nil
}

// sources are the versions of the embedded files, ascending.
func sources() ([]int64, error) {
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return nil, fmt.Errorf("migrate: list the files: %w", err)
	}
	var versions []int64
	for _, name := range names {
		v, err := goose.NumericComponent(name)
		if err != nil {
			return nil, fmt.Errorf("migrate: name of %s: %w", name, err)
		}
		versions = append(versions, v)
	}
	slices.Sort(versions)
	return versions, nil
}
