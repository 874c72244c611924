package infer_test

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/dlq/jobtype/infer"
	"github.com/redrive-dlq/redrive/migrations/testdb"
)

func capture(t *testing.T, pool *pgxpool.Pool, docs ...*dlq.Document) {
	t.Helper()
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		_, err := dlq.NewCapturer(nil, nil, nil).Capture(t.Context(), tx, docs)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func doc(environment, source, jobType, id, key, payload string) *dlq.Document {
	return &dlq.Document{Environment: environment, Source: source, JobType: jobType, JobID: id, IdempotencyKey: key, Queue: "mail",
		Payload: []byte(payload), DeadAt: json.RawMessage(`"2026-03-30T10:10:00Z"`), Attempts: []dlq.AttemptDoc{{Message: "boom"}}}
}

func draft(t *testing.T, pool *pgxpool.Pool) string {
	t.Helper()
	w, err := infer.Read(t.Context(), pool)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := infer.Write(&b, w); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func parse(text string) (*jobtype.Catalogue, error) {
	return jobtype.Load(fstest.MapFS{"types.yaml": {Data: []byte(text)}}, "types.yaml")
}

// TestDraft: the draft is refused until side effects are filled in, and
// accepted then; it holds no value of a payload.
func TestDraft(t *testing.T) {
	t.Parallel()
	pool := testdb.New(t)
	if _, err := pool.Exec(t.Context(), `INSERT INTO redrive.sources (environment, name, kind) VALUES ('staging', 'app-s', 'river'), ('eu', 'api', 'http')`); err != nil {
		t.Fatal(err)
	}
	capture(t, pool,
		doc("staging", "app-s", "send mail: now", "1", "k1", `{"user_id": 42, "to": {"mail_address": "ann@example.com"}, "by_id": {"ann@example.com": 1}}`),
		doc("staging", "app-s", "send mail: now", "2", "k2", `{"user_id": 43, "note": "call 555-0100", "to": {"mail_address": "bob@example.com"}}`),
		doc("eu", "api", "sync", "3", "", `[1]`),
		doc("staging", "app-s", "sync", "4", "k4", `{"n": 1}`))
	text := draft(t, pool)
	if _, err := parse(text); err == nil || strings.Count(err.Error(), "needs side_effects") != 2 {
		t.Fatalf("an unfilled draft: %v\n%s", err, text)
	}
	for _, value := range []string{"ann@", "example.com", "555", "42", "k1"} {
		if strings.Contains(text, value) {
			t.Errorf("the draft repeats a value: %s\n%s", value, text)
		}
	}
	if !strings.Contains(text, "# redact: {show: [/note, /to/mail_address, /user_id]}") {
		t.Errorf("places are missing\n%s", text)
	}
	c, err := parse(strings.ReplaceAll(text, "side_effects: []", "side_effects: [{kind: none}]"))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	mail, ok := c.Type("send mail: now")
	sync, also := c.Type("sync")
	if !ok || !also {
		t.Fatalf("types are missing\n%s", text)
	}
	if mail.Idempotency.By != "key" || sync.Idempotency.By != "none" || mail.Limit().PerMinute != 60 {
		t.Errorf("by %s and %s, %d a minute", mail.Idempotency.By, sync.Idempotency.By, mail.Limit().PerMinute)
	}
	if to, ok := mail.Target("staging"); !ok || to.Destination() != "river:app-s/mail" || len(sync.Targets) != 1 {
		t.Errorf("targets %+v, %+v", mail.Targets, sync.Targets)
	}
	if len(c.Environments) != 2 || c.Environments[0] != "staging" {
		t.Errorf("environments %v", c.Environments)
	}
}

func TestDraftLeavesOutWhatIsDeclared(t *testing.T) {
	t.Parallel()
	pool := testdb.New(t)
	declared, err := parse("sources: [{name: app, environment: production, schema: app, url: env:APP}]\ntypes: {known: {side_effects: [{kind: none}], idempotency: {by: key}}}")
	if err != nil {
		t.Fatal(err)
	}
	load := func() (*jobtype.Catalogue, error) { return declared, nil }
	if _, err := jobtype.NewKeeper(t.Context(), pool, load, "the test", slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), `INSERT INTO redrive.sources (environment, name, kind) VALUES ('production', 'app', 'river')`); err != nil {
		t.Fatal(err)
	}
	capture(t, pool, doc("production", "app", "known", "1", "k1", `{}`), doc("production", "app", "new", "2", "k2", `{}`))
	text := draft(t, pool)
	if strings.Contains(text, "known:") || !strings.Contains(text, "  new: #") || !strings.Contains(text, "{name: app, environment: production, kind: river, schema: app, url: \"env:APP\"}") {
		t.Error(text)
	}
}
