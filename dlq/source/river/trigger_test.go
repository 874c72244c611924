package river

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/redrive-dlq/redrive/dlq/problem"
)

func (b *bundle) install() {
	b.t.Helper()
	err := inTx(b.ctx, b.store, func(tx pgx.Tx) error {
		return InstallTrigger(b.ctx, tx, testSchema, testEnv, testName)
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bundle) die(id int64) {
	b.t.Helper()
	b.exec(b.from, `UPDATE `+b.table+` SET state = 'discarded', finalized_at = now() WHERE id = $1`, id)
}

func (b *bundle) running() int64 {
	b.t.Helper()
	return b.dead(map[string]string{"state": `'running'`, "finalized_at": "NULL", "args": `'{"n": 1.10, "id": 9007199254740993}'`})
}

func TestTheTriggerMissesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	before := b.dead(nil)
	b.install()
	b.install() // may be repeated
	atOnce, twice := b.running(), b.running()
	b.die(atOnce)
	text := one[string](b, b.from, `SELECT args::text FROM `+b.table+` WHERE id = $1`, atOnce)
	b.exec(b.from, `DELETE FROM `+b.table+` WHERE id = ANY($1)`, []int64{before, atOnce})
	b.die(twice)
	b.exec(b.from, `UPDATE `+b.table+` SET state = 'running', finalized_at = NULL, attempt = 4 WHERE id = $1`, twice)
	b.die(twice)
	b.poll()
	b.poll()
	want(b, "jobs", 3, `SELECT count(*)::int FROM redrive.dead_jobs`)
	want(b, "both deaths between two polls", 2, `SELECT generation FROM redrive.dead_jobs WHERE job_id = $1::bigint::text`, twice)
	want(b, "inbox", 0, `SELECT count(*)::int FROM redrive.river_inbox`)
	want(b, "payload", text, `
		SELECT convert_from(substr(p.bytes, 2), 'UTF8') FROM redrive.payloads p JOIN redrive.dead_jobs d ON d.id = p.dead_job_id
		WHERE d.job_id = $1::bigint::text`, atOnce)

	// River's cleaner deletes what is taken: not told again.
	b.exec(b.from, `DELETE FROM `+b.table)
	want(b, "inbox after the cleaner", 0, `SELECT count(*)::int FROM redrive.river_inbox`)

	err := inTx(b.ctx, b.store, func(tx pgx.Tx) error { return RemoveTrigger(b.ctx, tx, testSchema) })
	if err != nil {
		t.Fatal(err)
	}
	last := b.running()
	b.die(last)
	want(b, "inbox after removal", 0, `SELECT count(*)::int FROM redrive.river_inbox`)
}

func TestAnUnreadableInboxEntryIsQuarantined(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i, job := range []string{`not json`, `{"id":"x"}`, `{"id":5,"kind":"k","finalized_at":"yesterday"}`, `{}`} {
		b.exec(b.store, `INSERT INTO redrive.river_inbox (environment, source, job) VALUES ($1, $2, $3)`, testEnv, testName, job)
		b.exec(b.store, `INSERT INTO redrive.river_inbox (environment, source, job) VALUES ($1, $2, $3)`, testEnv, testName,
			fmt.Sprintf(`{"id":%d,"kind":"k","args":{},"attempt":1,"state":"discarded","queue":"q","finalized_at":"2026-01-02T03:04:05+05:30"}`, 100+i))
	}
	b.poll()
	want(b, "quarantined", 4, `SELECT count(*)::int FROM redrive.quarantine WHERE door = 'river'`)
	want(b, "captured", 4, `SELECT count(*)::int FROM redrive.dead_jobs`)
	want(b, "inbox", 0, `SELECT count(*)::int FROM redrive.river_inbox`)
}

// The application's role needs no right in our schema.
func TestTheTriggerWorksForARoleWithoutRightsHere(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.install()
	id := b.running()
	name := "app_" + one[string](b, b.store, `SELECT current_database()`)
	role := pgx.Identifier{name}.Sanitize()
	b.exec(b.store, `CREATE ROLE `+role)
	b.exec(b.store, `GRANT USAGE ON SCHEMA "App_River" TO `+role)
	b.exec(b.store, `GRANT SELECT, UPDATE, DELETE ON `+b.table+` TO `+role)
	t.Cleanup(func() { dropRole(b.store.Config(), role) })
	err := inTx(b.ctx, b.store, func(tx pgx.Tx) error {
		if _, err := tx.Exec(b.ctx, `SET LOCAL ROLE `+role); err != nil {
			return err
		}
		_, err := tx.Exec(b.ctx, `UPDATE `+b.table+` SET state = 'cancelled', finalized_at = now() WHERE id = $1`, id)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want(b, "inbox", 1, `SELECT count(*)::int FROM redrive.river_inbox`)
}

// dropRole runs after the test's pool is closed, or not at all.
func dropRole(cfg *pgxpool.Config, role string) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, cfg.ConnConfig)
	if err != nil {
		return
	}
	defer func() { _ = conn.Close(ctx) }()
	_, _ = conn.Exec(ctx, `DROP OWNED BY `+role)
	_, _ = conn.Exec(ctx, `DROP ROLE `+role)
}

func TestInstallTriggerExplainsItself(t *testing.T) {
	t.Parallel()
	b := setup(t)
	err := inTx(b.ctx, b.store, func(tx pgx.Tx) error { return InstallTrigger(b.ctx, tx, "nowhere", testEnv, testName) })
	if !problem.Is(err, problem.Invalid) {
		t.Errorf("no such schema: %v", err)
	}
	err = inTx(b.ctx, b.store, func(busy pgx.Tx) error {
		if _, err := busy.Exec(b.ctx, `LOCK TABLE `+b.table+` IN ROW EXCLUSIVE MODE`); err != nil {
			t.Fatal(err)
		}
		return inTx(b.ctx, b.store, func(tx pgx.Tx) error { return InstallTrigger(b.ctx, tx, testSchema, testEnv, testName) })
	})
	if !problem.Is(err, problem.Conflict) {
		t.Errorf("a busy table: %v", err)
	}
}
