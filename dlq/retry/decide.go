package retry

import "time"

// GaveUp says why no further attempt is made. The words are those of the
// capture document's gave_up field.
type GaveUp string

// The reasons to stop.
const (
	Attempts     GaveUp = "attempts"      // the last allowed attempt failed
	Window       GaveUp = "window"        // the next attempt would start after the window
	NotRetryable GaveUp = "not_retryable" // repeating the same input can't help
	Poison       GaveUp = "poison"        // the same failure again and again
	Cancelled    GaveUp = "cancelled"     // somebody stopped the job
)

// Failure is what is known about a failed attempt.
type Failure struct {
	// Retryable: the failure may go away by itself. What nobody calls
	// retryable is not retried.
	Retryable bool
	// Cancelled: the job was stopped on purpose; it wins over all else.
	Cancelled bool
	// RetryAfter is the server's header value as it came: seconds or a date.
	RetryAfter string
	// SameInARow counts the attempts, this one included, that ended in the
	// same failure without a word that it is temporary; see PoisonAfter.
	SameInARow int
}

// Decision is what to do after a failed attempt.
type Decision struct {
	// Retry says whether another attempt follows.
	Retry bool
	// After is the wait until it, counted from the now given to Decide.
	After time.Duration
	// GaveUp is set when Retry is false.
	GaveUp GaveUp
}

// Decide judges attempt n (1 is the first) that began its job at firstAt and
// failed just before now. A Retry-After can only lengthen the wait; one that
// leads past the window ends the retries, since coming back earlier than the
// server asked would be refused again.
func (p Policy) Decide(n int, firstAt time.Time, f Failure, now time.Time) Decision {
	switch {
	case f.Cancelled:
		return Decision{GaveUp: Cancelled}
	case !f.Retryable:
		return Decision{GaveUp: NotRetryable}
	case p.PoisonAfter > 0 && f.SameInARow >= p.PoisonAfter:
		return Decision{GaveUp: Poison}
	case n >= p.MaxAttempts:
		return Decision{GaveUp: Attempts}
	}
	wait := p.Wait(n)
	if asked, ok := p.retryAfter(f.RetryAfter, now); ok && asked > wait {
		// Everyone throttled together was told the same moment: spread them
		// behind it, never before it.
		wait = asked + time.Duration(float64(min(p.Initial, asked))*p.Jitter.spread()*p.random())
	}
	if p.Window > 0 && now.Add(wait).After(firstAt.Add(p.Window)) {
		return Decision{GaveUp: Window}
	}
	return Decision{Retry: true, After: wait}
}

// spread is the share of a wait that jitter may add behind a fixed moment.
func (j Jitter) spread() float64 {
	if j.full {
		return 1
	}
	return j.ratio
}
