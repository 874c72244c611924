package dlq

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

func (b *bundle) inbox() *Inbox {
	return &Inbox{Pool: b.pool, Capturer: b.c, Every: 20 * time.Millisecond}
}

func (b *bundle) drain(t testing.TB) int {
	t.Helper()
	n, err := b.inbox().Drain(t.Context())
	if err != nil {
		t.Fatalf("drain: %v", err)
	}
	return n
}

func TestInboxTakesDocuments(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `SELECT redrive.capture_dead_job(json '{"environment":"staging","job_type":"t","job_id":"1","payload":{"a":1E3,"a":"\u0000"}}')`)
	b.exec(t, `SELECT set_config('redrive.environment', 'production', false), redrive.capture_dead_job(text '{"job_type":"t","job_id":"2","source":"app","payload":[]}')`)
	b.exec(t, `SELECT set_config('redrive.environment', '', false), redrive.capture_dead_job(text '{"job_type":"t","job_id":"3","payload":[],"note":"password=hunter22"}')`)
	b.exec(t, `SELECT redrive.capture_dead_job(text 'password=hunter22 is no JSON')`)
	b.exec(t, `SELECT redrive.capture_dead_job(NULL::text)`)
	if n := b.drain(t); n != 5 {
		t.Errorf("took %d", n)
	}
	if n := get[int](t, b, `SELECT count(*) FROM redrive.inbox`); n != 0 {
		t.Errorf("%d left", n)
	}
	jobs := get[string](t, b, `SELECT string_agg(concat_ws('/', environment, source, job_id), ' ' ORDER BY job_id) FROM redrive.dead_jobs`)
	if jobs != "staging/sql/1 production/app/2" {
		t.Errorf("jobs: %s", jobs)
	}
	id := get[int64](t, b, `SELECT id FROM redrive.dead_jobs WHERE job_id = '1'`)
	if got := string(b.payload(t, id, 1)); got != `{"a":1E3,"a":"\u0000"}` {
		t.Errorf("payload: %s", got)
	}
	quarantined := get[string](t, b, `SELECT string_agg(door || ': ' || error || ' ' || preview, E'\n' ORDER BY id) FROM redrive.quarantine`)
	for _, want := range []string{"/environment is missing", "redrive.environment", "not valid JSON at byte 0"} {
		if !strings.Contains(quarantined, want) {
			t.Errorf("no %q in %s", want, quarantined)
		}
	}
	if strings.Contains(quarantined, "hunter22") || strings.Count(quarantined, "sql: ") != 3 {
		t.Errorf("quarantined: %s", quarantined)
	}
	raws := get[int](t, b, `SELECT count(*) FROM redrive.quarantine WHERE strpos(encode(raw, 'escape'), 'password=hunter22') > 0`)
	if raws != 2 {
		t.Errorf("%d raw documents kept", raws)
	}
}

// A document that the database refuses for a reason we didn't foresee harms
// only itself.
func TestInboxOneBadRow(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `ALTER TABLE redrive.dead_jobs ADD CONSTRAINT unforeseen CHECK (job_id <> 'bad')`)
	for _, id := range []string{"1", "bad", "2"} {
		b.exec(t, `SELECT redrive.capture_dead_job(text '{"environment":"e","job_type":"t","payload":[],"job_id":"`+id+`"}')`)
	}
	if n := b.drain(t); n != 3 {
		t.Errorf("took %d", n)
	}
	if n := get[int](t, b, `SELECT count(*) FROM redrive.dead_jobs`); n != 2 {
		t.Errorf("%d jobs", n)
	}
	if e := get[string](t, b, `SELECT error FROM redrive.quarantine`); !strings.Contains(e, "SQLSTATE 23514") {
		t.Errorf("error: %s", e)
	}
}

// Trouble of the database quarantines nothing: the documents wait.
func TestInboxWaitsForTheDatabase(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `SELECT redrive.capture_dead_job(text '{"environment":"e","job_type":"t","payload":[],"job_id":"1"}')`)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.inbox().Drain(ctx); err == nil {
		t.Error("drained without a database")
	}
	if n := get[int](t, b, `SELECT count(*) FROM redrive.inbox`); n != 1 {
		t.Errorf("%d left", n)
	}
	if n := b.drain(t); n != 1 {
		t.Errorf("took %d", n)
	}
}

func TestInboxSeveralProcesses(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const docs = 700
	for i := range docs {
		b.exec(t, `SELECT redrive.capture_dead_job(text '`+fmt.Sprintf(`{"environment":"e","job_type":"t%d","payload":[],"job_id":"%d"}`, i%7, i)+`')`)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if err := b.inbox().Run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	deadline := time.Now().Add(30 * time.Second)
	for get[int](t, b, `SELECT count(*) FROM redrive.inbox`) > 0 && time.Now().Before(deadline) {
		time.Sleep(20 * time.Millisecond)
	}
	cancel()
	wg.Wait()
	if n := get[int](t, b, `SELECT count(*) FROM redrive.dead_jobs`); n != docs {
		t.Errorf("%d jobs", n)
	}
	if n := get[int](t, b, `SELECT count(*) FROM redrive.deaths`); n != docs {
		t.Errorf("%d deaths", n)
	}
}
