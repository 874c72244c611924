package bench

import (
	"math"
	"testing"
	"time"
)

// every makes n moments, so many a second.
func every(n int, perSecond float64) []time.Time {
	at := make([]time.Time, n)
	for i := range at {
		at[i] = time.Unix(0, 0).Add(time.Duration(float64(i) / perSecond * float64(time.Second)))
	}
	return at
}

func TestRateError(t *testing.T) {
	t.Parallel()
	slow := every(2000, 100)
	for i := range slow[1000:] { // a second in which nothing left
		slow[1000+i] = slow[1000+i].Add(time.Second)
	}
	for name, c := range map[string]struct {
		at     []time.Time
		rate   int
		window time.Duration
		want   float64
	}{
		"exact":           {every(2000, 100), 100, 5 * time.Second, 0},
		"3 % slow":        {every(2000, 97), 100, 5 * time.Second, 3},
		"2 % fast":        {every(2000, 102), 100, 5 * time.Second, 2},
		"one gap in 10 s": {slow, 100, 10 * time.Second, 10},
		"100 releases":    {every(200, 1), 1, time.Second, 0},
	} {
		if got := rateError(c.at, c.rate, c.window); math.Abs(got-c.want) > 0.02 {
			t.Errorf("%s: %.3f %%, want %.3f %%", name, got, c.want)
		}
	}
	if got := rateError(every(100, 1), 1, time.Second); !math.IsNaN(got) {
		t.Errorf("99 releases after the first are no window, got %.3f %%", got)
	}
}

func TestOverBurst(t *testing.T) {
	t.Parallel()
	together := make([]time.Time, 21)
	for name, c := range map[string]struct {
		at    []time.Time
		burst int
		want  float64
	}{
		"evenly, as the rate says": {every(500, 10), 1, 0},
		"evenly, burst unused":     {every(500, 10), 20, -19},
		"21 at once of 20":         {together, 20, 1},
		"faster than the rate":     {every(101, 11), 20, 1 + 100 - 10*100.0/11 - 20},
		"a burst amid":             {append(every(100, 10), together21(10)...), 20, 1 + 20 - 20},
	} {
		if got := overBurst(c.at, 10, c.burst); math.Abs(got-c.want) > 1e-6 {
			t.Errorf("%s: %.3f, want %.3f", name, got, c.want)
		}
	}
}

// together21 are 21 releases at once, so many seconds after the start.
func together21(seconds int64) []time.Time {
	at := make([]time.Time, 21)
	for i := range at {
		at[i] = time.Unix(seconds, 0)
	}
	return at
}
