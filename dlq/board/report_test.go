package board

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// died stores a job that died again after its replay, as a source tells it.
func (b *bundle) died(t testing.TB, replay int64, fingerprint string) {
	t.Helper()
	b.exec(t, `
		WITH j AS (
			INSERT INTO redrive.dead_jobs (environment, source, job_id, job_type, key_scope, category, fingerprint, died_at, generation)
			SELECT environment, source, 'again ' || id, job_type, key_scope, 'transient', $2, $3, generation + 1
			FROM redrive.replays
			WHERE id = $1
			RETURNING id, generation),
		d AS (
			INSERT INTO redrive.deaths (dead_job_id, generation, attempt, death_key, died_at, environment, job_type, category, fingerprint)
			SELECT j.id, j.generation, 2, 'again', $3, 'production', 'mail', 'transient', $2
			FROM j)
		UPDATE redrive.replays
		SET dead_job_id = j.id
		FROM j
		WHERE replays.id = $1`, replay, fingerprint, testNow)
}

func TestFailures(t *testing.T) {
	t.Parallel()
	b := setup(t)
	batch := b.batch(t, "production", "mail", "running")
	failed := item{state: "ended", outcome: "failed", was: "aa", released: time.Minute, ended: time.Minute}
	as := func(fingerprint string) item {
		i := failed
		i.became = fingerprint
		return i
	}
	b.add(t, batch, 3, as("aa"))
	b.add(t, batch, 2, as("bb"))
	b.exec(t, `UPDATE redrive.replays SET next_generation = 2`)
	b.add(t, batch, 4, as("")) // of two of them the source has told, and nobody linked them yet
	untold := get[[]int64](t, b, `SELECT array_agg(id ORDER BY id) FROM redrive.replays WHERE next_generation = 0`)
	b.died(t, untold[0], "aa")
	b.died(t, untold[1], "cc")
	b.exec(t, `
		INSERT INTO redrive.groups (fingerprint, job_type, category, error_class, template, fold_version, first_seen, last_seen, deaths, sample_death)
		VALUES ('aa', 'mail', 'transient', 'Timeout', 'no answer after ‹n› ms', 1, $1, $1, 1, 1)`, testNow)
	list, more, err := Failures(t.Context(), b.pool, batch)
	if err != nil || more {
		t.Fatalf("more: %v, %v", more, err)
	}
	var got []string
	for _, f := range list {
		got = append(got, fmt.Sprintf("%d %s %v %s %s", f.N, f.Fingerprint, f.Same, f.ErrorClass, f.Template))
	}
	want := []string{"4 aa true Timeout no answer after ‹n› ms", "2  false  ", "2 bb false  ", "1 cc false  "}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
	page, err := Items(t.Context(), b.pool, batch, ItemQuery{State: "failed"})
	if err != nil || len(page.Rows) != 9 {
		t.Fatalf("%d failed ones, %v", len(page.Rows), err)
	}
	for _, r := range page.Rows {
		switch r.ID {
		case untold[0]:
			if !r.SameFailure() || r.NextGeneration != 2 {
				t.Errorf("told and not linked: %+v", r)
			}
		case untold[2]:
			if r.SameFailure() || r.NextGeneration != 0 {
				t.Errorf("not told: %+v", r)
			}
		}
	}
}

func TestManyKindsOfFailures(t *testing.T) {
	t.Parallel()
	b := setup(t)
	batch := b.batch(t, "production", "mail", "done")
	b.add(t, batch, maxFailures+5, item{state: "ended", outcome: "failed", released: time.Minute, ended: time.Minute})
	b.exec(t, `UPDATE redrive.replays SET new_fingerprint = 'f' || id, next_generation = 2`)
	list, more, err := Failures(t.Context(), b.pool, batch)
	if err != nil || len(list) != maxFailures || !more {
		t.Errorf("%d kinds, more: %v, %v", len(list), more, err)
	}
}

func TestReasons(t *testing.T) {
	t.Parallel()
	b := setup(t)
	batch := b.batch(t, "production", "mail", "done")
	ended := func(outcome, code string) item {
		return item{state: "ended", outcome: outcome, code: code, ended: time.Minute}
	}
	b.add(t, batch, 2, ended("skipped", "changed"))
	b.add(t, batch, 3, ended("skipped", "predecessor_failed"))
	b.add(t, batch, 1, ended("unconfirmed", "deadline"))
	b.add(t, batch, 1, ended("already_done", "key_done"))
	b.add(t, batch, 4, ended("failed", "http_500")) // failures are told by how they failed
	b.add(t, b.batch(t, "production", "mail", "done"), 1, ended("cancelled", "cancelled"))
	list, more, err := Reasons(t.Context(), b.pool, batch)
	if err != nil || more {
		t.Fatalf("more: %v, %v", more, err)
	}
	want := []Reason{{"already_done", "key_done", "", 1}, {"skipped", "predecessor_failed", "", 3}, {"skipped", "changed", "", 2}, {"unconfirmed", "deadline", "", 1}}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
}

func TestSpeed(t *testing.T) {
	t.Parallel()
	b, running := world(t)
	b.add(t, running, 30, item{state: "released", released: 5 * time.Second})
	b.add(t, running, 30, item{state: "released", released: 30 * time.Second})
	for rate, want := range map[int]float64{120: 3, 59: 1.1} { // 66 in the last minute, six of them the store's own; 30 in the last ten seconds
		speed, err := Speed(t.Context(), b.pool, running, rate, testNow)
		if err != nil || speed != want {
			t.Errorf("at %d a minute: %v a second, %v, want %v", rate, speed, err, want)
		}
	}
}
