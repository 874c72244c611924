package dlq

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/redrive-dlq/redrive/dlq/envelope"
	"github.com/redrive-dlq/redrive/migrations/testdb"
)

// testNow is later than every time in the cases.
var testNow = time.Date(2026, 4, 1, 12, 0, 0, 0, time.UTC)

// testTypes: every type has side effects; welcome mails have a scope.
type testTypes struct{}

func (testTypes) Scope(jobType string) string {
	if jobType == "send_welcome_email" {
		return "welcome"
	}
	return jobType
}
func (testTypes) HasSideEffects(jobType string) bool { return jobType != "pure" }

type bundle struct {
	pool *pgxpool.Pool
	c    *Capturer
}

func setup(t testing.TB) *bundle {
	t.Helper()
	return &bundle{pool: testdb.New(t), c: NewCapturer(testTypes{}, nil, func() time.Time { return testNow })}
}

func (b *bundle) capture(t testing.TB, docs ...*Document) []Captured {
	t.Helper()
	var out []Captured
	err := pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) (err error) {
		out, err = b.c.Capture(t.Context(), tx, docs)
		return err
	})
	if err != nil {
		t.Fatalf("capture: %v", err)
	}
	return out
}

// one captures one document that must not be refused.
func (b *bundle) one(t testing.TB, doc *Document) Captured {
	t.Helper()
	got := b.capture(t, doc)[0]
	if got.Err != nil {
		t.Fatalf("refused: %v", got.Err)
	}
	return got
}

func (b *bundle) exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	if _, err := b.pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func get[T any](t testing.TB, b *bundle, sql string, args ...any) (v T) {
	t.Helper()
	if err := b.pool.QueryRow(t.Context(), sql, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// payload opens the bytes of a version as a replay does.
func (b *bundle) payload(t testing.TB, id int64, version int) []byte {
	t.Helper()
	sealed := get[[]byte](t, b, `SELECT bytes FROM redrive.payloads WHERE dead_job_id = $1 AND version = $2`, id, version)
	plain, err := envelope.Plain{}.Open(sealed, nil)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

// job is a document of a job that died at attempt, as many minutes after
// midnight.
func job(id string, attempt, minute int) *Document {
	return &Document{
		Environment: "production", Source: "ingest", JobType: "send_invoice", JobID: id, Payload: []byte(`{"n": 1}`),
		AttemptCount: attempt, DeadAt: fmt.Appendf(nil, `"2026-03-01T00:%02d:00Z"`, minute),
		Attempts: []AttemptDoc{{ErrorClass: "HttpError", Message: "provider answered 503"}},
	}
}

func TestCaptureSameDeathAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := b.one(t, job("a", 3, 10))
	if first.Outcome != CaptureCreated || first.Generation != 1 || first.ID == 0 {
		t.Fatalf("first: %+v", first)
	}
	again := b.one(t, job("a", 3, 10))
	if again.Outcome != CaptureUnchanged || again.ID != first.ID || again.Generation != 1 {
		t.Errorf("again: %+v", again)
	}
	// Neither time nor attempts told, twice: the same death.
	bare := &Document{Environment: "production", Source: "ingest", JobType: "t", JobID: "bare", Payload: []byte(`1`)}
	if got := b.one(t, bare); got.Outcome != CaptureCreated {
		t.Errorf("bare: %+v", got)
	}
	if got := b.one(t, bare); got.Outcome != CaptureUnchanged {
		t.Errorf("bare again: %+v", got)
	}
	if n := get[int](t, b, `SELECT count(*) FROM redrive.deaths`); n != 2 {
		t.Errorf("%d deaths", n)
	}
}

func TestCaptureSameDeathConcurrently(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const callers = 12
	outcomes := make([]string, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() { outcomes[i] = b.one(t, job("a", 3, 10)).Outcome })
	}
	wg.Wait()
	created := 0
	for _, o := range outcomes {
		switch o {
		case CaptureCreated:
			created++
		case CaptureUnchanged:
		default:
			t.Errorf("outcome %q", o)
		}
	}
	for table, want := range map[string]int{"dead_jobs": 1, "deaths": 1, "payloads": 1, "documents": 1, "attempts": 1, "attempt_raws": 1} {
		if n := get[int](t, b, `SELECT count(*) FROM redrive.`+table); n != want {
			t.Errorf("%d rows in %s", n, table)
		}
	}
	if created != 1 {
		t.Errorf("%d callers created it", created)
	}
}

func TestCaptureLaterDeathReopens(t *testing.T) {
	t.Parallel()
	for _, status := range []string{"open", "snoozed", "replaying", "recovered", "resolved", "discarded"} {
		t.Run(status, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			id := b.one(t, job("a", 3, 10)).ID
			b.exec(t, `UPDATE redrive.dead_jobs SET status = $1, fix_kind = 'ticket', fix_ref = 'T-1', settled_reason = 'x', settled_by = 'y',
				settled_at = now(), snoozed_until = now()`, status)
			if got := b.one(t, job("a", 3, 10)); got.Outcome != CaptureUnchanged {
				t.Errorf("the same death: %+v", got)
			}
			// A death from before, told late: recorded, and the status stays.
			if got := b.one(t, job("a", 2, 5)); got.Outcome != CaptureUnchanged || got.Generation != 1 {
				t.Errorf("an older death: %+v", got)
			}
			if s := get[string](t, b, `SELECT status FROM redrive.dead_jobs`); s != status {
				t.Fatalf("an old death made it %s", s)
			}
			later := job("a", 4, 20)
			later.Attempts[0] = AttemptDoc{ErrorClass: "MailError", Message: "invalid recipient"}
			if got := b.one(t, later); got.Outcome != CaptureUpdated || got.Generation != 2 || got.ID != id {
				t.Errorf("a later death: %+v", got)
			}
			row := get[string](t, b, `SELECT concat_ws('|', status, generation, fix_kind, fix_ref, settled_reason, settled_by, settled_at, snoozed_until,
				category, error_class, error_message, last_death_attempt, payload_version) FROM redrive.dead_jobs`)
			if row != "open|2|||||invalid_input|MailError|invalid recipient|4|1" {
				t.Errorf("row: %s", row)
			}
			if gens := get[[]int32](t, b, `SELECT array_agg(generation ORDER BY id) FROM redrive.deaths`); fmt.Sprint(gens) != "[1 0 2]" {
				t.Errorf("deaths of generations %v", gens)
			}
		})
	}
}

