package testdb

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/redrive-dlq/redrive/migrations"
)

// recipe changes the hash when this package makes its template differently.
const recipe = "1"

// templateLock is the advisory lock of whoever makes the template on a server
// that several test processes share ("testdb" in ASCII).
const templateLock int64 = 0x746573746462

// hash names what a template is made of: the migration files and the version
// of River, which brings migrations of its own.
func hash() (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "recipe %s\n", recipe)
	names, err := fs.Glob(migrations.Files(), "*.sql")
	if err != nil {
		return "", err
	}
	for _, name := range names {
		b, err := fs.ReadFile(migrations.Files(), name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %d\n", name, len(b))
		h.Write(b)
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if strings.HasPrefix(dep.Path, "github.com/riverqueue/river") {
				fmt.Fprintf(h, "%s %s\n", dep.Path, dep.Version)
			}
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}

// attach uses a server that is there, and makes the template on it if needed.
func attach(ctx context.Context, address string) (server, error) {
	sum, err := hash()
	if err != nil {
		return server{}, fmt.Errorf("hash the migrations: %w", err)
	}
	s := server{url: address, template: "redrive_template_" + sum}
	if err := s.ensureTemplate(ctx); err != nil {
		return server{}, fmt.Errorf("make the template database: %w", err)
	}
	return s, nil
}

func (s server) ensureTemplate(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // and gives up the lock
	for got := false; !got; {
		if err := conn.QueryRow(ctx, `select pg_try_advisory_lock($1)`, templateLock).Scan(&got); err != nil {
			return err
		}
		if !got {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(100 * time.Millisecond):
			}
		}
	}
	var ready bool
	err = conn.QueryRow(ctx, `
		select exists (
			select from pg_database
			where datname = $1 and datistemplate)`, s.template).Scan(&ready)
	if err != nil || ready {
		return err
	}
	// One that is not marked as template was left half made.
	if _, err := conn.Exec(ctx, `drop database if exists `+s.template+` with (force)`); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, `create database `+s.template+` template template0`); err != nil {
		return err
	}
	if err := s.migrate(ctx); err != nil {
		return err
	}
	_, err = conn.Exec(ctx, `alter database `+s.template+` is_template true allow_connections false`)
	return err
}

func (s server) migrate(ctx context.Context) error {
	u, err := url.Parse(s.url)
	if err != nil {
		return fmt.Errorf("TESTDB_URL is not a postgres:// address")
	}
	u.Path = "/" + s.template
	pool, err := pgxpool.New(ctx, u.String())
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := migrations.Up(ctx, pool); err != nil {
		return err
	}
	// Frozen and analysed once, so that no test's autovacuum has to.
	_, err = pool.Exec(ctx, `vacuum (freeze, analyze)`)
	return err
}
