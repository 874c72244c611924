package river_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/riverqueue/river"

	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/dlq/ledger"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/dlq/replay"
	"github.com/redrive-dlq/redrive/rbac"
)

// proving makes production the second environment, where one may prove, and
// runs the loop and real workers. guarded workers ask the ledger first; heard is
// how often the effect happened.
func proving(t *testing.T, guarded bool) (b *bundle, heard *atomic.Int32) {
	t.Helper()
	b, heard = setup(t, true), &atomic.Int32{}
	careful, err := jobtype.Load(fstest.MapFS{"types.yaml": {Data: []byte(strings.Replace(catalogue, "[production, staging]", "[live, production]", 1))}}, "types.yaml")
	if err != nil {
		t.Fatal(err)
	}
	b.svc.Types = func() *jobtype.Catalogue { return careful }
	b.workers(t, func(ctx context.Context, j *river.Job[mailArgs]) error {
		k := ledger.Key{Environment: "production", Scope: "mail", Key: j.Args.To}
		answer, err := ledger.Begin(ctx, b.pool, k)
		if err != nil {
			return err
		}
		if answer == ledger.Done && guarded {
			return river.RecordOutput(ctx, "already_done")
		}
		heard.Add(1)
		return ledger.Finish(ctx, b.pool, k, json.RawMessage(`{"id":"m_77"}`))
	})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() { ended <- b.svc.RunRelease(ctx) }()
	go func() { ended <- b.watcher.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return b, heard
}

// keyed is a dead job whose key its worker finds in the arguments.
func (b *bundle) keyed(t *testing.T, key string) int64 {
	t.Helper()
	_, job := b.dead(t, rowOpts{args: fmt.Sprintf(`{"to": %q}`, key)})
	b.exec(t, b.pool, `UPDATE redrive.dead_jobs SET idempotency_key = $2 WHERE id = $1`, job, key)
	return job
}

func (b *bundle) prove(t *testing.T, p *rbac.Principal, environment string, job int64) (replay.Proof, string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var said []string
	proof, err := b.svc.Prove(ctx, p, "mail", environment, job, func(s string) { said = append(said, s) })
	return proof, strings.Join(said, "\n"), err
}

func (b *bundle) count(t *testing.T, sql string, args ...any) (n int) {
	t.Helper()
	if err := b.pool.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestProve(t *testing.T) {
	t.Parallel()
	b, heard := proving(t, true)
	job := b.keyed(t, "k1")
	proof, said, err := b.prove(t, rbac.CommandLine("types-prove"), "production", job)
	if err != nil {
		t.Fatal(err, said)
	}
	if proof.First.Outcome != replay.Succeeded || proof.Second.Outcome != replay.AlreadyDone || proof.EffectID != "m_77" || heard.Load() != 1 {
		t.Errorf("%+v, the effect happened %d times\n%s", proof, heard.Load(), said)
	}
	n := b.count(t, `
		SELECT count(*)
		FROM redrive.type_proofs
		WHERE job_type = 'mail' AND environment = 'production' AND dead_job_id = $1 AND replays = $2`,
		job, []int64{proof.First.ReplayID, proof.Second.ReplayID})
	if n != 1 {
		t.Error("the proof isn't recorded")
	}
	for action, want := range map[string]int{"replay.order": 2, "type.prove": 1, "type.proven": 1} {
		if n := b.count(t, `SELECT count(*) FROM redrive.audit_entries WHERE body::json ->> 'action' = $1`, action); n != want {
			t.Errorf("%d entries %s, want %d", n, action, want)
		}
	}
	if n := b.count(t, `SELECT count(*) FROM redrive.dead_jobs WHERE id = $1 AND status = 'recovered' AND effect = 'done'`, job); n != 1 {
		t.Error("the job isn't recovered")
	}
	if n := b.count(t, `SELECT count(*) FROM redrive.replays WHERE proof`); n != 1 {
		t.Errorf("%d replays were forced, want the second alone", n)
	}
}

// TestProveFindsAWorkerThatRepeats: a worker that doesn't heed the ledger's
// answer does it twice; an older proof doesn't outlive that.
func TestProveFindsAWorkerThatRepeats(t *testing.T) {
	t.Parallel()
	b, heard := proving(t, false)
	job := b.keyed(t, "k1")
	b.exec(t, b.pool, `INSERT INTO redrive.type_proofs (job_type, environment, proven_by, dead_job_id, replays) VALUES ('mail', 'production', 'x', 1, '{}')`)
	_, said, err := b.prove(t, rbac.CommandLine("types-prove"), "production", job)
	if !problem.Is(err, problem.Conflict) || !strings.Contains(err.Error(), "Not proven") || heard.Load() != 2 {
		t.Errorf("error %v, %d effects\n%s", err, heard.Load(), said)
	}
	if n := b.count(t, `SELECT count(*) FROM redrive.type_proofs`); n != 0 {
		t.Error("it counts as proven")
	}
	if n := b.count(t, `SELECT count(*) FROM redrive.audit_entries WHERE body::json ->> 'action' = 'type.not_proven'`); n != 1 {
		t.Error("nothing in the audit log")
	}
}

func TestProveRefusals(t *testing.T) {
	t.Parallel()
	b, heard := proving(t, true)
	job := b.keyed(t, "k1")
	bare := b.keyed(t, "")
	admin := rbac.CommandLine("types-prove")
	for name, tt := range map[string]struct {
		p           *rbac.Principal
		environment string
		job         int64
		code        problem.Code
	}{
		"in the most careful environment": {admin, "live", job, problem.Invalid},
		"in an unknown environment":       {admin, "staging", job, problem.Invalid},
		"without the right":               {b.oncall, "production", job, problem.Forbidden},
		"no such job":                     {admin, "production", job + 1000, problem.NotFound},
		"a job without a key":             {admin, "production", bare, problem.Conflict},
	} {
		if _, _, err := b.prove(t, tt.p, tt.environment, tt.job); !problem.Is(err, tt.code) {
			t.Errorf("%s: %v, want %s", name, err, tt.code)
		}
	}
	if n := b.count(t, `SELECT count(*) FROM redrive.replays`); n != 0 || heard.Load() != 0 {
		t.Errorf("%d replays, %d effects", n, heard.Load())
	}
}
