package rbac_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/redrive-dlq/redrive/migrations/testdb"
	"github.com/redrive-dlq/redrive/rbac"
)

const passphrase = "walnut harbour violin sky"

// clock is a time that tests move.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.at }

func (c *clock) advance(d time.Duration) { c.mu.Lock(); defer c.mu.Unlock(); c.at = c.at.Add(d) }

type bundle struct {
	pool   *pgxpool.Pool
	people *rbac.Service
	hasher *rbac.Hasher
	clock  *clock
	root   *rbac.Principal
}

func setup(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{pool: testdb.New(t), hasher: rbac.NewHasher(2), root: rbac.CommandLine("test"),
		clock: &clock{at: time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)}}
	b.people = rbac.New(b.pool, b.clock.now, b.hasher)
	return b
}

func (b *bundle) user(t *testing.T, email string, grants ...rbac.Grant) int64 {
	t.Helper()
	if len(grants) == 0 {
		grants = []rbac.Grant{{Role: rbac.Operator}}
	}
	id, err := b.people.CreateUser(context.Background(), b.root, rbac.NewUser{Email: email, Passphrase: passphrase, Grants: grants})
	if err != nil {
		t.Fatalf("create %s: %v", email, err)
	}
	return id
}

func (b *bundle) attempt(email, pass string) rbac.Attempt {
	return rbac.Attempt{Email: email, Passphrase: pass, IP: "192.0.2.7", UserAgent: "test", RequestID: "r1"}
}

func (b *bundle) signIn(t *testing.T, email string) (*rbac.Session, *rbac.Principal) {
	t.Helper()
	x, err := b.people.SignIn(context.Background(), b.attempt(email, passphrase))
	if err != nil {
		t.Fatalf("sign in %s: %v", email, err)
	}
	p, err := b.people.Person(context.Background(), x)
	if err != nil || p == nil {
		t.Fatalf("person %s: %v, %v", email, p, err)
	}
	return x, p
}

func (b *bundle) count(t *testing.T, sql string, args ...any) int {
	t.Helper()
	var n int
	if err := b.pool.QueryRow(context.Background(), sql, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func (b *bundle) entries(t *testing.T, action string) int {
	t.Helper()
	return b.count(t, `SELECT count(*) FROM redrive.audit_entries WHERE action = $1`, action)
}

func (b *bundle) seedDemo(t *testing.T) {
	t.Helper()
	ctx := context.Background()
	if err := pgx.BeginFunc(ctx, b.pool, func(tx pgx.Tx) error { return b.people.SeedDemo(ctx, tx) }); err != nil {
		t.Fatalf("seed: %v", err)
	}
}
