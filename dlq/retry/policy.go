// Package retry decides whether a failed attempt is tried again, and when:
// exponential backoff with a cap and jitter, bounded by a number of attempts
// and by a window of time, with Retry-After taken into account. It is pure:
// the caller brings the clock, the facts and, in tests, the randomness.
package retry

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Policy bounds the retries of one job. The zero value retries nothing; start
// from [Default] or [GRPC] and change what differs.
type Policy struct {
	// Initial is the wait before the second attempt, before jitter.
	Initial time.Duration
	// Multiplier is the growth of the wait from one attempt to the next; at
	// least 1, so that waits never shrink.
	Multiplier float64
	// Max caps the wait before jitter. A ±ratio jitter may exceed it by its
	// ratio, as in gRPC: clamping afterwards would gather half of all clients
	// on exactly the cap, which is the herd that jitter exists to break.
	Max time.Duration
	// Jitter spreads the waits of jobs that failed together.
	Jitter Jitter
	// MaxAttempts counts every attempt, the first one included.
	MaxAttempts int
	// Window is the total time from the start of the first attempt within
	// which a next attempt may start; zero means no limit.
	Window time.Duration
	// AttemptTimeout is how long one attempt may run; the worker enforces it.
	AttemptTimeout time.Duration
	// MaxRetryAfter clamps what a server may ask for; zero ignores Retry-After.
	MaxRetryAfter time.Duration
	// PoisonAfter gives up once this many attempts in a row failed with the
	// same signature and the worker calls the failure unchanging; zero is off.
	PoisonAfter int
	// Rand returns a number in [0, 1); nil means math/rand/v2.
	Rand func() float64
}

// Default is the policy of a background job: 4 attempts, waits from 15 s that
// double up to 10 minutes, ±20 %, a hard 10 s for each attempt and 30 minutes
// in all. It sits inside the customary ranges for job workers (3–5 attempts,
// first wait 10–30 s, small jitter, a window of 15–60 minutes).
func Default() Policy {
	return Policy{
		Initial: 15 * time.Second, Multiplier: 2, Max: 10 * time.Minute,
		Jitter: Ratio(0.2), MaxAttempts: 4, Window: 30 * time.Minute,
		AttemptTimeout: 10 * time.Second, MaxRetryAfter: 15 * time.Minute,
		PoisonAfter: 3,
	}
}

// GRPC has the numbers of gRPC's connection backoff protocol: 1 s, ×1.6, at
// most 120 s, ±20 %. That protocol has no end; the six attempts are ours,
// because every retry here ends somewhere.
func GRPC() Policy {
	return Policy{
		Initial: time.Second, Multiplier: 1.6, Max: 120 * time.Second,
		Jitter: Ratio(0.2), MaxAttempts: 6, Window: 15 * time.Minute,
		AttemptTimeout: 20 * time.Second, MaxRetryAfter: 2 * time.Minute,
	}
}

// Validate reports every setting that can't work, in words.
func (p Policy) Validate() error {
	var errs []error
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf("retry policy: "+format, args...))
		}
	}
	bad(p.MaxAttempts < 1, "max attempts is %d; use 1 or more", p.MaxAttempts)
	bad(p.Initial < 0, "initial wait is %s; it can't be negative", p.Initial)
	bad(!(p.Multiplier >= 1) || math.IsInf(p.Multiplier, 0), "multiplier is %v; use 1 or more", p.Multiplier)
	bad(p.Max < p.Initial, "the longest wait %s is shorter than the first %s", p.Max, p.Initial)
	bad(p.Window < 0, "window is %s; use 0 for no limit", p.Window)
	bad(p.AttemptTimeout < 0, "attempt timeout is %s; use 0 for none", p.AttemptTimeout)
	bad(p.MaxRetryAfter < 0, "longest Retry-After is %s; use 0 to ignore it", p.MaxRetryAfter)
	bad(p.PoisonAfter < 0, "poison after is %d; use 0 to switch it off", p.PoisonAfter)
	bad(!p.Jitter.valid(), "jitter ratio is %v; use 0 to 1", p.Jitter.ratio)
	return errors.Join(errs...)
}

// Ceiling is the wait after attempt n (1 is the first) before jitter:
// min(Max, Initial × Multiplier^(n-1)). It never shrinks as n grows.
func (p Policy) Ceiling(n int) time.Duration {
	if n < 1 {
		n = 1
	}
	wait := float64(p.Initial) * math.Pow(p.Multiplier, float64(n-1))
	if !(wait < float64(p.Max)) { // also +Inf and NaN
		return p.Max
	}
	return time.Duration(wait)
}

// Wait is the wait after attempt n with jitter.
func (p Policy) Wait(n int) time.Duration { return p.Jitter.apply(p.Ceiling(n), p.random()) }

func (p Policy) random() float64 {
	if p.Rand != nil {
		return p.Rand()
	}
	return rand.Float64() // spreading load, no secret
}
