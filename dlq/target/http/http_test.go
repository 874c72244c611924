package httptarget_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"github.com/redrive-dlq/redrive/dlq/envelope"
	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/dlq/ledger"
	"github.com/redrive-dlq/redrive/dlq/replay"
	httptarget "github.com/redrive-dlq/redrive/dlq/target/http"
	"github.com/redrive-dlq/redrive/migrations/testdb"
	"github.com/redrive-dlq/redrive/rbac"
)

type received struct {
	header http.Header
	body   []byte
}

// receiver is a real HTTP server that records what arrives.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	got    []received
	answer func(w http.ResponseWriter)
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{answer: func(w http.ResponseWriter) { _, _ = io.WriteString(w, `{"id":"eff_1"}`) }}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		r.mu.Lock()
		r.got = append(r.got, received{req.Header.Clone(), body})
		answer := r.answer
		r.mu.Unlock()
		answer(w)
	}))
	t.Cleanup(r.Close)
	return r
}

// all returns what has arrived.
func (r *receiver) all() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

// answers sets what is answered from now on.
func (r *receiver) answers(f func(w http.ResponseWriter)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = f
}

type bundle struct {
	pool   *pgxpool.Pool
	svc    *replay.Service
	worker *httptarget.Worker
	handed []int64
}

func setup(t *testing.T, url string) *bundle {
	t.Helper()
	cat, err := jobtype.Load(fstest.MapFS{"types.yaml": {Data: []byte(`
environments: [production]
types:
  hook:
    side_effects: [{kind: webhook, text: calls a hook}]
    idempotency: {by: key, scope: hook}
    targets:
      production: {http: {url: "` + url + `"}, outcome_within: 15m}
`)}}, "types.yaml")
	if err != nil {
		t.Fatal(err)
	}
	b := &bundle{pool: testdb.New(t)}
	target := &httptarget.Target{HandOver: func(_ context.Context, _ pgx.Tx, ids []int64) error {
		b.handed = append(b.handed, ids...)
		return nil
	}}
	b.svc = &replay.Service{Pool: b.pool, Types: func() *jobtype.Catalogue { return cat }, Targets: map[string]replay.Target{"http": target},
		Sealer: envelope.Plain{}, Log: slog.New(slog.DiscardHandler)}
	b.worker = &httptarget.Worker{Service: b.svc, Client: httptarget.NewClient(), Retry: time.Second}
	return b
}

var oncall = &rbac.Principal{UserID: 1, Email: "oncall@demo.test", Grants: []rbac.Grant{{Role: rbac.OnCall}}}

