package replay_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/dlq/ledger"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/dlq/replay"
)

// TestMixedWorkload lets people, workers, sources and two consoles do
// everything at once, then ends what is open and looks at what must hold.
func TestMixedWorkload(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `CREATE TABLE public.handed_over (replay_id bigint)`)
	b.target.written = true
	other := *b.svc // a second process
	var ids []int64
	for i := range 24 {
		ids = append(ids, b.job(t, jobOpts{id: fmt.Sprint(i), key: []string{"", fmt.Sprint("k", i/2)}[i%3/2], entity: []string{"", fmt.Sprint("e", i%4)}[i%2]}))
	}
	ctx := context.Background()
	generation := func(id int64) (g int) {
		_ = b.pool.QueryRow(ctx, `SELECT generation FROM redrive.dead_jobs WHERE id = $1`, id).Scan(&g)
		return g
	}
	act := func(r *rand.Rand) error {
		i := r.IntN(len(ids))
		id, key := ids[i], fmt.Sprint("k", i/2)
		var replayID int64
		_ = b.pool.QueryRow(ctx, `SELECT id FROM redrive.replays WHERE state <> 'ended' ORDER BY random() LIMIT 1`).Scan(&replayID)
		switch r.IntN(10) {
		case 0, 1, 2:
			_, err := b.svc.One(ctx, b.oncall, replay.Order{DeadJobID: id, Generation: generation(id), PayloadVersion: 1, Reason: "mixed",
				At: time.Now().Add(time.Duration(r.IntN(2)*r.IntN(300)) * time.Millisecond)})
			return err
		case 3:
			_, err := b.svc.ReleaseDue(ctx)
			return err
		case 4:
			_, err := other.ReleaseDue(ctx)
			return err
		case 5:
			if replayID == 0 {
				return nil
			}
			outcomes := []replay.End{{Outcome: replay.Succeeded}, {Outcome: replay.Unconfirmed, EffectUnknown: true},
				{Outcome: replay.Failed, Failure: &replay.Failure{Class: "HTTP 503", Message: "busy", Category: "transient", Fingerprint: "g", StatusCode: 503}}}
			_, err := b.svc.Record(ctx, replayID, outcomes[r.IntN(3)])
			return err
		case 6:
			if replayID == 0 {
				return nil
			}
			return b.svc.CancelOne(ctx, b.oncall, replayID, "mixed")
		case 7: // a worker's transaction
			if r.IntN(4) > 0 {
				_, err := ledger.Begin(ctx, b.pool, welcome(key))
				return err
			}
			return pgx.BeginFunc(ctx, b.pool, func(tx pgx.Tx) error {
				if _, err := tx.Exec(ctx, `SELECT id FROM redrive.dead_jobs WHERE id = $1 FOR NO KEY UPDATE`, id); err != nil {
					return err
				}
				return ledger.Finish(ctx, tx, welcome(key), nil)
			})
		case 8:
			return ledger.Settle(ctx, b.pool, b.oncall, id, ledger.Settlement{Reason: "mixed"})
		}
		_, err := b.pool.Exec(ctx, `
			UPDATE redrive.dead_jobs SET generation = generation + 1, status = 'open', category = 'throttled' WHERE id = $1`, id)
		return err
	}
	var wg sync.WaitGroup
	for w := range 6 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(7, uint64(w)))
			for range 60 {
				if err := act(r); err != nil && !problem.Is(err, problem.Conflict) && !ledger.IsBusy(err) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for d := time.Hour; d < 6*time.Hour; d += time.Hour { // what is open leaves, and its deadline passes
		b.svc.Now = func() time.Time { return time.Now().Add(d) }
		for range 6 {
			b.release(t)
			if _, err := b.svc.Unblock(ctx); err != nil {
				t.Fatal(err)
			}
		}
		b.svc.Now = func() time.Time { return time.Now().Add(d + 30*time.Minute) }
		if _, err := b.svc.Expire(ctx); err != nil {
			t.Fatal(err)
		}
	}
	for what, sql := range map[string]string{
		"replays that never ended":                     `SELECT count(*) FROM redrive.replays WHERE state <> 'ended'`,
		"batches that never ended":                     `SELECT count(*) FROM redrive.batches WHERE state <> 'done'`,
		"jobs stuck as replaying":                      `SELECT count(*) FROM redrive.dead_jobs WHERE status = 'replaying'`,
		"orders without their entry":                   `SELECT count(*) FROM redrive.batches b WHERE NOT EXISTS (SELECT FROM redrive.audit_entries a WHERE a.id = b.order_entry AND a.batch_id = b.id)`,
		"stopped without an entry":                     `SELECT count(*) FROM redrive.replays r WHERE outcome = 'skipped' AND NOT EXISTS (SELECT FROM redrive.audit_entries a WHERE a.object_kind = 'replay' AND a.object_id = r.id::text AND a.action = 'replay.skipped')`,
		"counts that differ":                           countsDiffer,
		"deaths by hour that differ":                   deathsDiffer,
		"open jobs of keys that are done, effect none": `SELECT count(*) FROM redrive.dead_jobs d JOIN redrive.ledger l ON (l.environment, l.scope, l.key) = (d.environment, d.key_scope, d.idempotency_key) WHERE l.state = 'done' AND d.status = 'replaying'`,
	} {
		if n := b.count(t, sql); n != 0 {
			t.Errorf("%s: %d", what, n)
		}
	}
	if _, err := dlq.FoldCounters(ctx, b.pool); err != nil {
		t.Fatal(err)
	}
	if n := b.count(t, countsDiffer) + b.count(t, deathsDiffer); n != 0 {
		t.Errorf("%d counts differ after folding", n)
	}
	if n := b.count(t, `SELECT count(*) FROM (SELECT FROM public.handed_over GROUP BY replay_id HAVING count(*) > 1) h`); n != 0 {
		t.Errorf("%d replays were handed over more than once", n)
	}
	if len(b.target.left) == 0 {
		t.Error("nothing ever left")
	}
}

