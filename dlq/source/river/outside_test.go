package river

import (
	"fmt"
	"strconv"
	"testing"
	"time"
)

func (b *bundle) status(id int64) string {
	b.t.Helper()
	return one[string](b, b.store, `SELECT status FROM redrive.dead_jobs WHERE job_id = $1`, strconv.FormatInt(id, 10))
}

func (b *bundle) marks(id int64) string {
	b.t.Helper()
	return one[string](b, b.store, `
		SELECT concat_ws(',', CASE WHEN source_ref ? 'gone' THEN 'gone' END, CASE WHEN source_ref ? 'retried_outside' THEN 'retried' END)
		FROM redrive.dead_jobs WHERE job_id = $1`, strconv.FormatInt(id, 10))
}

func TestOutsideChanges(t *testing.T) {
	t.Parallel()
	b := setup(t)
	completed, retried, gone, replaying, resolved, untouched, snoozed := b.dead(nil), b.dead(nil), b.dead(nil), b.dead(nil), b.dead(nil), b.dead(nil), b.dead(nil)
	b.complete()
	settle := func(id int64, status string) {
		b.exec(b.store, `UPDATE redrive.dead_jobs SET status = $2 WHERE job_id = $1`, strconv.FormatInt(id, 10), status)
	}
	settle(replaying, "replaying")
	settle(resolved, "resolved")
	settle(snoozed, "snoozed")
	row := func(id int64, state string) {
		b.exec(b.from, `UPDATE `+b.table+` SET state = $2::text::"App_River".river_job_state,
			finalized_at = CASE WHEN $2 IN ('completed', 'discarded') THEN now() END WHERE id = $1`, id, state)
	}
	for _, id := range []int64{completed, replaying, resolved, snoozed} {
		row(id, "completed")
	}
	row(retried, "retryable")
	b.exec(b.from, `DELETE FROM `+b.table+` WHERE id = $1`, gone)
	before := one[time.Time](b, b.store, `SELECT updated_at FROM redrive.dead_jobs WHERE job_id = $1`, strconv.FormatInt(untouched, 10))
	b.complete()
	for _, c := range []struct {
		what          string
		id            int64
		status, marks string
	}{
		{"completed outside", completed, "recovered", ""},
		{"completed while snoozed", snoozed, "recovered", ""},
		{"retried outside", retried, "open", "retried"},
		{"deleted", gone, "open", "gone"},
		{"being replayed", replaying, "replaying", ""},
		{"settled before", resolved, "resolved", ""},
		{"unchanged", untouched, "open", ""},
	} {
		if got := b.status(c.id); got != c.status {
			t.Errorf("%s: status %q, want %q", c.what, got, c.status)
		}
		if got := b.marks(c.id); got != c.marks {
			t.Errorf("%s: marks %q, want %q", c.what, got, c.marks)
		}
	}
	want(b, "why", recoveredReason+" redrive", `
		SELECT settled_reason || ' ' || settled_by FROM redrive.dead_jobs WHERE job_id = $1`, strconv.FormatInt(completed, 10))
	want(b, "a row that nothing changed", before.UnixMicro(), `
		SELECT (extract(epoch FROM updated_at) * 1000000)::bigint FROM redrive.dead_jobs WHERE job_id = $1`, strconv.FormatInt(untouched, 10))

	row(retried, "completed")
	b.complete()
	if got := b.status(retried); got != "recovered" {
		t.Errorf("completed after a retry outside: %q", got)
	}
}

// A death that is captured between reading and writing voids the decision.
func TestAnOutsideDecisionIsForOneGeneration(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.dead(nil)
	b.complete()
	jobs, err := b.unsettled(b.ctx)
	if err != nil || len(jobs) != 1 {
		t.Fatalf("unsettled: %v, %v", jobs, err)
	}
	b.exec(b.store, `UPDATE redrive.dead_jobs SET generation = 2`)
	if err := b.apply(b.ctx, decide(jobs, map[int64]current{jobs[0].riverID(): {State: "completed", Kind: jobs[0].JobType, Attempt: 4}})); err != nil {
		t.Fatal(err)
	}
	want(b, "status", "open", `SELECT status FROM redrive.dead_jobs`)
}

