package river

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/dlq/source"
	"github.com/redrive-dlq/redrive/migrations/testdb"
)

const (
	testSchema = "App_River" // a name that needs quoting
	testEnv    = "production"
	testName   = "app"
)

// bundle is a store with an application's River beside it or elsewhere.
type bundle struct {
	t     *testing.T
	ctx   context.Context
	store *pgxpool.Pool
	from  *pgxpool.Pool // the source's database
	cfg   Config
	*Reader
}

// The tests store payloads in clear, behind the one byte that envelope.Plain marks
// them with: hence substr(bytes, 2).

// setup puts River into the store's own database.
func setup(t *testing.T) *bundle {
	t.Helper()
	store := testdb.New(t)
	return newBundle(t, store, store, true)
}

// setupElsewhere gives River a database of its own.
func setupElsewhere(t *testing.T) *bundle {
	t.Helper()
	from, err := pgxpool.New(t.Context(), testdb.Empty(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(from.Close)
	return newBundle(t, testdb.New(t), from, false)
}

func newBundle(t *testing.T, store, from *pgxpool.Pool, same bool) *bundle {
	t.Helper()
	b := &bundle{t: t, ctx: t.Context(), store: store, from: from}
	b.exec(from, `CREATE SCHEMA `+pgx.Identifier{testSchema}.Sanitize())
	m, err := rivermigrate.New(riverpgxv5.New(from), &rivermigrate.Config{Schema: testSchema, Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Migrate(b.ctx, rivermigrate.DirectionUp, nil); err != nil {
		t.Fatal(err)
	}
	b.cfg = Config{
		Store:    store,
		Source:   Source{Environment: testEnv, Name: testName, Schema: testSchema, Client: "app-prod", Pool: from, Same: same},
		Capturer: dlq.NewCapturer(nil, nil, nil),
		Logger:   quiet(),
	}
	b.Reader = b.reader()
	if err := source.Register(b.ctx, store, b.id, source.KindRiver); err != nil {
		t.Fatal(err)
	}
	return b
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// reader is another process that reads the same source.
func (b *bundle) reader() *Reader {
	b.t.Helper()
	r, err := New(b.cfg)
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

func (b *bundle) exec(pool *pgxpool.Pool, sql string, args ...any) {
	b.t.Helper()
	if _, err := pool.Exec(b.ctx, sql, args...); err != nil {
		b.t.Fatalf("%v\n%s", err, sql)
	}
}

// dead writes a dead row as River does and returns its id. Columns are SQL: what
// is not given has River's defaults.
func (b *bundle) dead(set map[string]string) int64 {
	b.t.Helper()
	columns := map[string]string{
		"kind": `'send_welcome_email'`, "state": `'discarded'`, "args": `'{}'`, "attempt": "3", "max_attempts": "3",
		"finalized_at": "now()",
		"errors":       `ARRAY['{"at":"2026-01-02T03:04:05Z","attempt":3,"error":"InvalidRecipient: no such address","trace":""}'::jsonb]`,
	}
	for name, value := range set {
		columns[name] = value
	}
	names, values := "", ""
	for name, value := range columns {
		names, values = names+", "+name, values+", "+value
	}
	return one[int64](b, b.from, `INSERT INTO `+b.table+` (`+names[2:]+`) VALUES (`+values[2:]+`) RETURNING id`)
}

// one reads one value.
func one[T any](b *bundle, pool *pgxpool.Pool, sql string, args ...any) T {
	b.t.Helper()
	rows, err := pool.Query(b.ctx, sql, args...)
	if err == nil {
		var v T
		if v, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[T]); err == nil {
			return v
		}
	}
	b.t.Fatalf("%v\n%s", err, sql)
	panic("unreachable")
}

func (b *bundle) poll() {
	b.t.Helper()
	if err := b.Poll(b.ctx); err != nil {
		b.t.Fatalf("poll: %v", err)
	}
}

func (b *bundle) complete() {
	b.t.Helper()
	if err := b.CompletePass(b.ctx); err != nil {
		b.t.Fatalf("complete pass: %v", err)
	}
}

// want compares one value.
func want[T comparable](b *bundle, what string, wanted T, sql string, args ...any) {
	b.t.Helper()
	if got := one[T](b, b.store, sql, args...); got != wanted {
		b.t.Errorf("%s: got %v, want %v", what, got, wanted)
	}
}

// start runs a reader and returns what stops it, waiting for its end.
func start(t *testing.T, r *Reader) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	return func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("Run: %v", err)
			}
		case <-time.After(20 * time.Second):
			t.Error("Run did not end")
		}
	}
}

// eventually waits for a value.
func eventually[T comparable](b *bundle, what string, wanted T, sql string, args ...any) {
	b.t.Helper()
	var got T
	for range 600 {
		if got = one[T](b, b.store, sql, args...); got == wanted {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	b.t.Fatalf("%s: got %v, want %v", what, got, wanted)
}
