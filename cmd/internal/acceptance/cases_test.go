package acceptance

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/redrive-dlq/redrive/cmd/internal/console"
	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/dlq/jobtype"
	httptarget "github.com/redrive-dlq/redrive/dlq/target/http"
	"github.com/redrive-dlq/redrive/migrations/testdb"
	"github.com/redrive-dlq/redrive/rbac"
)

const casesFolder = "../../../dlq/testdata/cases/"

// jobSink is the application: it keeps what is sent to it, byte for byte.
type jobSink struct {
	mu     sync.Mutex
	bodies map[string][][]byte // by job id
	keys   map[string]string
}

func (r *jobSink) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		http.Error(w, "the body broke off", http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	id := req.Header.Get(httptarget.HeaderJobID)
	r.bodies[id] = append(r.bodies[id], body)
	r.keys[id] = req.Header.Get(httptarget.HeaderKey)
}

func (r *jobSink) sent(id string) ([][]byte, string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bodies[id], r.keys[id]
}

// caseBody is a case as it is posted; one asks for a generated payload of 10 MiB.
func caseBody(t *testing.T, file string) []byte {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	start := bytes.Index(raw, []byte(`"payload_generate"`))
	if start < 0 {
		return raw
	}
	end := start + bytes.Index(raw[start:], []byte(`"attempts"`))
	const size, tail = 10 << 20, 2 << 20
	payload := []byte("[")
	for n := 0; len(payload) < size-tail-200; n++ {
		payload = fmt.Appendf(payload, `{"sku": "SKU-%d", "qty": 1, "note": "row %d"}, `, n, n)
	}
	payload = append(payload, '"')
	payload = append(append(payload, bytes.Repeat([]byte("x"), size-len(payload)-2)...), `"]`...)
	out := append([]byte{}, raw[:start]...)
	out = append(append(append(out, `"payload": `...), payload...), ", "...)
	return append(out, raw[end:]...)
}

// served is a running console.
type served struct {
	api  string
	pool *pgxpool.Pool
}

// startConsole runs a whole console that knows the types, all of them sent to
// the application over HTTP, and returns its address.
func startConsole(t *testing.T, application string, types []string) served {
	t.Helper()
	pool := testdb.New(t)
	people := rbac.New(pool, nil, rbac.NewHasher(2))
	if err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error { return people.SeedDemo(t.Context(), tx) }); err != nil {
		t.Fatal(err)
	}
	declared := "environments: [production]\ntypes:\n"
	for _, name := range types {
		declared += fmt.Sprintf("  %q:\n    side_effects: [{kind: none, text: nothing}]\n    idempotency: {by: key}\n    targets:\n      production: {http: {url: %q}, outcome_within: 15m}\n", name, application)
	}
	catalogue, err := jobtype.Load(fstest.MapFS{"types.yaml": {Data: []byte(declared)}}, "types.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := console.New(t.Context(), console.Config{Pool: pool, Catalogue: catalogue, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- c.Run(ctx, listener) }()
	t.Cleanup(func() {
		stop()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
		c.Close()
	})
	return served{"http://" + listener.Addr().String() + "/api/v1", pool}
}

// call asks the API and returns the status and the answer.
func call(t *testing.T, token, method, address string, body []byte) (int, map[string]any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, address, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	answer := map[string]any{}
	d := json.NewDecoder(res.Body)
	d.UseNumber() // a payload may hold 1e400
	if err := d.Decode(&answer); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, answer
}