// A pass that fails in the middle goes on where it stood.
func TestAPassIsResumable(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(b.from, `INSERT INTO `+b.table+` (kind, args, state, finalized_at, attempt)
		SELECT 'k', '{}', 'discarded', now() - interval '3 days' - i * interval '1 second', 1 FROM generate_series(1, 1200) i`)
	b.exec(b.from, `INSERT INTO `+b.table+` (kind, args, state, finalized_at, attempt)
		SELECT 'k', '{}', 'cancelled', '2026-01-02', 1 FROM generate_series(1, 700) i`) // many of one moment
	page, missing, err := b.compare(b.ctx, deadStates[0], first())
	if err != nil || len(page) != pageRows || len(missing) != pageRows {
		t.Fatalf("first page: %d rows, %d missing, %v", len(page), len(missing), err)
	}
	b.exec(b.store, `ALTER TABLE redrive.river_deaths RENAME TO away`)
	if err := b.CompletePass(b.ctx); err == nil {
		t.Fatal("the pass succeeded without its table")
	}
	b.exec(b.store, `ALTER TABLE redrive.away RENAME TO river_deaths`)
	b.complete()
	want(b, "captured", 1900, `SELECT count(*)::int FROM redrive.dead_jobs`)
	want(b, "completed", true, `SELECT last_complete_at IS NOT NULL FROM redrive.sources`)
}

// A row of another kind, or with fewer attempts than the death that we know, is
// another job's: the application emptied its table and ids began anew.
func TestAnIDThatIsUsedAgainRecoversNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	kind, attempt := b.dead(nil), b.dead(nil)
	b.complete()
	b.exec(b.from, `UPDATE `+b.table+` SET state = 'completed', kind = 'other' WHERE id = $1`, kind)
	b.exec(b.from, `UPDATE `+b.table+` SET state = 'completed', attempt = 1 WHERE id = $1`, attempt)
	b.complete()
	for _, id := range []int64{kind, attempt} {
		if b.status(id) != "open" || b.marks(id) != "gone" {
			t.Errorf("job %d: %s, %s", id, b.status(id), b.marks(id))
		}
	}
}

func TestPruneForgetsOnlyWhatRiverDeletedLongAgo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	old := map[string]string{"finalized_at": "now() - interval '2 days'"}
	kept, gone, fresh := b.dead(old), b.dead(old), b.dead(nil)
	b.complete()
	b.exec(b.from, `DELETE FROM `+b.table+` WHERE id = ANY($1)`, []int64{gone, fresh})
	if err := b.prune(b.ctx); err != nil {
		t.Fatal(err)
	}
	want(b, "marks", fmt.Sprint(kept, fresh), `SELECT string_agg(river_id::text, ' ' ORDER BY river_id) FROM redrive.river_deaths`)
}

// A job that died in another schema has an id that means another row here.
func TestJobsOfAnotherSchemaAreLeftAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.dead(nil)
	b.complete()
	b.exec(b.store, `UPDATE redrive.dead_jobs SET source_ref = source_ref || '{"schema": "before"}'`)
	b.exec(b.from, `UPDATE `+b.table+` SET state = 'completed'`)
	b.complete()
	if b.status(id) != "open" || b.marks(id) != "" {
		t.Errorf("status %q, marks %q", b.status(id), b.marks(id))
	}
}

// A replay that was put in as a new row, because the job's own was gone, dies as
// the same job, and is found by its own row afterwards.
func TestANewRowForAJobIsTheSameJob(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.dead(nil)
	b.complete()
	b.exec(b.from, `DELETE FROM `+b.table)
	again := b.dead(map[string]string{
		"attempt":  "1",
		"errors":   `ARRAY['{"attempt":1,"error":"Gone: still","at":"2026-01-02T03:04:05Z"}'::jsonb]`,
		"metadata": fmt.Sprintf(`'{"redrive:job_id":"%d","redrive:replay":"5"}'`, id),
	})
	b.poll()
	want(b, "one job", 1, `SELECT count(*)::int FROM redrive.dead_jobs`)
	want(b, "its second death, at the new row", fmt.Sprintf("2 %d 5", again), `
		SELECT concat_ws(' ', generation, source_ref ->> 'river_id', source_ref ->> 'replay') FROM redrive.dead_jobs`)
	b.exec(b.from, `UPDATE `+b.table+` SET state = 'completed'`)
	b.complete()
	if got := b.status(id); got != "recovered" {
		t.Errorf("status %q", got)
	}
}