// job stores a dead job with this payload.
func (b *bundle) job(t *testing.T, id string, payload []byte) (job int64) {
	t.Helper()
	sealed, err := envelope.Plain{}.Seal(payload, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = b.pool.QueryRow(t.Context(), `
		WITH j AS (
			INSERT INTO redrive.dead_jobs (environment, source, job_id, job_type, key_scope, idempotency_key, fingerprint, died_at, attempt_count)
			VALUES ('production', 'test', $1, 'hook', 'hook', 'key-' || $1, 'f', now(), 3) RETURNING id)
		INSERT INTO redrive.payloads (dead_job_id, version, bytes, encoding, size, sha256, redacted, redact_version, origin)
		SELECT id, 1, $2, 'base64', 8, '', '', 1, 'capture' FROM j
		RETURNING dead_job_id`, id, sealed).Scan(&job)
	if err != nil {
		t.Fatal(err)
	}
	return job
}

// released orders and releases the replay of a job with this payload.
func (b *bundle) released(t *testing.T, id string, payload []byte) (job, replayID int64) {
	t.Helper()
	job = b.job(t, id, payload)
	replayID = b.order(t, job)
	if n, err := b.svc.ReleaseDue(t.Context()); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	return job, replayID
}

// order orders the replay of a job.
func (b *bundle) order(t *testing.T, job int64) (replayID int64) {
	t.Helper()
	o, err := b.svc.One(t.Context(), oncall, replay.Order{DeadJobID: job, Generation: 1, PayloadVersion: 1, Reason: "the test says so"})
	if err != nil {
		t.Fatal(err)
	}
	return o.ReplayID
}

func (b *bundle) deliver(t *testing.T, replayID int64) error {
	t.Helper()
	return b.worker.Work(t.Context(), &river.Job[httptarget.DeliverArgs]{Args: httptarget.DeliverArgs{ReplayID: replayID}})
}

func (b *bundle) see(t *testing.T, job, replayID int64) string {
	t.Helper()
	var out string
	err := b.pool.QueryRow(t.Context(), `
		SELECT concat_ws(' ', r.state, r.outcome, r.outcome_code, d.status, d.effect, d.generation, d.category)
		FROM redrive.replays r, redrive.dead_jobs d
		WHERE r.id = $2 AND d.id = $1`, job, replayID).Scan(&out)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestBytesAndHeadersArriveExactly(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	b := setup(t, r.URL)
	for i, payload := range [][]byte{
		[]byte(`{"zero": -0.0, "e": 1E3, "too_big": 1e400, "nul": "\u0000", "a": 1, "a": 2}`),
		{0x00, 0xff, 0xfe, '"'},
		{},
	} {
		job, replayID := b.released(t, strconv.Itoa(i), payload)
		if err := b.deliver(t, replayID); err != nil {
			t.Fatal(err)
		}
		all := r.all()
		got := all[len(all)-1]
		if !bytes.Equal(got.body, payload) {
			t.Errorf("%d: %q arrived as %q", i, payload, got.body)
		}
		h := got.header
		if h.Get("Idempotency-Key") != "key-"+strconv.Itoa(i) || h.Get("Redrive-Job-Id") != strconv.Itoa(i) || h.Get("Redrive-Replay-Id") != strconv.FormatInt(replayID, 10) {
			t.Errorf("headers: %v", h)
		}
		if s := b.see(t, job, replayID); s != "ended succeeded http_200 recovered done 1 unknown" {
			t.Error(s)
		}
		row, ok, err := ledger.Of(t.Context(), b.pool, ledger.Key{Environment: "production", Scope: "hook", Key: "key-" + strconv.Itoa(i)})
		if err != nil || !ok || row.State != "done" || row.EffectID != "eff_1" {
			t.Errorf("ledger: %+v %v %v", row, ok, err)
		}
	}
	if len(r.all()) != 3 {
		t.Errorf("%d requests for 3 replays", len(r.all()))
	}
}

func TestStatusTable(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	b := setup(t, r.URL)
	for status, want := range map[int]string{
		201: "ended succeeded http_201 recovered done 1 unknown",
		302: "ended failed http_302 open unknown 2 unknown",
		400: "ended failed http_400 open none 2 invalid_input",
		401: "ended failed http_401 open none 2 auth",
		404: "ended failed http_404 open none 2 missing_state",
		429: "ended failed http_429 open none 2 throttled",
		503: "ended failed http_503 open none 2 transient",
		500: "ended failed http_500 open unknown 2 transient",
		504: "ended failed http_504 open unknown 2 transient",
	} {
		r.answers(func(w http.ResponseWriter) {
			w.Header().Set("Location", "http://169.254.169.254/")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "password=hunter2hunter2 is wrong")
		})
		job, replayID := b.released(t, strconv.Itoa(status), []byte("x"))
		if err := b.deliver(t, replayID); err != nil {
			t.Fatal(err)
		}
		if s := b.see(t, job, replayID); s != want {
			t.Errorf("%d: %s, want %s", status, s, want)
		}
		var leaked int
		err := b.pool.QueryRow(t.Context(), `
			SELECT count(*) FROM redrive.dead_jobs d, redrive.attempts a, redrive.replays r
			WHERE concat(d.error_message, a.message, r.outcome_detail) LIKE '%hunter2%'`).Scan(&leaked)
		if err != nil || leaked != 0 {
			t.Errorf("%d: the answer's secret stands in %d rows (%v)", status, leaked, err)
		}
	}
}

func TestDeliveredOnceHoweverOftenTheJobRuns(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	b := setup(t, r.URL)
	_, replayID := b.released(t, "1", []byte("x"))
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			err := b.worker.Work(context.Background(), &river.Job[httptarget.DeliverArgs]{Args: httptarget.DeliverArgs{ReplayID: replayID}})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(r.all()) != 1 {
		t.Fatalf("%d deliveries of one replay", len(r.all()))
	}
}

func TestRefusedConnectionIsTriedAgain(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close() // nobody listens there now
	b := setup(t, "http://"+address)
	job, replayID := b.released(t, "1", []byte("x"))
	var snooze *river.JobSnoozeError
	if err := b.deliver(t, replayID); !errors.As(err, &snooze) {
		t.Fatalf("a refused connection gave %v, want a snooze", err)
	}
	if s := b.see(t, job, replayID); s != "released  replaying none 1 unknown" {
		t.Fatal(s)
	}
	later := time.Now().Add(time.Hour)
	b.svc.Now = func() time.Time { return later }
	if n, err := b.svc.Expire(t.Context()); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	// It never left, so its effect isn't unknown.
	if s := b.see(t, job, replayID); s != "ended skipped not_accepted open none 1 unknown" {
		t.Fatal(s)
	}
}

func TestNoAnswerIsUnconfirmed(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	r.answers(func(http.ResponseWriter) { panic(http.ErrAbortHandler) }) // the connection breaks after the request
	b := setup(t, r.URL)
	job, replayID := b.released(t, "1", []byte("x"))
	if err := b.deliver(t, replayID); err != nil {
		t.Fatal(err)
	}
	if err := b.deliver(t, replayID); err != nil {
		t.Fatal(err)
	}
	if s := b.see(t, job, replayID); s != "ended unconfirmed no_answer open unknown 1 unknown" {
		t.Fatal(s)
	}
	if len(r.all()) != 1 {
		t.Fatalf("sent %d times", len(r.all()))
	}
}

func TestKeyDoneBeforeDelivery(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	b := setup(t, r.URL)
	job, replayID := b.released(t, "1", []byte("x"))
	k := ledger.Key{Environment: "production", Scope: "hook", Key: "key-1"}
	if err := ledger.Finish(t.Context(), b.pool, k, []byte(`{"id":"other"}`)); err != nil {
		t.Fatal(err)
	}
	if err := b.deliver(t, replayID); err != nil {
		t.Fatal(err)
	}
	if len(r.all()) != 0 {
		t.Fatal("delivered although the key was done")
	}
	if s := b.see(t, job, replayID); s != "ended already_done key_done recovered done 1 unknown" {
		t.Fatal(s)
	}
}

func TestOnlyLoopback(t *testing.T) {
	t.Parallel()
	// The address is refused where the connection is made: nothing leaves.
	_, err := httptarget.NewClient().Get("http://192.0.2.1:9/")
	if err == nil || !strings.Contains(err.Error(), "only loopback") {
		t.Fatalf("dialled outside: %v", err)
	}
}
