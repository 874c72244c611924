package river

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// writeDeaths is one application client: rows that it finalizes by a clock of
// its own, in transactions that commit late.
func (b *bundle) writeDeaths(client, n int) error {
	rnd := rand.New(rand.NewPCG(1, uint64(client)))
	skew := time.Duration(rnd.Int64N(int64(4*time.Hour))) - 2*time.Hour
	for n > 0 {
		part := min(n, 1+rnd.IntN(60))
		n -= part
		err := inTx(b.ctx, b.from, func(tx pgx.Tx) error {
			for range part {
				at := time.Now().Add(skew)
				_, err := tx.Exec(b.ctx, `
					INSERT INTO `+b.table+` (kind, state, args, attempt, max_attempts, errors, finalized_at)
					VALUES ('sync_contact', 'discarded', $1, 3, 3, ARRAY[$2::jsonb], $3)`,
					fmt.Sprintf(`{"client":%d,"n":1.50}`, client),
					`{"at":"2026-01-02T03:04:05Z","attempt":3,"error":"NotFound: no such contact","trace":""}`, at)
				if err != nil {
					return err
				}
			}
			time.Sleep(time.Duration(rnd.IntN(150)) * time.Millisecond)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Clocks that are off by up to two hours and late commits lose nothing, with two
// processes reading, in the store's database and in another.
func TestSkewedClocksAndLateCommitsLoseNothing(t *testing.T) {
	t.Parallel()
	const clients, each = 8, 500
	for name, setup := range map[string]func(*testing.T) *bundle{"same database": setup, "another database": setupElsewhere} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.cfg.PollEvery, b.cfg.CompleteEvery = 50*time.Millisecond, 300*time.Millisecond
			stopOne, stopTwo := start(t, b.reader()), start(t, b.reader())
			defer stopOne()
			defer stopTwo()
			var group sync.WaitGroup
			for client := range clients {
				group.Go(func() {
					if err := b.writeDeaths(client, each); err != nil {
						t.Errorf("client %d: %v", client, err)
					}
				})
			}
			group.Wait()
			eventually(b, "jobs", clients*each, `SELECT count(*)::int FROM redrive.dead_jobs`)
			want(b, "deaths", clients*each, `SELECT count(*)::int FROM redrive.deaths`)
			want(b, "marks", clients*each, `SELECT count(*)::int FROM redrive.river_deaths`)
			want(b, "counted", clients*each, `SELECT captured::int FROM redrive.sources`)
			want(b, "generations", 1, `SELECT max(generation) FROM redrive.dead_jobs`)
			want(b, "quarantined", 0, `SELECT count(*)::int FROM redrive.quarantine`)
			want(b, "exact payloads", clients*each, `
				SELECT count(*)::int FROM redrive.payloads WHERE convert_from(substr(bytes, 2), 'UTF8') ~ '^\{"n": 1.50, "client": \d\}$'`)
		})
	}
}
