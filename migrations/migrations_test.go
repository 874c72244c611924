package migrations_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/redrive-dlq/redrive/migrations"
	"github.com/redrive-dlq/redrive/migrations/testdb"
)

// empty is a pool on a database without our schema; of one connection, which
// Up must not need.
func empty(t *testing.T) *pgxpool.Pool {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(testdb.Empty(t))
	if err != nil {
		t.Fatal(err)
	}
	cfg.MaxConns = 1
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func TestUpFromNothing(t *testing.T) {
	t.Parallel()
	pool := empty(t)
	before, err := migrations.Status(t.Context(), pool)
	if err != nil {
		t.Fatal(err)
	}
	if before.Current != 0 || before.Target == 0 || !before.Pending() || before.Ahead() {
		t.Errorf("status of an empty database: %+v", before)
	}
	var exists bool
	err = pool.QueryRow(t.Context(), `select to_regnamespace('redrive') is not null`).Scan(&exists)
	if err != nil || exists {
		t.Fatalf("Status made the schema: %v, %v", exists, err)
	}
	if err := migrations.Up(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	after, err := migrations.Status(t.Context(), pool)
	if err != nil {
		t.Fatal(err)
	}
	if after.Pending() || after.Current != after.Target || after.RiverCurrent != after.RiverTarget || after.RiverTarget == 0 {
		t.Errorf("status after Up: %+v", after)
	}
	for _, table := range []string{"redrive.dead_jobs", "redrive.river_job", "redrive.goose_db_version"} {
		err := pool.QueryRow(t.Context(), `select to_regclass($1) is not null`, table).Scan(&exists)
		if err != nil || !exists {
			t.Errorf("table %s: %v, %v", table, exists, err)
		}
	}
}

// Everything lives in our schema: the database may be an application's own.
func TestUpTouchesNoOtherSchema(t *testing.T) {
	t.Parallel()
	pool := empty(t)
	if err := migrations.Up(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	var outside int
	err := pool.QueryRow(t.Context(), `
		select (select count(*) from pg_class c join pg_namespace n on n.oid = c.relnamespace
		        where n.nspname = 'public')
		     + (select count(*) from pg_proc p join pg_namespace n on n.oid = p.pronamespace
		        where n.nspname = 'public')
		     + (select count(*) from pg_type t join pg_namespace n on n.oid = t.typnamespace
		        where n.nspname = 'public')`).Scan(&outside)
	if err != nil || outside != 0 {
		t.Errorf("objects outside the schema redrive: %d, %v", outside, err)
	}
}

func TestUpAtOnceFromManyProcesses(t *testing.T) {
	t.Parallel()
	pool := empty(t)
	var wg sync.WaitGroup
	errs := make([]error, 6)
	for i := range errs {
		wg.Go(func() { errs[i] = migrations.Up(t.Context(), pool) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	pending, err := migrations.Pending(t.Context(), pool)
	if err != nil || pending {
		t.Errorf("Pending() = %v, %v", pending, err)
	}
}

func TestNewerDatabaseIsRefused(t *testing.T) {
	t.Parallel()
	pool := testdb.New(t)
	_, err := pool.Exec(t.Context(), `insert into redrive.goose_db_version (version_id, is_applied) values (99999, true)`)
	if err != nil {
		t.Fatal(err)
	}
	if err := migrations.Up(t.Context(), pool); !errors.Is(err, migrations.ErrAhead) {
		t.Errorf("Up on a newer database: %v", err)
	}
	if _, err := migrations.Pending(t.Context(), pool); !errors.Is(err, migrations.ErrAhead) {
		t.Errorf("Pending on a newer database: %v", err)
	}
}

func TestPendingSeesEachMissingPart(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]string{
		"one of ours": `delete from redrive.goose_db_version where version_id = (select max(version_id) from redrive.goose_db_version)`,
		"River's":     `delete from redrive.river_migration where version = (select max(version) from redrive.river_migration)`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := testdb.New(t)
			if _, err := pool.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
			pending, err := migrations.Pending(t.Context(), pool)
			if err != nil || !pending {
				t.Errorf("Pending() = %v, %v; want true", pending, err)
			}
		})
	}
}

func TestUpGivesUpWithItsContext(t *testing.T) {
	t.Parallel()
	pool := empty(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := migrations.Up(ctx, pool); !errors.Is(err, context.Canceled) {
		t.Errorf("Up with a cancelled context: %v", err)
	}
}
