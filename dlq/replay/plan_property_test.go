package replay_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/redrive-dlq/redrive/dlq/replay"
)

// madeJob is a job as the property test makes it up; the naive verdict is made
// from nothing else.
type madeJob struct {
	id                                       int64
	jobType, key, entity                     string
	status, effect, category, kind, fix, sig string
	stored                                   bool
	at                                       int // of its order, in hours
}

// madeWorld is everything that verdicts depend on.
type madeWorld struct {
	name   string
	jobs   []*madeJob
	ledger map[string]string // state of a key
	out    string            // a key whose replay is on its way
	fixed  string            // a fingerprint that a fix was declared for
}

func drawWorld(t *rapid.T, name string) *madeWorld {
	pick := func(label string, of ...string) string { return rapid.SampledFrom(of).Draw(t, label) }
	w := &madeWorld{name: name, ledger: map[string]string{}}
	for range rapid.IntRange(1, 14).Draw(t, "jobs") {
		w.jobs = append(w.jobs, &madeJob{
			jobType:  pick("type", "send_welcome_email", "send_welcome_email", "sync_contact", "nobodys"),
			key:      pick("key", "", "k0", "k1", "k2", "k3"),
			entity:   pick("entity", "", "e0", "e1"),
			status:   pick("status", "open", "open", "open", "open", "snoozed", "resolved", "recovered", "discarded"),
			effect:   pick("effect", "none", "none", "none", "none", "none", "unknown", "done"),
			category: pick("category", "transient", "transient", "invalid_input", "auth"),
			kind:     pick("kind", "json", "json", "json", "json", "printout"),
			fix:      pick("fix", "", "", "ticket"),
			sig:      pick("fingerprint", "f0", "f1"),
			stored:   rapid.IntRange(0, 5).Draw(t, "stored") > 0,
			at:       rapid.IntRange(0, 5).Draw(t, "at"),
		})
	}
	for _, key := range []string{"k0", "k1", "k2"} {
		if state := pick("ledger", "", "", "", "begun", "failed", "done"); state != "" {
			w.ledger[key] = state
		}
	}
	w.out = pick("out", "", "", "k1", "k3")
	w.fixed = pick("fixed", "", "f0")
	return w
}

// own makes a word of this world's own, so that worlds share a database.
func (w *madeWorld) own(word string) string {
	if word == "" {
		return ""
	}
	return w.name + word
}

func (w *madeWorld) write(t *testing.T, b *bundle) {
	t.Helper()
	for key, state := range w.ledger {
		b.exec(t, `INSERT INTO redrive.ledger (environment, scope, key, state) VALUES ('production', 'shared', $1, $2)`, w.own(key), state)
	}
	start := time.Now().Add(-time.Hour * 24)
	batch := &pgx.Batch{}
	for i, j := range w.jobs {
		batch.Queue(`
			INSERT INTO redrive.dead_jobs
				(environment, source, job_id, job_type, key_scope, idempotency_key, entity, status, effect, category, payload_kind, fix_kind,
				 fingerprint, died_at, enqueued_at, attempt_count)
			VALUES ('production', $1, $2, $3, 'shared', $4, $5, $6, $7, $8, $9, $10, $11, now(), $12, 3)
			RETURNING id`, w.name, fmt.Sprint(i), j.jobType, w.own(j.key), w.own(j.entity), j.status, j.effect, j.category, j.kind, j.fix,
			w.own(j.sig), start.Add(time.Duration(j.at)*time.Hour)).QueryRow(func(r pgx.Row) error { return r.Scan(&j.id) })
	}
	if err := b.pool.SendBatch(t.Context(), batch).Close(); err != nil {
		t.Fatal(err)
	}
	var stored []int64
	for _, j := range w.jobs {
		if j.stored {
			stored = append(stored, j.id)
		}
	}
	b.exec(t, `
		INSERT INTO redrive.payloads (dead_job_id, version, bytes, encoding, size, sha256, redacted, redact_version, origin)
		SELECT id, 1, '\x00'::bytea || '{"a": 1}'::bytea, 'json', 8, '', '{}', 1, 'capture'
		FROM unnest($1::bigint[]) id`, stored)
	if w.fixed != "" {
		b.exec(t, `
			INSERT INTO redrive.fixes (environment, job_type, fingerprint, kind, ref, reason, declared_by, declared_at)
			SELECT 'production', job_type, $1, 'ticket', 'T-1', 'the test says so', 'test', now() + interval '1 minute'
			FROM unnest(ARRAY['send_welcome_email', 'sync_contact']) job_type`, w.own(w.fixed))
	}
	if w.out == "" {
		return
	}
	b.exec(t, `
		WITH j AS (
			INSERT INTO redrive.dead_jobs (environment, source, job_id, job_type, key_scope, idempotency_key, status, fingerprint, died_at)
			VALUES ('production', $1, 'out', 'send_welcome_email', 'shared', $2, 'replaying', 'f', now())
			RETURNING id),
		o AS (
			INSERT INTO redrive.batches (environment, job_type, kind, state, created_by, cutoff)
			VALUES ('production', 'send_welcome_email', 'batch', 'paused', 'test', now())
			RETURNING id)
		INSERT INTO redrive.replays
			(batch_id, dead_job_id, generation, payload_version, environment, source, job_id, job_type, key_scope, idempotency_key, state)
		SELECT o.id, j.id, 1, 1, 'production', $1, 'out', 'send_welcome_email', 'shared', $2, 'pending'
		FROM j, o`, w.name+"out", w.own(w.out))
}

