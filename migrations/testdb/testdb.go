// Package testdb gives each test a PostgreSQL database of its own, cloned from
// a migrated template, on a server that nobody has to start.
//
// The first call in a test process starts a private server (see
// internal/embeddedpg), copied from a cluster that was made and migrated once
// and is kept in the temporary folder under a hash of the migration files. The
// server ends with the process; what a killed one leaves is removed by the next.
//
// TESTDB_URL, when set, names a server to use instead. Its user needs the right
// to create databases.
//
// Tests that look for leaked goroutines start looking after their first New
// (goleak.IgnoreCurrent): the server's two goroutines stay until the process
// ends.
package testdb

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// maxConns of a test's pool; the private server takes 200 in all.
const maxConns = 16

// opTimeout bounds each step of setting up and tearing down.
const opTimeout = 2 * time.Minute

// server is where this process creates its databases.
type server struct {
	url      string // of a database to connect to for CREATE DATABASE
	template string
}

var shared = sync.OnceValues(func() (server, error) {
	ctx, cancel := context.WithTimeout(context.Background(), opTimeout)
	defer cancel()
	if u := os.Getenv("TESTDB_URL"); u != "" {
		return attach(ctx, u)
	}
	return startPrivate(ctx)
})

// New returns a pool on a fresh, migrated database. The pool is closed and the
// database dropped when the test ends. Its address is
// pool.Config().ConnString().
func New(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return open(t, NewURL(t))
}

// NewURL returns the address of a fresh, migrated database, for tests that open
// their own pools or start other processes. It is dropped when the test ends.
func NewURL(t testing.TB) string {
	t.Helper()
	s := get(t)
	return s.create(t, s.template)
}

// Empty returns the address of a database without anything of Redrive in it,
// such as an application's own. It is dropped when the test ends.
func Empty(t testing.TB) string {
	t.Helper()
	return get(t).create(t, "template0")
}

func get(t testing.TB) server {
	t.Helper()
	s, err := shared()
	if err != nil {
		t.Fatalf("testdb: %v", err)
	}
	return s
}

func open(t testing.TB, address string) *pgxpool.Pool {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(address)
	if err != nil {
		t.Fatalf("testdb: read the address: %v", err)
	}
	cfg.MaxConns = maxConns
	pool, err := pgxpool.NewWithConfig(context.Background(), cfg)
	if err != nil {
		t.Fatalf("testdb: open a pool: %v", err)
	}
	t.Cleanup(func() {
		closed := make(chan struct{})
		go func() { pool.Close(); close(closed) }()
		select {
		case <-closed:
		case <-time.After(15 * time.Second):
			t.Errorf("testdb: the test holds %d connections that it never released", pool.Stat().AcquiredConns())
		}
	})
	return pool
}

// create clones a database and returns its address.
func (s server) create(t testing.TB, template string) string {
	t.Helper()
	name := "test_" + strings.ToLower(rand.Text()[:16])
	ctx, cancel := context.WithTimeout(context.Background(), opTimeout)
	defer cancel()
	if err := s.exec(ctx, fmt.Sprintf(`create database %s template %s`, name, template)); err != nil {
		t.Fatalf("testdb: create a database: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), opTimeout)
		defer cancel()
		if err := s.exec(ctx, fmt.Sprintf(`drop database if exists %s with (force)`, name)); err != nil {
			t.Errorf("testdb: drop the database: %v", err)
		}
	})
	return withDatabase(t, s.url, name)
}

func (s server) exec(ctx context.Context, sql string) error {
	conn, err := pgx.Connect(ctx, s.url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	_, err = conn.Exec(ctx, sql)
	return err
}

func withDatabase(t testing.TB, address, name string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal("testdb: TESTDB_URL is not a postgres:// address")
	}
	u.Path = "/" + name
	return u.String()
}
