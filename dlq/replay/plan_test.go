package replay_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"testing"

	"github.com/redrive-dlq/redrive/dlq/filter"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/dlq/replay"
)

// planned freezes everything of a type and returns the batch.
func (b *bundle) planned(t *testing.T, sel replay.Selection) int64 {
	t.Helper()
	ids, err := b.svc.Plan(t.Context(), b.oncall, sel, "the test says so")
	if err != nil {
		t.Fatal(err)
	}
	if len(ids) != 1 {
		t.Fatalf("%d batches, want 1", len(ids))
	}
	b.freeze(t, ids[0])
	return ids[0]
}

func (b *bundle) freeze(t *testing.T, id int64) {
	t.Helper()
	for done := false; !done; {
		var err error
		if done, err = b.svc.Do(t.Context(), replay.WorkPlan, id); err != nil {
			t.Fatal(err)
		}
	}
}

func (b *bundle) verdict(t *testing.T, batch, job int64) (v string) {
	t.Helper()
	err := b.pool.QueryRow(t.Context(), `SELECT verdict FROM redrive.replays WHERE batch_id = $1 AND dead_job_id = $2`, batch, job).Scan(&v)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func types(names ...string) replay.Selection {
	return replay.Selection{Filter: filter.Filter{Types: names}}
}

func TestPlanFreezesWithAVerdictEach(t *testing.T) {
	t.Parallel()
	b := setup(t)
	want := map[int64]string{
		b.job(t, jobOpts{id: "good", key: "k1"}):                         replay.Eligible,
		b.job(t, jobOpts{id: "double", key: "k1"}):                       replay.Duplicate,
		b.job(t, jobOpts{id: "invalid", category: "invalid_input"}):      replay.InvalidInput,
		b.job(t, jobOpts{id: "auth", category: "auth"}):                  replay.AuthNotFixed,
		b.job(t, jobOpts{id: "unknown", key: "k2", effect: "unknown"}):   replay.EffectUnknown,
		b.job(t, jobOpts{id: "its twin", key: "k2"}):                     replay.EffectUnknown,
		b.job(t, jobOpts{id: "printout", kind: "printout"}):              replay.PayloadMissing,
		b.job(t, jobOpts{id: "first of its entity", entity: "order:1"}):  replay.Eligible,
		b.job(t, jobOpts{id: "second of its entity", entity: "order:1"}): replay.Eligible,
	}
	staging := b.job(t, jobOpts{id: "elsewhere", env: "staging"})
	sel := types("send_welcome_email")
	sel.Filter.Environments = []string{"production"}
	id := b.planned(t, sel)
	for job, verdict := range want {
		if got := b.verdict(t, id, job); got != verdict {
			t.Errorf("job %d: %s, want %s", job, got, verdict)
		}
	}
	if n := b.count(t, `SELECT count(*) FROM redrive.replays WHERE dead_job_id = $1`, staging); n != 0 {
		t.Error("a job of another environment was planned")
	}
	if n := b.count(t, `SELECT count(*) FROM redrive.batches WHERE id = $1 AND state = 'planned' AND planned = 9 AND eligible = 3 AND verdicts ->> 'duplicate' = '1'`, id); n != 1 {
		t.Error("the batch doesn't say what its plan holds")
	}
	if n := b.count(t, `SELECT count(*) FROM redrive.replays WHERE batch_id = $1 AND behind`, id); n != 1 {
		t.Errorf("%d wait behind another of their entity, want 1", n)
	}
	if got, want := b.hash(t, id), b.recomputed(t, id); got != want {
		t.Errorf("the plan's hash is %s, its members make %s", got, want)
	}
	if n := b.count(t, `SELECT count(*) FROM redrive.dead_jobs WHERE status <> 'open'`); n != 0 {
		t.Error("planning changed jobs")
	}
	if len(b.target.left) != 0 {
		t.Error("planning called the target")
	}
	if n := b.count(t, `SELECT count(*) FROM redrive.audit_entries WHERE batch_id = $1 AND action = 'batch.plan'`, id); n != 1 {
		t.Errorf("%d entries of the plan", n)
	}
}

func (b *bundle) hash(t *testing.T, id int64) (hash string) {
	t.Helper()
	if err := b.pool.QueryRow(t.Context(), `SELECT plan_hash FROM redrive.batches WHERE id = $1`, id).Scan(&hash); err != nil {
		t.Fatal(err)
	}
	return hash
}

func (b *bundle) recomputed(t *testing.T, id int64) string {
	t.Helper()
	var lines string
	err := b.pool.QueryRow(t.Context(), `
		SELECT coalesce(string_agg(format(E'%s %s %s %s\n', dead_job_id, generation, payload_version, verdict), '' ORDER BY dead_job_id), '')
		FROM redrive.replays WHERE batch_id = $1`, id).Scan(&lines)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte("redrive plan v1\n" + lines))
	return hex.EncodeToString(sum[:])
}

