package testdb_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/migrations"
	"github.com/redrive-dlq/redrive/migrations/testdb"
)

func TestNewIsMigrated(t *testing.T) {
	t.Parallel()
	pool := testdb.New(t)
	pending, err := migrations.Pending(t.Context(), pool)
	if err != nil || pending {
		t.Fatalf("Pending() = %v, %v; want false, nil", pending, err)
	}
}

func TestDatabasesAreApart(t *testing.T) {
	t.Parallel()
	a, b := testdb.New(t), testdb.New(t)
	if _, err := a.Exec(t.Context(), `create table public.only_in_a ()`); err != nil {
		t.Fatal(err)
	}
	var there bool
	err := b.QueryRow(t.Context(), `select to_regclass('public.only_in_a') is not null`).Scan(&there)
	if err != nil || there {
		t.Fatalf("table of one test in another's database: %v, %v", there, err)
	}
}

func TestDroppedWhenTheTestEnds(t *testing.T) {
	t.Parallel()
	var name, admin string
	t.Run("inner", func(t *testing.T) {
		pool := testdb.New(t)
		if err := pool.QueryRow(t.Context(), `select current_database()`).Scan(&name); err != nil {
			t.Fatal(err)
		}
	})
	admin = testdb.Empty(t)
	conn, err := pgx.Connect(t.Context(), admin)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	var there bool
	err = conn.QueryRow(t.Context(), `select exists (select from pg_database where datname = $1)`, name).Scan(&there)
	if err != nil || there {
		t.Fatalf("database %q after its test: exists %v, %v", name, there, err)
	}
}

func TestEmptyHoldsNothingOfOurs(t *testing.T) {
	t.Parallel()
	conn, err := pgx.Connect(t.Context(), testdb.Empty(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	var there bool
	err = conn.QueryRow(t.Context(), `select to_regnamespace('redrive') is not null`).Scan(&there)
	if err != nil || there {
		t.Fatalf("schema redrive in an empty database: %v, %v", there, err)
	}
}

func BenchmarkNewURL(b *testing.B) {
	for b.Loop() {
		testdb.NewURL(b)
	}
}
