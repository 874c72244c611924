package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/PuerkitoBio/goquery"
	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/dlq/envelope"
	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/dlq/replay"
	httptarget "github.com/redrive-dlq/redrive/dlq/target/http"
	"github.com/redrive-dlq/redrive/rbac"
)

const pageCatalogue = `
environments: [production, staging]
sources:
  - {name: app-production, environment: production, kind: http}
  - {name: app-staging, environment: staging, kind: http}
types:
  send_welcome_email:
    owner: growth
    runbook: https://runbooks.example.com/send-welcome-email
    side_effects: [{kind: email, text: sends one e-mail to the customer}]
    idempotency: {by: key, scope: welcome}
    edits: {payload: [/to_email]}
    targets:
      production: {http: {url: http://127.0.0.1:9010/jobs}, outcome_within: 15m}
  charge_card:
    owner: payments
    runbook: https://runbooks.example.com/charge-card
    side_effects: [{kind: money, text: charges the customer's card}]
    idempotency: {by: key, scope: charge}
    targets:
      production: {http: {url: http://127.0.0.1:9010/jobs}, outcome_within: 15m}
`

// pageSetup serves the console with a catalogue and replays.
func pageSetup(t *testing.T) *testBundle {
	t.Helper()
	catalogue, err := jobtype.Load(fstest.MapFS{"types.yaml": &fstest.MapFile{Data: []byte(pageCatalogue)}}, "types.yaml")
	if err != nil {
		t.Fatal(err)
	}
	b := setup(t, func(c *Config) {
		c.Types = func() *jobtype.Catalogue { return catalogue }
		c.Replays = &replay.Service{Pool: c.Pool, Types: c.Types, Sealer: envelope.Plain{}, Targets: map[string]replay.Target{"http": &httptarget.Target{}}}
	})
	return b
}

// capture takes documents in as the API does, and returns their ids.
func (b *testBundle) capture(t *testing.T, documents ...string) []string {
	t.Helper()
	var docs []*dlq.Document
	for _, text := range documents {
		doc, err := dlq.ParseDocument([]byte(text), dlq.Defaults{Environment: "production", Source: "app-production"})
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, doc)
	}
	var ids []string
	capturer := dlq.NewCapturer(nil, envelope.Plain{}, b.now)
	err := pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) error {
		found, err := capturer.Capture(t.Context(), tx, docs)
		for _, one := range found {
			ids = append(ids, strconv.FormatInt(one.ID, 10))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dlq.FoldCounters(t.Context(), b.pool); err != nil {
		t.Fatal(err)
	}
	return ids
}

// welcome is the article's example, with fields changed.
func welcome(t *testing.T, change map[string]any) string {
	t.Helper()
	doc := map[string]any{
		"job_type": "send_welcome_email", "job_id": "wel_8821", "idempotency_key": "send_welcome_email:welcome:snd_5f2a",
		"payload": map[string]any{"send_id": "snd_5f2a", "to_email": "alex@@example.com"},
		"dead_at": "2026-05-04T02:10:00Z", "gave_up": "not_retryable",
		"attempts": []any{map[string]any{"at": "2026-05-04T02:10:00Z", "error_class": "mail.InvalidRecipient", "message": "400 invalid recipient: alex@@example.com", "worker": "mailer-7", "duration_ms": 212}},
	}
	for k, v := range change {
		doc[k] = v
	}
	text, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func caseDocument(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../dlq/testdata/cases/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(text, &doc); err != nil || doc["payload_generate"] == nil {
		return string(text) // numbers and repeated keys stay as they are written
	}
	delete(doc, "payload_generate")
	doc["payload"] = json.RawMessage(largePayload(10 << 20))
	if text, err = json.Marshal(doc); err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// largePayload is a list of rows of exactly so many bytes, with one long text
// at its end, as case 06 describes it.
func largePayload(size int) string {
	var out strings.Builder
	out.WriteString("[")
	for n := 0; out.Len() < size-2<<20-1000; n++ {
		fmt.Fprintf(&out, `{"sku":"SKU-%d","qty":1,"note":"row %d"},`, n, n)
	}
	return out.String() + `"` + strings.Repeat("x", size-out.Len()-3) + `"]`
}

// open gets a page that must answer with the status.
func (cl *client) open(t *testing.T, path string, status int) *goquery.Document {
	t.Helper()
	w := cl.get(path)
	if w.Code != status {
		t.Fatalf("GET %s: %d, want %d\n%.2000s\nlog: %s", path, w.Code, status, w.Body, tail(cl.b.log.String()))
	}
	return page(t, w)
}

func tail(s string) string {
	if len(s) > 2500 {
		return s[len(s)-2500:]
	}
	return s
}

// grant gives a new person one limited role and signs them in.
func (b *testBundle) grant(t *testing.T, g rbac.Grant) *client {
	t.Helper()
	email := fmt.Sprintf("%s-%s@limited.test", g.Role, g.Environment)
	_, err := b.pool.Exec(t.Context(), `
		WITH u AS (
			INSERT INTO redrive.users (email, password_hash)
			SELECT $1, password_hash
			FROM redrive.users
			WHERE email = $2
			RETURNING id)
		INSERT INTO redrive.grants (user_id, role, environment, job_type)
		SELECT id, $3, $4, $5
		FROM u`, email, rbac.DemoEmail(rbac.Viewer), string(g.Role), g.Environment, g.JobType)
	if err != nil {
		t.Fatal(err)
	}
	cl := b.client()
	if w := cl.post("/login", "email", email, "password", rbac.DemoPassphrase); w.Code != http.StatusSeeOther {
		t.Fatalf("sign in: %d", w.Code)
	}
	return cl
}

func exec(t *testing.T, b *testBundle, sql string, args ...any) {
	t.Helper()
	if _, err := b.pool.Exec(context.Background(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

func text(s *goquery.Selection) string { return strings.Join(strings.Fields(s.Text()), " ") }