// TestEveryCaseIsReplayedByteForByte posts each hand-made dead job, replays it
// and compares what the application got with what was posted.
func TestEveryCaseIsReplayedByteForByte(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(casesFolder + "*.json")
	if err != nil || len(files) < 16 {
		t.Fatalf("%d cases: %v", len(files), err)
	}
	docs := map[string]*dlq.Document{}
	bodies := map[string][]byte{}
	var types []string
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".json")
		bodies[name] = caseBody(t, f)
		doc, err := dlq.ParseDocument(bodies[name], dlq.Defaults{Environment: "production", Source: "ingest"})
		if err != nil {
			continue // the case that is refused
		}
		docs[name] = doc
		types = append(types, doc.JobType)
	}
	application := &jobSink{bodies: map[string][][]byte{}, keys: map[string]string{}}
	target := httptest.NewServer(application)
	t.Cleanup(target.Close) // after the parallel cases
	c := startConsole(t, target.URL, types)
	for name, body := range bodies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, answer := call(t, rbac.DemoIngestToken, http.MethodPost, c.api+"/dead-jobs", body)
			doc := docs[name]
			if doc == nil {
				if status != http.StatusBadRequest || !strings.Contains(fmt.Sprint(answer["detail"]), "114") {
					t.Errorf("%d %v", status, answer)
				}
				return
			}
			if status != http.StatusCreated {
				t.Fatalf("%d %v", status, answer)
			}
			replayCase(t, c, fmt.Sprint(answer["id"]), doc, application)
		})
	}
}

func replayCase(t *testing.T, c served, id string, doc *dlq.Document, application *jobSink) {
	t.Helper()
	job := fmt.Sprintf("%s/dead-jobs/%s", c.api, id)
	order := []byte(`{"reason":"the test says so","generation":1,"payload_revision":1}`)
	status, answer := call(t, rbac.DemoToken(rbac.OnCall), http.MethodPost, job+"/replay", order)
	detail := fmt.Sprint(answer["detail"])
	if doc.PayloadEncoding == dlq.EncodingNone {
		if status != http.StatusConflict || !strings.Contains(detail, "Only a printout of the arguments is stored, so this job cannot be sent again") {
			t.Errorf("%d %v", status, answer)
		}
		return
	}
	if status == http.StatusConflict && strings.Contains(detail, "declare") {
		declareFix(t, c.pool, id)
		status, answer = call(t, rbac.DemoToken(rbac.OnCall), http.MethodPost, job+"/replay", order)
	}
	if status != http.StatusAccepted {
		t.Fatalf("%d %v", status, answer)
	}
	replay := fmt.Sprintf("%s/replays/%s", c.api, answer["replay"])
	for deadline := time.Now().Add(30 * time.Second); answer["state"] != "ended"; time.Sleep(100 * time.Millisecond) {
		if _, answer = call(t, rbac.DemoToken(rbac.Viewer), http.MethodGet, replay, nil); time.Now().After(deadline) {
			t.Fatalf("not ended: %v", answer)
		}
	}
	if answer["outcome"] != "succeeded" {
		t.Errorf("%v", answer)
	}
	got, key := application.sent(doc.JobID)
	if len(got) != 1 || !bytes.Equal(got[0], doc.Payload) || key != doc.IdempotencyKey {
		t.Fatalf("%d deliveries with the key %q; the bytes differ from the %d that were posted", len(got), key, len(doc.Payload))
	}
	if doc.JobID == "ord-552" {
		if sum := sha256.Sum256(got[0]); hex.EncodeToString(sum[:]) != "bb170495a9dcddf266d86b47a54e1a2afb1e81a133d588a0356bf1733a1f43d2" {
			t.Errorf("sha256 %x", sum)
		}
	}
	if _, answer = call(t, rbac.DemoToken(rbac.Viewer), http.MethodGet, job, nil); answer["status"] != "recovered" {
		t.Errorf("the job is %v", answer["status"])
	}
}

// declareFix lifts a refusal for invalid input or credentials.
func declareFix(t *testing.T, pool *pgxpool.Pool, id string) {
	t.Helper()
	tag, err := pool.Exec(t.Context(), `UPDATE redrive.dead_jobs SET fix_kind = 'ticket', fix_ref = 'T-1' WHERE id = $1::text::bigint`, id)
	if err != nil || tag.RowsAffected() != 1 {
		t.Fatal(tag, err)
	}
}