// naive is the verdict on one job by itself, in the order that people are told.
func (w *madeWorld) naive(j *madeJob) string {
	dedup := j.jobType == "sync_contact"
	if w.ledger[j.key] == "done" || j.effect == "done" {
		return replay.KeyDone
	}
	if !dedup && (w.ledger[j.key] == "begun" || j.effect == "unknown") {
		return replay.EffectUnknown
	}
	var done, unknown, newer bool
	for _, o := range w.jobs {
		if o != j && o.key != "" && o.key == j.key {
			done = done || o.effect == "done" || o.status == "recovered"
			unknown = unknown || o.effect == "unknown"
		}
		newer = newer || o != j && o.entity != "" && o.entity == j.entity && o.jobType == j.jobType && o.status == "recovered" && o.at > j.at
	}
	fixed := j.fix != "" || w.fixed == j.sig
	switch {
	case done:
		return replay.KeyDone
	case unknown && !dedup:
		return replay.EffectUnknown
	case w.out != "" && w.out == j.key:
		return replay.KeyInFlight
	case j.status != "open":
		return replay.NotOpen
	case j.jobType == "nobodys":
		return replay.TypeUnknown
	case j.kind == "printout" || !j.stored:
		return replay.PayloadMissing
	case j.category == "invalid_input" && !fixed:
		return replay.InvalidInput
	case j.category == "auth" && !fixed:
		return replay.AuthNotFixed
	case newer:
		return replay.Superseded
	}
	return replay.Eligible
}

// together are the verdicts of a batch, and who waits behind another.
func (w *madeWorld) together(jobType string) (verdicts map[int64]string, behind map[int64]bool) {
	verdicts, behind = map[int64]string{}, map[int64]bool{}
	var jobs []*madeJob
	for _, j := range w.jobs {
		if j.jobType == jobType {
			jobs = append(jobs, j)
		}
	}
	slices.SortFunc(jobs, func(a, b *madeJob) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.id, b.id)) })
	keys, entities := map[string]bool{}, map[string]bool{}
	for _, j := range jobs {
		v := w.naive(j)
		if v == replay.Eligible && j.key != "" && keys[j.key] {
			v = replay.Duplicate
		}
		if verdicts[j.id] = v; v == replay.Eligible {
			behind[j.id] = j.entity != "" && entities[j.entity]
			keys[j.key], entities[j.entity] = true, true
		}
	}
	return verdicts, behind
}

// TestPlansJudgeAsOneByOne plans made-up worlds and compares each member with
// the naive verdict, planned at once, judged again and judged singly.
func TestPlansJudgeAsOneByOne(t *testing.T) {
	t.Parallel()
	b := setup(t)
	n := 0
	rapid.Check(t, func(r *rapid.T) {
		n++
		w := drawWorld(r, fmt.Sprintf("w%d.", n))
		w.write(t, b)
		ids, err := b.svc.Plan(t.Context(), b.oncall, from(w.name), "the test says so")
		if err != nil {
			r.Fatal(err)
		}
		for _, id := range ids {
			b.freeze(t, id)
			w.compare(t, r, b, id)
			if err := b.svc.Rejudge(t.Context(), b.oncall, id); err != nil {
				r.Fatal(err)
			}
			b.freeze(t, id)
			w.compare(t, r, b, id)
		}
		for _, j := range w.jobs {
			if v, err := b.svc.Judge(t.Context(), b.oncall, j.id); err != nil || v.Code != w.naive(j) {
				r.Fatalf("%+v by itself: %s, %v, want %s", *j, v.Code, err, w.naive(j))
			}
		}
	})
}

func (w *madeWorld) compare(t *testing.T, r *rapid.T, b *bundle, id int64) {
	t.Helper()
	var jobType string
	var eligible, counted int
	err := b.pool.QueryRow(t.Context(), `
		SELECT job_type, eligible, coalesce((SELECT sum(value::int) FROM jsonb_each_text(verdicts)), 0)
		FROM redrive.batches
		WHERE id = $1`, id).Scan(&jobType, &eligible, &counted)
	if err != nil {
		r.Fatal(err)
	}
	rows, err := b.pool.Query(t.Context(), `SELECT dead_job_id, verdict, behind FROM redrive.replays WHERE batch_id = $1`, id)
	if err != nil {
		r.Fatal(err)
	}
	verdicts, behind := w.together(jobType)
	var job int64
	var verdict string
	var waits bool
	tag, err := pgx.ForEachRow(rows, []any{&job, &verdict, &waits}, func() error {
		if verdict == replay.Eligible {
			eligible--
		}
		if verdict != verdicts[job] || waits != behind[job] {
			return fmt.Errorf("job %d of %s: %s (behind: %t), want %s (%t)", job, jobType, verdict, waits, verdicts[job], behind[job])
		}
		return nil
	})
	switch {
	case err != nil:
		r.Fatal(err)
	case int(tag.RowsAffected()) != len(verdicts) || counted != len(verdicts) || eligible != 0:
		r.Fatalf("%d members, %d counted, eligible off by %d, want %d", tag.RowsAffected(), counted, eligible, len(verdicts))
	case b.hash(t, id) != b.recomputed(t, id):
		r.Fatal("the plan's hash isn't its members'")
	}
}