func TestCaptureHigherAttemptWithLaggingClock(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.one(t, job("a", 3, 30))
	if got := b.one(t, job("a", 4, 10)); got.Outcome != CaptureUpdated {
		t.Errorf("a higher attempt whose clock lags: %+v", got)
	}
	if got := b.one(t, job("a", 1, 50)); got.Outcome != CaptureUpdated || got.Generation != 3 {
		t.Errorf("a later death whose attempts began anew: %+v", got)
	}
}

func TestCaptureKeepsWhatALaterDeathLeavesOut(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := job("a", 1, 1)
	first.Tenant, first.Entity, first.IdempotencyKey, first.Queue = "acme", "order:1", "k-1", "mail"
	b.one(t, first)
	later := job("a", 2, 2)
	later.Queue = "slow"
	b.one(t, later)
	if row := get[string](t, b, `SELECT concat_ws('|', tenant, entity, idempotency_key, queue) FROM redrive.dead_jobs`); row != "acme|order:1|k-1|slow" {
		t.Errorf("row: %s", row)
	}
	if later.Tenant != "" {
		t.Error("the caller's document was changed")
	}
}

func TestCaptureChangedPayload(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.one(t, job("a", 1, 1)).ID
	b.one(t, job("a", 2, 2))
	changed := job("a", 3, 3)
	changed.Payload = []byte(`{"n": 2}`)
	b.one(t, changed)
	if v := get[[]int32](t, b, `SELECT array_agg(version ORDER BY version) FROM redrive.payloads WHERE dead_job_id = $1`, id); fmt.Sprint(v) != "[1 2]" {
		t.Errorf("versions %v", v)
	}
	if v := get[int](t, b, `SELECT payload_version FROM redrive.dead_jobs`); v != 2 {
		t.Errorf("current version %d", v)
	}
	if got := b.payload(t, id, 1); string(got) != `{"n": 1}` {
		t.Errorf("version 1 is %s", got)
	}
	// The bytes of a version are gone: the next death brings them back.
	b.exec(t, `UPDATE redrive.payloads SET bytes = NULL WHERE version = 2`)
	again := job("a", 4, 4)
	again.Payload = []byte(`{"n": 2}`)
	b.one(t, again)
	if got := b.payload(t, id, 3); string(got) != `{"n": 2}` {
		t.Errorf("version 3 is %s", got)
	}
}

func TestCaptureManyOfOneJobInOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	got := b.capture(t, job("b", 1, 1), job("a", 1, 1), job("a", 2, 2), job("a", 1, 1), job("a", 3, 3))
	var words []string
	for _, g := range got {
		words = append(words, fmt.Sprintf("%s/%d", g.Outcome, g.Generation))
	}
	if s := strings.Join(words, " "); s != "created/1 created/1 updated/2 unchanged/2 updated/3" {
		t.Errorf("got %s", s)
	}
}

