package replay_test

import (
	"fmt"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/redrive-dlq/redrive/dlq/envelope"
	"github.com/redrive-dlq/redrive/dlq/filter"
	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/dlq/replay"
	"github.com/redrive-dlq/redrive/migrations/testdb"
	"github.com/redrive-dlq/redrive/rbac"
)

const planCatalogue = `
environments: [production]
types:
  short_lived:
    side_effects: [{kind: email, text: sends one e-mail}]
    idempotency: {by: key, scope: short}
    valid_for: 72h
    targets:
      production: {http: {url: "http://127.0.0.1:1/x"}, outcome_within: 15m}
  checked:
    side_effects: [{kind: email, text: sends one e-mail}]
    idempotency: {by: key, scope: checked}
    schema: {1: checked.json}
    valid_for: 72h
    targets:
      production: {http: {url: "http://127.0.0.1:1/x"}, outcome_within: 15m}
    checks:
      - {name: customer exists, sql: "select 1 from customers where id = $1", args: [/user_id]}
`

const checkedSchema = `{"type": "object", "required": ["user_id"]}`

// plans makes a store under planCatalogue and, for its checks, an application's
// database with customers 1 and 2.
func plans(t *testing.T) (b *bundle, app *pgxpool.Pool) {
	t.Helper()
	b = setup(t)
	cat, err := jobtype.Load(fstest.MapFS{"types.yaml": {Data: []byte(planCatalogue)}, "checked.json": {Data: []byte(checkedSchema)}}, "types.yaml")
	if err != nil {
		t.Fatal(err)
	}
	b.svc.Types = func() *jobtype.Catalogue { return cat }
	if app, err = pgxpool.New(t.Context(), testdb.Empty(t)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(app.Close)
	_, err = app.Exec(t.Context(), `
		CREATE TABLE customers (id bigint PRIMARY KEY);
		INSERT INTO customers VALUES (1), (2), (9007199254740993);
		CREATE TABLE touched (n int);
		CREATE FUNCTION touch() RETURNS int LANGUAGE sql VOLATILE AS 'INSERT INTO touched VALUES (1) RETURNING n'`)
	if err != nil {
		t.Fatal(err)
	}
	b.svc.CheckDB = func(string) *pgxpool.Pool { return app }
	return b, app
}

// checks puts one check in the place of the type's own.
func (b *bundle) checks(t *testing.T, sql string) {
	t.Helper()
	typ, ok := b.svc.Types().Type("checked")
	if !ok {
		t.Fatal("no such type")
	}
	typ.Checks[0].SQL = sql
}

// with gives a job other bytes as its payload.
func (b *bundle) with(t *testing.T, id int64, payload string) int64 {
	t.Helper()
	sealed, err := envelope.Plain{}.Seal([]byte(payload), nil)
	if err != nil {
		t.Fatal(err)
	}
	b.exec(t, `UPDATE redrive.payloads SET bytes = $2 WHERE dead_job_id = $1`, id, sealed)
	b.exec(t, `UPDATE redrive.dead_jobs SET payload_size = $2 WHERE id = $1`, id, len(payload))
	return id
}

// died moves a job's death into the past.
func (b *bundle) died(t *testing.T, id int64, ago time.Duration) int64 {
	t.Helper()
	b.exec(t, `UPDATE redrive.dead_jobs SET died_at = $2 WHERE id = $1`, id, time.Now().Add(-ago))
	return id
}

// many writes n jobs of a source; keys, entities and times are SQL over i.
func (b *bundle) many(t *testing.T, source string, n int, key, entity, orderAt string) {
	t.Helper()
	b.exec(t, fmt.Sprintf(`
		WITH j AS (
			INSERT INTO redrive.dead_jobs
				(environment, source, job_id, job_type, key_scope, idempotency_key, entity, tenant, category, fingerprint, died_at, enqueued_at, attempt_count)
			SELECT 'production', $1, i::text, 'send_welcome_email', 'welcome', %s, %s, 't' || i %% 7, 'transient', 'f' || i %% 3, now(), %s, 3
			FROM generate_series(1, $2::int) i
			RETURNING id)
		INSERT INTO redrive.payloads (dead_job_id, version, bytes, encoding, size, sha256, redacted, redact_version, origin)
		SELECT id, 1, '\x00'::bytea || '{"a": 1}'::bytea, 'json', 8, '', '{}', 1, 'capture'
		FROM j`, key, entity, orderAt), source, n)
}

func from(source string) replay.Selection {
	return replay.Selection{Filter: filter.Filter{Sources: []string{source}}}
}

// person holds roles, each everywhere or for one type.
func person(id int64, grants ...rbac.Grant) *rbac.Principal {
	return &rbac.Principal{UserID: id, Email: fmt.Sprintf("p%d@demo.test", id), Grants: grants}
}