// TestPlanLeavesOutWhatComesLater stops a plan in its middle, lets jobs die, and
// lets two workers finish it.
func TestPlanLeavesOutWhatComesLater(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var first []int64
	for i := range 3 {
		first = append(first, b.job(t, jobOpts{id: fmt.Sprint("first", i)}))
	}
	ids, err := b.svc.Plan(t.Context(), b.oncall, replay.Selection{Filter: filter.Filter{Types: []string{"send_welcome_email"}}}, "the test says so")
	if err != nil {
		t.Fatal(err)
	}
	late := b.job(t, jobOpts{id: "late"})
	// A part that fails leaves nothing behind.
	b.exec(t, `ALTER TABLE redrive.replays ADD CONSTRAINT broken CHECK (state <> 'planned') NOT VALID`)
	if _, err := b.svc.Do(t.Context(), replay.WorkPlan, ids[0]); err == nil {
		t.Fatal("a broken store planned")
	}
	b.exec(t, `ALTER TABLE redrive.replays DROP CONSTRAINT broken`)
	if n := b.count(t, `SELECT planned FROM redrive.batches WHERE id = $1`, ids[0]); n != 0 {
		t.Errorf("%d planned by a part that failed", n)
	}
	other := *b.svc
	done := make(chan error, 1)
	go func() {
		for {
			ready, err := other.Do(t.Context(), replay.WorkPlan, ids[0])
			if err != nil || ready {
				done <- err
				return
			}
		}
	}()
	b.freeze(t, ids[0])
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if n := b.count(t, `SELECT count(*) FROM redrive.replays WHERE batch_id = $1`, ids[0]); n != len(first) {
		t.Errorf("%d planned, want %d", n, len(first))
	}
	if n := b.count(t, `SELECT count(*) FROM redrive.replays WHERE dead_job_id = $1`, late); n != 0 {
		t.Error("a job that died after the cut-off was taken along")
	}
}

func TestPlanRefuses(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.job(t, jobOpts{id: "1"})
	for what, sel := range map[string]replay.Selection{
		"nothing":           {},
		"no match":          types("charge_card"),
		"an unknown type":   types("no_such_type"),
		"rows and a filter": {Filter: filter.Filter{Types: []string{"send_welcome_email"}}, IDs: []int64{1}},
		"a row of nobody":   {IDs: []int64{1, 999_999}},
		"too many rows":     {IDs: make([]int64, replay.MaxSelected+1)},
	} {
		if _, err := b.svc.Plan(t.Context(), b.oncall, sel, "the test says so"); !problem.Is(err, problem.Invalid) {
			t.Errorf("%s: %v, want it refused as invalid", what, err)
		}
	}
	if _, err := b.svc.Plan(t.Context(), b.oncall, types("send_welcome_email"), ""); !problem.Is(err, problem.Invalid) {
		t.Errorf("without a reason: %v", err)
	}
	if n := b.count(t, `SELECT (SELECT count(*) FROM redrive.batches) + (SELECT count(*) FROM redrive.audit_entries)`); n != 0 {
		t.Errorf("%d rows were written by refused plans", n)
	}
}

// TestDeclaredFixLifts declares a fix for a batch and for a group.
func TestDeclaredFixLifts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	invalid := b.job(t, jobOpts{id: "invalid", category: "invalid_input"})
	id := b.planned(t, types("send_welcome_email"))
	before := b.hash(t, id)
	fix := replay.FixOrder{Batch: id, Kind: "ticket", Ref: "OPS-7", Reason: "the test says so"}
	if err := b.svc.DeclareFix(t.Context(), b.oncall, fix); err != nil {
		t.Fatal(err)
	}
	b.freeze(t, id)
	if got := b.verdict(t, id, invalid); got != replay.Eligible {
		t.Errorf("%s after the fix, want eligible", got)
	}
	if after := b.hash(t, id); after == before || after != b.recomputed(t, id) {
		t.Error("the plan's hash doesn't follow its verdicts")
	}
	if v, err := b.svc.Judge(t.Context(), b.oncall, invalid); err != nil || !v.OK() {
		t.Errorf("by itself: %v, %v, want eligible", v.Code, err)
	}
	// It died again since: another failure.
	b.exec(t, `UPDATE redrive.dead_jobs SET generation = 2, died_at = now() + interval '1 minute' WHERE id = $1`, invalid)
	if v, err := b.svc.Judge(t.Context(), b.oncall, invalid); err != nil || v.Code != replay.InvalidInput {
		t.Errorf("after another death: %v, %v, want invalid_input", v.Code, err)
	}
	if n := b.count(t, `SELECT count(*) FROM redrive.audit_entries WHERE batch_id = $1 AND action = 'fix.declare'`, id); n != 1 {
		t.Errorf("%d entries of the fix", n)
	}
	wrong := fix
	wrong.Kind = "wish"
	if err := b.svc.DeclareFix(t.Context(), b.oncall, wrong); !problem.Is(err, problem.Invalid) {
		t.Errorf("a wish was taken for a fix: %v", err)
	}
}
