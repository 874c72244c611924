package retry

import "time"

// Jitter is how a wait is spread, so that jobs which failed together don't
// come back together. The zero value spreads nothing.
type Jitter struct {
	full  bool
	ratio float64
}

// None waits exactly the ceiling.
func None() Jitter { return Jitter{} }

// Full waits anything from zero to the ceiling: the widest spread, for fleets
// that fail at once.
func Full() Jitter { return Jitter{full: true} }

// Ratio waits the ceiling ± r of it; r is from 0 to 1.
func Ratio(r float64) Jitter { return Jitter{ratio: r} }

// Bounds are the shortest and longest wait that a ceiling can become.
func (j Jitter) Bounds(ceiling time.Duration) (low, high time.Duration) {
	if j.full {
		return 0, ceiling
	}
	swing := time.Duration(float64(ceiling) * j.ratio)
	return ceiling - swing, ceiling + swing
}

func (j Jitter) valid() bool { return j.ratio >= 0 && j.ratio <= 1 }

func (j Jitter) apply(ceiling time.Duration, random float64) time.Duration {
	low, high := j.Bounds(ceiling)
	return low + time.Duration(float64(high-low)*random)
}
