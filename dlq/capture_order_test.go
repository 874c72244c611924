package dlq

import (
	"fmt"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// Whatever order a job's deaths are told in, and however often: the latest one
// ends up in front, each is recorded once, and no told-again or older one
// changes the status.
func TestDeathOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	n := 0
	rapid.Check(t, func(r *rapid.T) {
		n++
		id := fmt.Sprint("job-", n)
		deaths := rapid.IntRange(1, 5).Draw(r, "deaths")
		// Each death is later than the one before, its attempt higher or, as
		// for a row inserted anew, counted from one again.
		docs := make([]*Document, deaths)
		attempt := 0
		for i := range docs {
			if attempt++; i > 0 && rapid.IntRange(0, 4).Draw(r, "anew") == 0 {
				attempt = 1
			}
			docs[i] = job(id, attempt, 10+i)
			docs[i].Attempts[0].Message = fmt.Sprintf("death %d", i)
		}
		inOrder := rapid.Bool().Draw(r, "in order")
		order := rapid.SliceOfN(rapid.IntRange(0, deaths-1), 0, 8).Draw(r, "told")
		for i := range deaths {
			order = append(order, i)
		}
		if inOrder {
			order = order[len(order)-deaths:]
		}
		told := map[int]bool{}
		latest, generation := -1, 0
		for _, i := range order {
			// What the rule says, restated on the deaths themselves.
			want := CaptureUnchanged
			switch {
			case len(told) == 0:
				want, latest, generation = CaptureCreated, i, 1
			case !told[i] && (i > latest || docs[i].AttemptCount > docs[latest].AttemptCount):
				want, latest, generation = CaptureUpdated, i, generation+1
			}
			told[i] = true
			b.exec(t, `UPDATE redrive.dead_jobs SET status = 'recovered' WHERE job_id = $1`, id)
			got := b.one(t, docs[i])
			if got.Outcome != want || got.Generation != generation {
				r.Fatalf("death %d after %v: %+v, want %s/%d", i, told, got, want, generation)
			}
			status := "open"
			if want == CaptureUnchanged {
				status = "recovered"
			}
			row := get[string](t, b, `SELECT status || '|' || error_message FROM redrive.dead_jobs WHERE job_id = $1`, id)
			if row != fmt.Sprintf("%s|death %d", status, latest) {
				r.Fatalf("row is %s, want %s|death %d", row, status, latest)
			}
		}
		if inOrder && latest != deaths-1 {
			r.Fatalf("the latest is %d of %d", latest, deaths)
		}
		count := get[int](t, b, `SELECT count(*) FROM redrive.deaths k JOIN redrive.dead_jobs d ON d.id = k.dead_job_id WHERE d.job_id = $1`, id)
		if count != deaths {
			r.Fatalf("%d deaths recorded, told of %d", count, deaths)
		}
	})
}

// A death's key depends on the document alone: it is the same on every day on
// which it is told again.
func TestDeathKeyIgnoresTheClock(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		at := rapid.SampledFrom([]string{`null`, `"2168-11-30T15:51:16Z"`, `1772841700`, `1772841700.25`, `"tomorrow"`, `"0001-01-01T00:00:00Z"`, `{}`, `""`})
		doc := &Document{JobType: "t", DeadAt: []byte(at.Draw(r, "dead_at"))}
		for range rapid.IntRange(0, 3).Draw(r, "attempts") {
			doc.Attempts = append(doc.Attempts, AttemptDoc{At: []byte(at.Draw(r, "at"))})
		}
		other := *doc
		other.AttemptCount = doc.attemptNumber() + 1
		if a, b := deathKey(doc), deathKey(doc); a != b {
			r.Fatalf("%q and %q", a, b)
		}
		if deathKey(doc) == deathKey(&other) {
			r.Fatalf("attempts %d and %d share the key %q", doc.attemptNumber(), other.AttemptCount, deathKey(doc))
		}
	})
}

// A job may be purged while its next death is captured: then it is a new job,
// and the caller's transaction isn't harmed.
func TestCaptureWhilePurged(t *testing.T) {
	t.Parallel()
	b := setup(t)
	done := make(chan struct{})
	var purge sync.WaitGroup
	purge.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				b.exec(t, `DELETE FROM redrive.dead_jobs WHERE job_id = 'p'`)
			}
		}
	})
	for n := range 150 {
		if out := b.one(t, job("p", 1+n, n)); out.ID == 0 {
			t.Errorf("death %d: %+v", n, out)
		}
	}
	close(done)
	purge.Wait()
}
