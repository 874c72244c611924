package river

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/dlq/source"
)

func TestABadRowHarmsOnlyItself(t *testing.T) {
	t.Parallel()
	b := setup(t)
	long := strings.Repeat("k", 4000)
	bad := b.dead(map[string]string{"metadata": `'{"redrive:key":"` + long + `","password":"hunter2-plain"}'`})
	odd := []map[string]string{
		{},
		{"finalized_at": `'infinity'`},
		{"finalized_at": `'20000-01-01'`},
		{"metadata": `'[1,2]'`},
		{"metadata": `'{"redrive:attempts":7,"redrive:death":[],"redrive:job":null,"redrive:effect":"perhaps"}'`},
		{"errors": `ARRAY['"text"'::jsonb, '{"attempt":"two","error":5}'::jsonb, 'null'::jsonb]`},
		{"errors": "NULL", "attempted_by": "NULL", "attempt": "0"},
		{"args": `'"a string"'`},
		{"args": `'{"idempotency_key":["no"],"send_id":17}'`},
	}
	for _, set := range odd {
		b.dead(set)
	}
	b.poll()
	b.complete() // nothing is taken again
	b.poll()
	want(b, "captured", len(odd), `SELECT count(*)::int FROM redrive.dead_jobs`)
	want(b, "quarantined", 1, `SELECT count(*)::int FROM redrive.quarantine`)
	want(b, "the number is a key as written", 1, `SELECT count(*)::int FROM redrive.dead_jobs WHERE idempotency_key = '17'`)
	want(b, "told as captured", len(odd), `SELECT captured::int FROM redrive.sources`)
	text := one[string](b, b.store, `SELECT error || ' ' || preview FROM redrive.quarantine`)
	if !strings.Contains(text, "idempotency_key") || strings.Contains(text, "hunter2") {
		t.Errorf("the quarantine says: %s", text)
	}
	raw := one[[]byte](b, b.store, `SELECT substr(raw, 2) FROM redrive.quarantine`)
	if row := one[string](b, b.from, `SELECT to_json(j)::text FROM `+b.table+` j WHERE id = $1`, bad); row != string(raw) {
		t.Error("the raw row is not kept")
	}
}

func TestAFailingCaptureIsIsolated(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for range 20 {
		b.dead(nil)
	}
	// A constraint that the capture's own checks don't know.
	b.exec(b.store, `ALTER TABLE redrive.dead_jobs ADD CONSTRAINT not_seven CHECK (job_id <> '7')`)
	b.poll()
	want(b, "captured", 19, `SELECT count(*)::int FROM redrive.dead_jobs`)
	want(b, "quarantined", 1, `SELECT count(*)::int FROM redrive.quarantine WHERE error LIKE 'river_job 7, %'`)
	want(b, "marked", 20, `SELECT count(*)::int FROM redrive.river_deaths`)
}

func TestACrashBetweenMarkAndCaptureTakesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.dead(nil)
	b.exec(b.store, `ALTER TABLE redrive.dead_jobs RENAME TO away`)
	if err := b.Poll(b.ctx); err == nil {
		t.Fatal("a poll without a store succeeded")
	}
	want(b, "marks", 0, `SELECT count(*)::int FROM redrive.river_deaths`)
	b.exec(b.store, `ALTER TABLE redrive.away RENAME TO dead_jobs`)
	b.poll()
	want(b, "captured", 1, `SELECT count(*)::int FROM redrive.dead_jobs`)
}

func TestASourceThatIsDownHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cfg.PollEvery = 50 * time.Millisecond
	down, err := pgxpool.New(b.ctx, "postgres://app:very-secret-pass@127.0.0.1:1/app?connect_timeout=2")
	if err != nil {
		t.Fatal(err)
	}
	defer down.Close()
	cfg := b.cfg
	cfg.Source = Source{Environment: testEnv, Name: "down", Pool: down}
	broken, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer start(t, broken)()
	defer start(t, b.reader())()
	b.dead(nil)
	eventually(b, "captured", 1, `SELECT count(*)::int FROM redrive.dead_jobs`)
	eventually(b, "the broken one says so", true, `SELECT last_error <> '' FROM redrive.sources WHERE name = 'down'`)
	want(b, "without its address", false, `SELECT last_error ~ 'secret|127|app' FROM redrive.sources WHERE name = 'down'`)
	want(b, "the other is healthy", "", `SELECT last_error FROM redrive.sources WHERE name = $1`, testName)
}

func TestASourceRecovers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cfg.PollEvery, b.cfg.CompleteEvery = 50*time.Millisecond, 50*time.Millisecond
	b.exec(b.from, `ALTER SCHEMA "App_River" RENAME TO elsewhere`)
	defer start(t, b.reader())()
	eventually(b, "the fault in words", true, `SELECT last_error LIKE 'There is no table river_job%' FROM redrive.sources`)
	want(b, "never seen", true, `SELECT last_seen_at IS NULL FROM redrive.sources`)
	b.exec(b.from, `ALTER SCHEMA elsewhere RENAME TO "App_River"`)
	eventually(b, "healthy again", true, `
		SELECT last_error = '' AND last_seen_at IS NOT NULL AND last_complete_at IS NOT NULL FROM redrive.sources`)
}

func TestCountsOfWaitingAndWorking(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.dead(map[string]string{"state": `'retryable'`, "finalized_at": "NULL"})
	b.dead(map[string]string{"state": `'retryable'`, "finalized_at": "NULL"})
	b.dead(map[string]string{"state": `'running'`, "finalized_at": "NULL"})
	if err := b.count(b.ctx); err != nil {
		t.Fatal(err)
	}
	list, err := source.List(b.ctx, b.store, []string{testEnv})
	if err != nil || len(list) != 1 {
		t.Fatalf("sources: %v, %v", list, err)
	}
	if s := list[0]; *s.WaitingRetry != 2 || *s.InFlight != 1 || s.Kind != source.KindRiver {
		t.Errorf("got %+v", s)
	}
}

func TestNewRefusesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, src := range []Source{{Name: "app", Same: true}, {Environment: "staging", Same: true}, {Environment: "staging", Name: "app"}} {
		cfg := b.cfg
		cfg.Source = src
		if _, err := New(cfg); !problem.Is(err, problem.Invalid) {
			t.Errorf("%+v: %v", src, err)
		}
	}
}

func TestRunEndsCleanly(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for range 600 {
		b.dead(nil)
	}
	ctx, cancel := context.WithCancel(b.ctx)
	ended := make(chan struct{})
	go func() { _ = b.Run(ctx); close(ended) }()
	time.Sleep(150 * time.Millisecond)
	cancel()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Fatal("Run did not end")
	}
	want(b, "marks equal captures", true, `
		SELECT (SELECT count(*) FROM redrive.river_deaths) = (SELECT count(*) FROM redrive.dead_jobs)`)
	b.poll()
	want(b, "the rest follows", 600, `SELECT count(*)::int FROM redrive.dead_jobs`)
}
