package demo

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/redrive-dlq/redrive/cmd/internal/demo/providers"
	"github.com/redrive-dlq/redrive/dlq/retry"
)

// The article's example, by which people and tests find their way.
const (
	ArticleEmail  = "alex@@example.com"
	ArticleSendID = "send_8f3c1a77e2"
)

// pastJob is one job of the seeded history.
type pastJob struct {
	environment string
	args        task
	facts       jobFacts
	failure     *failure
	trace       string
	died        time.Time
	attempts    int
	spread      time.Duration // between the first and the last attempt
	cancelled   bool          // not retryable: River cancels instead of discarding
	lasting     *providers.Fault
	happened    bool // the effect is at the provider all the same
	ledger      string
	mistyped    bool // its payload breaks the schema, and that isn't why it died
}

// past makes the i-th job of the history; the same i and anchor always give
// the same job, so that a later start may add more of them.
func past(i int, anchor time.Time) pastJob {
	if i < len(specials) {
		return specials[i](rand.New(rand.NewPCG(2026, uint64(i))), anchor)
	}
	r := rand.New(rand.NewPCG(2026, uint64(i))) // invented data, not secrets
	environment := environments[0]
	switch n := r.IntN(100); {
	case n >= 93:
		environment = environments[2]
	case n >= 80:
		environment = environments[1]
	}
	var in *incident
	var s scenario
	if n := r.IntN(100); environment == environments[0] {
		for j := range incidents {
			if n -= incidents[j].percent; n < 0 {
				in = &incidents[j]
				break
			}
		}
	}
	if in != nil {
		s = in.scenario(r)
	} else {
		s = draw(r, func(scenario) bool { return true })
	}
	args := makeTask(r, s.kind, fmt.Sprintf("%05d%s", i, hexID(r)[:4]))
	if s.spoil != nil {
		args = s.spoil(r, args)
	}
	j := pastJob{environment: environment, args: args, died: moment(r, anchor, in)}
	j.facts = jobFacts{Tenant: pick(r, tenants), Event: fmt.Sprintf("evt_%06d", i/2), PayloadVersion: 1}
	j.fill(r, s)
	return j
}

// fill completes a job from how it failed, as the workers would have.
func (j *pastJob) fill(r *rand.Rand, s scenario) {
	e := j.args.effect()
	j.facts.Key, j.facts.Entity = e.Key, e.Entity
	j.failure = s.failure(j.args)
	j.attempts, j.spread = 3, time.Duration(40+r.IntN(200))*time.Second
	if !j.failure.Retryable && !s.panics {
		j.attempts, j.spread, j.cancelled = 1, 0, true
	}
	j.ledger = "failed"
	if j.failure.Uncertain {
		j.ledger = "begun"
	}
	if s.panics {
		j.ledger, j.trace = "", panicTrace
	}
	j.happened = s.fault.Mode == providers.HangAfter
	if s.lasting {
		f := s.fault
		f.Environment, f.Provider, f.Key, f.Remaining = j.environment, e.Provider, e.Key, 1_000_000
		j.lasting = &f
	}
}

// attemptTimes are the starts of the attempts, oldest first.
func (j *pastJob) attemptTimes() []time.Time {
	times := make([]time.Time, j.attempts)
	for n := range times {
		back := time.Duration(0)
		if j.attempts > 1 {
			// Waits grow: the middle attempt is nearer to the first.
			left := float64(j.attempts-1-n) / float64(j.attempts-1)
			back = time.Duration(float64(j.spread) * left * (0.3 + 0.7*left))
		}
		times[n] = j.died.Add(-back)
	}
	return times
}

// errors are River's error entries, as JSON.
func (j *pastJob) errors() []string {
	times := j.attemptTimes()
	out := make([]string, len(times))
	for n, at := range times {
		text := j.failure.Error()
		if j.trace != "" {
			text = j.failure.Message // River writes a panic's value alone
		}
		if j.cancelled && n == len(times)-1 {
			text = "JobCancelError: " + text
		}
		b, _ := json.Marshal(map[string]any{ // strings, a number and a time always encode
			"at": at.UTC(), "attempt": n + 1, "error": text, "trace": j.trace,
		})
		out[n] = string(b)
	}
	return out
}

// metadata is what insert and the workers' notes would have left.
func (j *pastJob) metadata() []byte {
	m := map[string]any{metaJob: j.facts}
	if j.trace == "" { // a worker that panicked noted nothing
		attempts := make([]attemptFacts, j.attempts)
		for n := range attempts {
			attempts[n] = attemptFacts{
				Attempt: n + 1, ErrorClass: j.failure.Class, DurationMS: j.duration(n).Milliseconds(),
				WorkerVersion: WorkerVersion, SideEffect: sideEffect(j.failure),
			}
		}
		gaveUp := retry.Attempts
		if j.cancelled {
			gaveUp = retry.NotRetryable
		}
		m[metaAttempts] = attempts
		m[metaDeath] = deathFacts{
			Attempt: j.attempts, GaveUp: string(gaveUp), Category: j.failure.Category,
			Reason: reason{j.failure.Code, j.failure.Message}, Effect: sideEffect(j.failure), WorkerVersion: WorkerVersion,
		}
	}
	b, _ := json.Marshal(m) // strings and numbers always encode
	return b
}

func (j *pastJob) duration(n int) time.Duration {
	if j.failure.Class == "TimeoutError" {
		return 10 * time.Second
	}
	return time.Duration(60+37*n+len(j.facts.Key)) * time.Millisecond
}

const panicTrace = `goroutine 812 [running]:
runtime/debug.Stack()
	/usr/local/go/src/runtime/debug/stack.go:26 +0x5e
github.com/riverqueue/river/internal/jobexecutor.(*JobExecutor).execute.func1()
	/app/vendor/github.com/riverqueue/river/internal/jobexecutor/job_executor.go:219 +0x9b
panic({0x1a2f3c0?, 0xc000418d80?})
	/usr/local/go/src/runtime/panic.go:783 +0x132
example.com/shop/catalog.(*priceRow).column(...)
	/app/catalog/prices.go:88
example.com/shop/catalog.(*Importer).apply(0xc0001be3c0, {0x1f5c2e8, 0xc0004d2a10}, {0xc0005a8000, 0x30})
	/app/catalog/importer.go:141 +0x2c5
example.com/shop/workers.(*ImportCatalog).Work(0xc000310540, {0x1f5c2e8, 0xc0004d2a10}, 0xc0003d6000)
	/app/workers/import_catalog.go:37 +0x1f4
`
