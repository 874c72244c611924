package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/dlq/envelope"
	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/dlq/replay"
	"github.com/redrive-dlq/redrive/migrations/testdb"
	"github.com/redrive-dlq/redrive/rbac"
	"github.com/redrive-dlq/redrive/web"
	"github.com/redrive-dlq/redrive/web/api"
)

const (
	jsonType   = "application/json"
	ndjsonType = "application/x-ndjson"
)

// catalogue declares the types that the tests replay.
const catalogue = `
environments: [production, staging]
types:
  mail:
    side_effects: [{kind: email, text: sends one e-mail}]
    idempotency: {by: key, scope: mail}
    targets:
      production: {http: {url: "http://127.0.0.1:1/x"}, outcome_within: 15m}
      staging: {http: {url: "http://127.0.0.1:1/x"}, outcome_within: 15m}
  charge:
    side_effects: [{kind: money, text: charges a card}]
    idempotency: {by: key, scope: charge}
    targets:
      production: {http: {url: "http://127.0.0.1:1/x"}, outcome_within: 15m}
  cron.tick:
    side_effects: [{kind: none, text: nothing}]
    idempotency: {by: key, scope: tick}
    targets:
      production: {http: {url: "http://127.0.0.1:1/x"}, outcome_within: 15m}
  proj.tasks.recalc:
    side_effects: [{kind: none, text: nothing}]
    idempotency: {by: key, scope: recalc}
    targets:
      production: {http: {url: "http://127.0.0.1:1/x"}, outcome_within: 15m}
`

// accepts takes every replay at once, as a target whose worker tells outcomes.
type accepts struct{}

func (accepts) Check(_ context.Context, _ pgx.Tx, items []replay.Item, _ [][]byte) ([]*replay.Refusal, error) {
	return make([]*replay.Refusal, len(items)), nil
}

func (accepts) Release(_ context.Context, _ pgx.Tx, items []replay.Item) ([]replay.Released, error) {
	out := make([]replay.Released, len(items))
	for i := range out {
		out[i].Delivered = true
	}
	return out, nil
}

type bundle struct {
	pool    *pgxpool.Pool
	people  *rbac.Service
	replays *replay.Service
	server  *web.Server
	url     string
}

type types struct{ c *jobtype.Catalogue }

func (t types) Scope(name string) string {
	if typ, ok := t.c.Type(name); ok {
		return typ.Scope()
	}
	return name
}
func (t types) HasSideEffects(string) bool { return false }

// setup serves console and API over HTTP, with the demo's tokens.
func setup(t testing.TB) *bundle {
	t.Helper()
	b := &bundle{pool: testdb.New(t)}
	b.people = rbac.New(b.pool, nil, rbac.NewHasher(2))
	err := pgx.BeginFunc(context.Background(), b.pool, func(tx pgx.Tx) error { return b.people.SeedDemo(context.Background(), tx) })
	if err != nil {
		t.Fatal(err)
	}
	b.serve(t)
	return b
}

// setupOn is another process on the same store.
func setupOn(t testing.TB, other *bundle) *bundle {
	t.Helper()
	b := &bundle{pool: other.pool, people: rbac.New(other.pool, nil, rbac.NewHasher(2))}
	b.serve(t)
	return b
}

