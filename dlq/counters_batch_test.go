package dlq

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// recountBatches fails unless the tallies that readers see equal a recount of
// the replays, in one snapshot.
func (b *bundle) recountBatches(t testing.TB) {
	t.Helper()
	rows, err := b.pool.Query(t.Context(), `
		SELECT batch_id, tally, coalesce(a.n, 0) AS told, coalesce(r.n, 0) AS counted
		FROM redrive.batch_tallies a
		FULL JOIN (
			SELECT batch_id, redrive.tally_of(state, outcome, verdict) AS tally, count(*) AS n
			FROM redrive.replays
			GROUP BY 1, 2) r
		USING (batch_id, tally)
		WHERE coalesce(a.n, 0) <> coalesce(r.n, 0)`)
	if err != nil {
		t.Error(err)
		return
	}
	wrong, err := pgx.CollectRows(rows, pgx.RowToMap)
	if err != nil {
		t.Error(err)
	}
	for _, w := range wrong {
		t.Errorf("differs from a recount: %v", w)
	}
}

// Tallies are exact at every moment of a random concurrent run, while they are
// folded: moves of many rows at once, of several batches, and moves undone.
func TestTalliesAreExactAtEveryMoment(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `
		INSERT INTO redrive.batches (environment, job_type, kind, state, cutoff, created_by)
		SELECT 'production', 'mail', 'batch', 'running', now(), 'ann' FROM generate_series(1, 3)`)
	b.exec(t, `
		INSERT INTO redrive.replays (batch_id, dead_job_id, generation, payload_version, environment, source, job_id, job_type, key_scope, state, verdict)
		SELECT 1 + n % 3, n, 1, 1, 'production', 'app', n::text, 'mail', 's', 'planned', (ARRAY['eligible', 'eligible', 'key_done'])[1 + n % 5 % 3]
		FROM generate_series(1, 300) n`)
	moves := []string{
		`UPDATE redrive.replays SET state = 'pending' WHERE id IN (SELECT id FROM redrive.replays WHERE id % 7 = $1 AND state = 'planned' AND verdict = 'eligible' FOR UPDATE SKIP LOCKED)`,
		`UPDATE redrive.replays SET state = 'ready' WHERE id IN (SELECT id FROM redrive.replays WHERE id % 7 = $1 AND state = 'pending' FOR UPDATE SKIP LOCKED)`,
		`UPDATE redrive.replays SET state = 'released' WHERE id IN (SELECT id FROM redrive.replays WHERE id % 7 = $1 AND state = 'ready' FOR UPDATE SKIP LOCKED)`,
		`UPDATE redrive.replays SET state = 'ended', outcome = (ARRAY['succeeded', 'failed'])[1 + id % 2] WHERE id IN (SELECT id FROM redrive.replays WHERE id % 7 = $1 AND state = 'released' FOR UPDATE SKIP LOCKED)`,
		`UPDATE redrive.replays SET verdict = 'too_old' WHERE id IN (SELECT id FROM redrive.replays WHERE id % 7 = $1 AND state = 'planned' FOR UPDATE SKIP LOCKED LIMIT 5)`,
		`UPDATE redrive.replays SET due_at = now() WHERE id IN (SELECT id FROM redrive.replays WHERE id % 7 = $1 FOR UPDATE SKIP LOCKED)`,
	}
	var work, watch sync.WaitGroup
	done := make(chan struct{})
	for w := range 4 {
		work.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), 11))
			for range 120 {
				err := pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) error {
					if _, err := tx.Exec(t.Context(), moves[r.IntN(len(moves))], r.IntN(7)); err != nil {
						return err
					}
					if r.IntN(5) == 0 {
						return errUndone
					}
					return nil
				})
				if err != nil && !errors.Is(err, errUndone) {
					t.Error(err)
				}
			}
		})
	}
	watch.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				b.recountBatches(t)
			}
		}
	})
	watch.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				if _, err := FoldCounters(t.Context(), b.pool); err != nil {
					t.Error(err)
				}
			}
		}
	})
	work.Wait()
	close(done)
	watch.Wait()
	if _, err := FoldCounters(t.Context(), b.pool); err != nil {
		t.Fatal(err)
	}
	b.recountBatches(t)
	if n := get[int](t, b, `SELECT (SELECT count(*) FROM redrive.batch_deltas) + (SELECT count(*) FROM redrive.batch_counters WHERE n = 0)`); n != 0 {
		t.Errorf("%d deltas or counters of nothing are left", n)
	}
	if n := get[int](t, b, `SELECT sum(n)::integer FROM redrive.batch_counters`); n != 300 {
		t.Errorf("tallies add up to %d of 300", n)
	}
}

var errUndone = errors.New("undone on purpose")
