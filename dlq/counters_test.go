package dlq

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// recount fails unless the counts that readers see equal a recount of the rows.
func (b *bundle) recount(t testing.TB) {
	t.Helper()
	b.recountJobs(t)
	for name, sql := range map[string]string{
		"deaths per hour": `
			SELECT count(*) FROM (
				SELECT environment, hour, job_type, category, n::bigint FROM redrive.deaths_per_hour
				EXCEPT
				SELECT environment, date_trunc('hour', died_at, 'UTC'), job_type, category, count(*)
				FROM redrive.deaths
				GROUP BY 1, 2, 3, 4) x`,
		"hours missing": `
			SELECT count(*) FROM (
				SELECT environment, date_trunc('hour', died_at, 'UTC'), job_type, category, count(*)
				FROM redrive.deaths
				GROUP BY 1, 2, 3, 4
				EXCEPT
				SELECT environment, hour, job_type, category, n::bigint FROM redrive.deaths_per_hour) x`,
	} {
		if n := get[int](t, b, sql); n != 0 {
			t.Errorf("%s: %d rows differ from a recount", name, n)
		}
	}
}

// recountGroups does the same for groups, once all deltas are folded.
func (b *bundle) recountGroups(t testing.TB) {
	t.Helper()
	n := get[int](t, b, `
		SELECT count(*) FROM (
			SELECT fingerprint, deaths, first_seen, last_seen FROM redrive.groups
			FULL JOIN (
				SELECT fingerprint, count(*) AS deaths, min(died_at) AS first_seen, max(died_at) AS last_seen
				FROM redrive.deaths
				GROUP BY fingerprint) r
			USING (fingerprint, deaths, first_seen, last_seen)
			WHERE groups.job_type IS NULL) x`)
	if n != 0 {
		t.Errorf("%d groups differ from a recount", n)
	}
}

func TestFoldCounters(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.capture(t, job("a", 1, 1), job("b", 1, 2), job("c", 1, 3))
	b.recount(t)
	if n, err := FoldCounters(t.Context(), b.pool); n == 0 || err != nil {
		t.Fatalf("folded %d: %v", n, err)
	}
	b.recount(t)
	b.recountGroups(t)
	if n := get[int](t, b, `SELECT (SELECT count(*) FROM redrive.counter_deltas) + (SELECT count(*) FROM redrive.death_deltas)`); n != 0 {
		t.Errorf("%d deltas left", n)
	}
	group := get[string](t, b, `SELECT concat_ws('|', job_type, category, error_class, deaths) FROM redrive.groups`)
	if group != "send_invoice|transient|HttpError|3" {
		t.Errorf("group: %s", group)
	}
	b.exec(t, `DELETE FROM redrive.dead_jobs`)
	if _, err := FoldCounters(t.Context(), b.pool); err != nil {
		t.Fatal(err)
	}
	if n := get[int](t, b, `SELECT count(*) FROM redrive.counters`); n != 0 {
		t.Errorf("%d counters of nothing", n)
	}
}

// Counts are exact after a random concurrent workload, folded meanwhile.
func TestFoldCountersConcurrently(t *testing.T) {
	t.Parallel()
	b := setup(t)
	done := make(chan struct{})
	var work, folds sync.WaitGroup
	for w := range 4 {
		work.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), 7))
			for range 25 {
				docs := make([]*Document, 1+r.IntN(10))
				for i := range docs {
					docs[i] = job(fmt.Sprint(r.IntN(40)), 1+r.IntN(5), r.IntN(60))
					docs[i].JobType = fmt.Sprint("type", r.IntN(3))
					docs[i].Attempts[0].Message = []string{"provider answered 503", "invalid recipient", "no customer 12"}[r.IntN(3)]
				}
				b.capture(t, docs...)
				switch r.IntN(4) {
				case 0:
					b.exec(t, `UPDATE redrive.dead_jobs SET status = 'discarded' WHERE job_id = $1`, fmt.Sprint(r.IntN(40)))
				case 1:
					b.exec(t, `DELETE FROM redrive.dead_jobs WHERE job_id = $1 AND status = 'discarded'`, fmt.Sprint(r.IntN(40)))
				case 2:
					tx, err := b.pool.Begin(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					_, err = b.c.Capture(t.Context(), tx, []*Document{job(fmt.Sprint("gone", r.IntN(40)), 1, 1)})
					if err := tx.Rollback(t.Context()); err != nil {
						t.Error(err)
					}
					if err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	for range 2 {
		folds.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if _, err := FoldCounters(t.Context(), b.pool); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	close(done)
	folds.Wait()
	b.recountJobs(t)
	if _, err := FoldCounters(t.Context(), b.pool); err != nil {
		t.Fatal(err)
	}
	b.recountJobs(t)
}

// recountJobs compares the counts of jobs with their rows, in one snapshot.
func (b *bundle) recountJobs(t testing.TB) {
	t.Helper()
	rows, err := b.pool.Query(t.Context(), `
		SELECT environment, job_type, category, status, fingerprint, coalesce(a.n, 0)::bigint, coalesce(r.n, 0)
		FROM redrive.counts a
		FULL JOIN (
			SELECT environment, job_type, category, status, fingerprint, count(*) AS n
			FROM redrive.dead_jobs
			GROUP BY environment, job_type, category, status, fingerprint) r
		USING (environment, job_type, category, status, fingerprint)
		WHERE coalesce(a.n, 0) <> coalesce(r.n, 0)`)
	if err != nil {
		t.Fatal(err)
	}
	wrong, err := pgx.CollectRows(rows, pgx.RowToMap)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range wrong {
		t.Errorf("differs from a recount: %v", w)
	}
	byType := get[int](t, b, `
		SELECT count(*)
		FROM redrive.type_counts a
		FULL JOIN (
			SELECT environment, job_type, category, status, count(*) AS n
			FROM redrive.dead_jobs
			GROUP BY environment, job_type, category, status) r
		USING (environment, job_type, category, status)
		WHERE coalesce(a.n, 0) <> coalesce(r.n, 0)`)
	if byType != 0 {
		t.Errorf("%d counts by type differ from a recount", byType)
	}
}