func TestCaptureRefusesOnlyTheBadOne(t *testing.T) {
	t.Parallel()
	b := setup(t)
	nul := job("x\x00", 1, 1)
	latin := job("caf\xe9", 1, 1)
	payload := job("p", 1, 1)
	payload.Payload = []byte(`{"a":`)
	ref := job("r", 1, 1)
	ref.SourceRef = []byte(`{"a":"\u0000"}`)
	got := b.capture(t, nul, job("a", 1, 1), latin, payload, ref, job("b", 1, 1))
	for i, want := range []string{CaptureRefused, CaptureCreated, CaptureRefused, CaptureRefused, CaptureRefused, CaptureCreated} {
		if got[i].Outcome != want || (got[i].Err != nil) != (want == CaptureRefused) {
			t.Errorf("%d: %+v", i, got[i])
		}
	}
}

func TestCaptureEffect(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `INSERT INTO redrive.ledger (environment, scope, key, state, effect_id) VALUES
		('production', 'welcome', 'k-done', 'done', 'msg_9'), ('production', 'welcome', 'k-begun', 'begun', ''),
		('production', 'welcome', 'k-failed', 'failed', ''), ('staging', 'welcome', 'k-other', 'done', 'msg_8')`)
	for i, c := range []struct {
		jobType, key, effect, effectID, class, message, sideEffect string
		want                                                       string
	}{
		{"send_welcome_email", "k-done", "", "", "", "", "", "done|msg_9"},
		{"send_welcome_email", "k-done", "none", "", "", "", "", "done|msg_9"}, // a finished row is stronger than a word
		{"send_welcome_email", "k-begun", "", "", "", "", "", "unknown|"},
		{"send_welcome_email", "k-failed", "", "", "Timeout", "timed out", "", "none|"},
		{"send_welcome_email", "k-other", "", "", "HttpError", "503", "", "none|"},
		{"send_welcome_email", "k-new", "", "", "*url.Error", "context deadline exceeded", "", "unknown|"},
		{"send_welcome_email", "", "", "", "*net.OpError", "dial tcp: i/o timeout", "", "none|"},
		{"send_welcome_email", "", "", "", "HttpError", "provider answered 504", "", "unknown|"},
		{"pure", "", "", "", "Timeout", "timed out", "", "none|"},
		{"pure", "", "done", "id-1", "Timeout", "timed out", "", "done|id-1"},
		{"pure", "", "", "", "", "boom", "mail 12 was sent", "unknown|"},
		{"pure", "", "", "", "", "boom", "none", "none|"},
	} {
		doc := job(fmt.Sprint("j", i), 1, 1)
		doc.JobType, doc.IdempotencyKey, doc.Effect, doc.EffectID = c.jobType, c.key, c.effect, c.effectID
		doc.Attempts = []AttemptDoc{{ErrorClass: c.class, Message: c.message, SideEffect: c.sideEffect}}
		id := b.one(t, doc).ID
		if got := get[string](t, b, `SELECT effect || '|' || effect_id FROM redrive.dead_jobs WHERE id = $1`, id); got != c.want {
			t.Errorf("%+v: got %s", c, got)
		}
		// A later death is judged the same way.
		doc = job(fmt.Sprint("j", i), 2, 2)
		doc.JobType, doc.Effect, doc.EffectID = c.jobType, c.effect, c.effectID
		doc.Attempts = []AttemptDoc{{ErrorClass: c.class, Message: c.message, SideEffect: c.sideEffect}}
		b.one(t, doc)
		if got := get[string](t, b, `SELECT effect || '|' || effect_id FROM redrive.dead_jobs WHERE id = $1`, id); got != c.want {
			t.Errorf("%+v, later: got %s", c, got)
		}
	}
}

func TestCaptureWorkersWordsWin(t *testing.T) {
	t.Parallel()
	b := setup(t)
	doc := job("a", 1, 1)
	doc.Category, doc.ReasonCode, doc.ReasonText, doc.GaveUp = "throttled", "E1", "too\nfast", "window"
	b.one(t, doc)
	row := get[string](t, b, `SELECT concat_ws('|', category, category_by, reason_code, reason_text, gave_up, status_code) FROM redrive.dead_jobs`)
	if row != "throttled|worker|E1|too\nfast|window|503" {
		t.Errorf("row: %s", row)
	}
}