const (
	countsDiffer = `
		SELECT count(*)
		FROM (SELECT environment, job_type, category, status, fingerprint, count(*) AS n FROM redrive.dead_jobs GROUP BY 1, 2, 3, 4, 5) j
		FULL JOIN (SELECT * FROM redrive.counts WHERE n <> 0) c USING (environment, job_type, category, status, fingerprint)
		WHERE j.n IS DISTINCT FROM c.n`
	deathsDiffer = `
		SELECT count(*)
		FROM (SELECT environment, job_type, category, count(*) AS n FROM redrive.deaths GROUP BY 1, 2, 3) j
		FULL JOIN (SELECT environment, job_type, category, sum(n) AS n FROM redrive.deaths_per_hour GROUP BY 1, 2, 3) c USING (environment, job_type, category)
		WHERE j.n IS DISTINCT FROM c.n`
)

// TestNothingWithoutItsEntry breaks the log at every act that writes one.
func TestNothingWithoutItsEntry(t *testing.T) {
	t.Parallel()
	b := setup(t)
	later, waiting, unknown := b.job(t, jobOpts{id: "1", key: "a"}), b.job(t, jobOpts{id: "2", key: "b"}), b.job(t, jobOpts{id: "3", key: "c", effect: "unknown"})
	o, err := b.svc.One(t.Context(), b.oncall, replay.Order{DeadJobID: later, Generation: 1, PayloadVersion: 1, Reason: "later", At: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	w, err := b.order(waiting)
	if err != nil {
		t.Fatal(err)
	}
	b.exec(t, `ALTER TABLE redrive.audit_entries ADD CONSTRAINT broken CHECK (false) NOT VALID`)
	b.target.fail.Store(true) // the target refuses: a decision that is written down
	before := b.picture(t)
	for what, err := range map[string]error{
		"cancel": b.svc.CancelOne(t.Context(), b.oncall, o.ReplayID, "changed my mind"),
		"settle": ledger.Settle(t.Context(), b.pool, b.oncall, unknown, ledger.Settlement{Reason: "looked it up"}),
		"finish": ledger.Finish(t.Context(), b.pool, welcome("a"), nil),
	} {
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || pg.ConstraintName != "broken" {
			t.Errorf("%s with a broken log: %v", what, err)
		}
	}
	if b.release(t) != 0 {
		t.Error("it left")
	}
	if after := b.picture(t); after != before {
		t.Errorf("changed without an entry:\n%s\n%s", before, after)
	}
	b.exec(t, `ALTER TABLE redrive.audit_entries DROP CONSTRAINT broken`)
	b.svc.Now = func() time.Time { return time.Now().Add(time.Minute) }
	b.release(t)
	if _, out, code := b.outcome(t, w.ReplayID); out != replay.Skipped || code != "no" {
		t.Errorf("after the log was mended: %s %s", out, code)
	}
}

// picture is the state of all jobs, replays and effects.
func (b *bundle) picture(t *testing.T) (s string) {
	t.Helper()
	err := b.pool.QueryRow(t.Context(), `
		SELECT (SELECT string_agg(concat_ws(' ', id, status, effect, generation), ', ' ORDER BY id) FROM redrive.dead_jobs) || ' | ' ||
		       (SELECT string_agg(concat_ws(' ', id, state, outcome), ', ' ORDER BY id) FROM redrive.replays) || ' | ' ||
		       (SELECT count(*) FROM redrive.ledger)`).Scan(&s)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestEntityGoesOnAfterASkippedHead: the head's type is gone from the
// catalogue when its time comes; those behind it still leave.
func TestEntityGoesOnAfterASkippedHead(t *testing.T) {
	t.Parallel()
	b := setup(t)
	head := b.job(t, jobOpts{id: "1", jobType: "sync_contact", scope: "sync", entity: "e"})
	behind := b.job(t, jobOpts{id: "2", entity: "e"})
	one, err := b.order(head)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.order(behind); err != nil {
		t.Fatal(err)
	}
	cat, err := jobtype.Load(fstest.MapFS{"types.yaml": {Data: []byte(`
environments: [production]
types:
  send_welcome_email:
    side_effects: [{kind: email, text: sends one e-mail}]
    idempotency: {by: key, scope: welcome}
    targets: {production: {http: {url: "http://127.0.0.1:1/x"}}}
`)}}, "types.yaml")
	if err != nil {
		t.Fatal(err)
	}
	b.svc.Types = func() *jobtype.Catalogue { return cat }
	if n := b.release(t) + b.release(t); n != 1 {
		t.Fatalf("%d left, want the one behind", n)
	}
	if _, out, code := b.outcome(t, one.ReplayID); out != replay.Skipped || code != replay.TypeUnknown {
		t.Fatal(out, code)
	}
}