func (b *bundle) serve(t testing.TB) {
	t.Helper()
	cat, err := jobtype.Load(fstest.MapFS{"types.yaml": {Data: []byte(catalogue)}}, "types.yaml")
	if err != nil {
		t.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	b.replays = &replay.Service{Pool: b.pool, Types: func() *jobtype.Catalogue { return cat }, Sealer: envelope.Plain{}, Log: quiet,
		Targets: map[string]replay.Target{"http": accepts{}}}
	handlers := api.New(api.Config{Pool: b.pool, Capturer: dlq.NewCapturer(types{cat}, nil, nil), Replays: b.replays,
		People: b.people, Log: quiet})
	b.server, err = web.New(web.Config{Pool: b.pool, People: b.people, Logger: quiet, Replays: b.replays, Types: b.replays.Types,
		Environments: cat.Environments, Routes: handlers.Routes()})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(b.server)
	t.Cleanup(s.Close)
	b.url = s.URL
}

// token mints one for the demo's administrator.
func (b *bundle) token(t testing.TB, n rbac.NewToken) string {
	t.Helper()
	if err := b.pool.QueryRow(t.Context(), `SELECT id FROM redrive.users WHERE email = 'admin@demo.test'`).Scan(&n.OwnerID); err != nil {
		t.Fatal(err)
	}
	n.Name = "test"
	secret, _, err := b.people.MintToken(t.Context(), rbac.CommandLine("test"), n)
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

// reply is an answer with its body read as JSON.
type reply struct {
	status int
	header http.Header
	raw    []byte
	json   map[string]any
}

func (r reply) String() string { return fmt.Sprintf("%d %.600s", r.status, r.raw) }

// text is a string member of the answer.
func (r reply) text(name string) string { s, _ := r.json[name].(string); return s }

// number is a whole number member of the answer.
func (r reply) number(name string) int64 {
	n, _ := r.json[name].(json.Number)
	i, _ := n.Int64()
	return i
}

func (b *bundle) do(t testing.TB, token, method, path, contentType string, body io.Reader) reply {
	t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, b.url+"/api/v1"+path, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	r := reply{status: res.StatusCode, header: res.Header}
	if r.raw, err = io.ReadAll(res.Body); err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(r.raw))
	d.UseNumber()
	if err := d.Decode(&r.json); err != nil {
		t.Errorf("%s %s: the answer is no JSON object: %v\n%s", method, path, err, r)
	}
	wantType := jsonType
	if r.status >= 400 {
		wantType = "application/problem+json"
	}
	if got := res.Header.Get("Content-Type"); got != wantType {
		t.Errorf("%s %s: %d is %s, want %s", method, path, r.status, got, wantType)
	}
	documented(t, method, path, r)
	return r
}

func (b *bundle) get(t testing.TB, role rbac.Role, path string) reply {
	t.Helper()
	return b.do(t, rbac.DemoToken(role), http.MethodGet, path, "", nil)
}

func (b *bundle) post(t testing.TB, token, path, body string) reply {
	t.Helper()
	return b.do(t, token, http.MethodPost, path, jsonType, strings.NewReader(body))
}

// capture posts one document and fails unless it is new.
func (b *bundle) capture(t testing.TB, doc string) int64 {
	t.Helper()
	r := b.post(t, rbac.DemoIngestToken, "/dead-jobs", doc)
	if r.status != http.StatusCreated || r.text("result") != "created" {
		t.Fatalf("capture: %s", r)
	}
	return r.number("id")
}

// mail is a document of the replayable type.
func mail(id, key string, more string) string {
	return fmt.Sprintf(`{"job_type":"mail","job_id":%q,"idempotency_key":%q,"payload":{"n":1}%s}`, id, key, more)
}

func (b *bundle) order(t testing.TB, id int64) reply {
	t.Helper()
	return b.post(t, rbac.DemoToken(rbac.OnCall), fmt.Sprintf("/dead-jobs/%d/replay", id),
		`{"reason":"the test says so","generation":1,"payload_revision":1}`)
}

func (b *bundle) count(t testing.TB, sql string, args ...any) int {
	t.Helper()
	var n int
	if err := b.pool.QueryRow(context.Background(), sql, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// refused checks an answer's status and code and that its detail has the words.
func refused(t testing.TB, r reply, status int, code string, words ...string) {
	t.Helper()
	if r.status != status || r.text("code") != code {
		t.Errorf("want %d %s, got %s", status, code, r)
	}
	for _, w := range words {
		if !strings.Contains(r.text("detail")+" "+r.text("pointer"), w) {
			t.Errorf("%q is missing in %s", w, r)
		}
	}
}
