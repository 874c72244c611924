package retry_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/redrive-dlq/redrive/dlq/retry"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func fixed(v float64) func() float64 { return func() float64 { return v } }

func TestPublishedNumbers(t *testing.T) {
	t.Parallel()
	p := retry.GRPC()
	for n, want := range map[int]time.Duration{1: time.Second, 2: 1600 * time.Millisecond, 3: 2560 * time.Millisecond, 50: 120 * time.Second} {
		if got := p.Ceiling(n); got != want {
			t.Errorf("Ceiling(%d) = %s, want %s", n, got, want)
		}
	}
	for _, p := range []retry.Policy{retry.Default(), retry.GRPC()} {
		if err := p.Validate(); err != nil {
			t.Errorf("a built-in policy is invalid: %v", err)
		}
	}
	d := retry.Default()
	if d.MaxAttempts < 3 || d.MaxAttempts > 5 || d.Initial < 10*time.Second || d.Initial > 30*time.Second ||
		d.Window < 15*time.Minute || d.Window > time.Hour {
		t.Errorf("Default() left the customary ranges: %+v", d)
	}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	p := retry.Policy{
		Initial: 10 * time.Second, Multiplier: 2, Max: time.Minute, Jitter: retry.Ratio(0.2),
		MaxAttempts: 3, Window: 10 * time.Minute, MaxRetryAfter: 5 * time.Minute, PoisonAfter: 3, Rand: fixed(0.5),
	}
	ok := retry.Failure{Retryable: true}
	for name, tt := range map[string]struct {
		n    int
		f    retry.Failure
		ago  time.Duration
		want retry.Decision
	}{
		"first wait":               {1, ok, 0, retry.Decision{Retry: true, After: 10 * time.Second}},
		"second wait doubles":      {2, ok, 0, retry.Decision{Retry: true, After: 20 * time.Second}},
		"last attempt":             {3, ok, 0, retry.Decision{GaveUp: retry.Attempts}},
		"not retryable at once":    {1, retry.Failure{}, 0, retry.Decision{GaveUp: retry.NotRetryable}},
		"cancelled wins":           {1, retry.Failure{Retryable: true, Cancelled: true}, 0, retry.Decision{GaveUp: retry.Cancelled}},
		"poison":                   {1, retry.Failure{Retryable: true, SameInARow: 3}, 0, retry.Decision{GaveUp: retry.Poison}},
		"window passed":            {1, ok, 9*time.Minute + 55*time.Second, retry.Decision{GaveUp: retry.Window}},
		"server asks for longer":   {1, retry.Failure{Retryable: true, RetryAfter: "60"}, 0, retry.Decision{Retry: true, After: 61 * time.Second}},
		"server asks for less":     {1, retry.Failure{Retryable: true, RetryAfter: "1"}, 0, retry.Decision{Retry: true, After: 10 * time.Second}},
		"absurd value is clamped":  {1, retry.Failure{Retryable: true, RetryAfter: "99999999999999999999"}, 0, retry.Decision{Retry: true, After: 301 * time.Second}},
		"clamped, past the window": {1, retry.Failure{Retryable: true, RetryAfter: "999999"}, 6 * time.Minute, retry.Decision{GaveUp: retry.Window}},
		"nonsense is ignored":      {1, retry.Failure{Retryable: true, RetryAfter: "soon"}, 0, retry.Decision{Retry: true, After: 10 * time.Second}},
	} {
		if got := p.Decide(tt.n, start.Add(-tt.ago), tt.f, start); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", name, got, tt.want)
		}
	}
}

func TestParseRetryAfter(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]struct {
		wait time.Duration
		ok   bool
	}{
		"120": {2 * time.Minute, true}, " 0 ": {0, true},
		"Sun, 01 Mar 2026 12:00:30 GMT":  {30 * time.Second, true},
		"Sunday, 01-Mar-26 12:00:30 GMT": {30 * time.Second, true},
		"Sun Mar  1 12:00:30 2026":       {30 * time.Second, true},
		"Sun, 01 Mar 2026 11:00:00 GMT":  {0, true}, // past
		"-5":                             {}, "1.5": {}, "": {}, "+3": {}, "0x10": {}, "soon": {},
		strings.Repeat("1", 65): {},
		"2026-03-01T12:00:30Z":  {}, // not an HTTP date
	} {
		wait, ok := retry.ParseRetryAfter(value, start)
		if wait != want.wait || ok != want.ok {
			t.Errorf("ParseRetryAfter(%q) = %s, %v; want %s, %v", value, wait, ok, want.wait, want.ok)
		}
	}
}

func TestRetryableStatus(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]bool{200: false, 400: false, 401: false, 403: false, 404: false, 408: true, 409: false, 422: false, 429: true, 500: true, 501: false, 502: true, 503: true, 504: true, 505: false} {
		if got := retry.RetryableStatus(status); got != want {
			t.Errorf("RetryableStatus(%d) = %v", status, got)
		}
	}
}

func TestValidateNamesEachFault(t *testing.T) {
	t.Parallel()
	err := retry.Policy{Initial: time.Minute, Max: time.Second, Jitter: retry.Ratio(2), Window: -1}.Validate()
	for _, want := range []string{"max attempts is 0", "multiplier is 0", "shorter than the first", "jitter ratio is 2", "window is"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Validate() = %v, lacks %q", err, want)
		}
	}
}

func drawPolicy(t *rapid.T) retry.Policy {
	initial := time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "initial"))
	jitter := retry.Full()
	if rapid.Bool().Draw(t, "ratio") {
		jitter = retry.Ratio(rapid.Float64Range(0, 1).Draw(t, "r"))
	}
	return retry.Policy{
		Initial: initial, Multiplier: rapid.Float64Range(1, 100).Draw(t, "multiplier"),
		Max:    initial + time.Duration(rapid.Int64Range(0, int64(24*time.Hour)).Draw(t, "max")),
		Jitter: jitter, MaxAttempts: rapid.IntRange(1, 50).Draw(t, "attempts"),
		Window:        time.Duration(rapid.Int64Range(1, int64(48*time.Hour)).Draw(t, "window")),
		MaxRetryAfter: time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "maxRetryAfter")),
		Rand:          fixed(rapid.Float64Range(0, 0.999999).Draw(t, "random")),
	}
}

func TestWaitsStayInBoundsAndNeverShrink(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolicy(t)
		if err := p.Validate(); err != nil {
			t.Fatalf("drawn policy is invalid: %v", err)
		}
		n := rapid.IntRange(-5, 100_000).Draw(t, "n")
		if p.Ceiling(n) > p.Ceiling(n+1) || p.Ceiling(n) > p.Max || p.Ceiling(n) < p.Initial {
			t.Fatalf("ceiling %d %s, next %s, limits %s…%s", n, p.Ceiling(n), p.Ceiling(n+1), p.Initial, p.Max)
		}
		low, high := p.Jitter.Bounds(p.Ceiling(n))
		if w := p.Wait(n); w < low || w > high || w < 0 {
			t.Fatalf("wait %s outside %s…%s", w, low, high)
		}
	})
}

// TestEveryJobEnds plays whole lives: whatever the failures, no job is tried
// more often or later than its policy says, and none after a final failure.
func TestEveryJobEnds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolicy(t)
		now := start
		for n := 1; ; n++ {
			if n > p.MaxAttempts || now.Sub(start) > p.Window && n > 1 {
				t.Fatalf("attempt %d at %s breaks %d attempts in %s", n, now.Sub(start), p.MaxAttempts, p.Window)
			}
			f := retry.Failure{
				Retryable:  rapid.Bool().Draw(t, "retryable"),
				Cancelled:  rapid.IntRange(0, 9).Draw(t, "cancelled") == 0,
				RetryAfter: rapid.SampledFrom([]string{"", "1", "3600", "-1", "x"}).Draw(t, "retryAfter"),
			}
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "took")))
			d := p.Decide(n, start, f, now)
			if d.Retry != (d.GaveUp == "") || d.After < 0 {
				t.Fatalf("contradicting decision %+v", d)
			}
			if d.Retry && (!f.Retryable || f.Cancelled) {
				t.Fatalf("retried %+v", f)
			}
			if !d.Retry {
				return
			}
			now = now.Add(d.After)
		}
	})
}

func FuzzParseRetryAfter(f *testing.F) {
	for _, s := range []string{"120", "Sun, 01 Mar 2026 12:00:30 GMT", "-1", "9999999999999999999999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if wait, ok := retry.ParseRetryAfter(s, start); wait < 0 || (!ok && wait != 0) {
			t.Fatalf("ParseRetryAfter(%q) = %s, %v", s, wait, ok)
		}
	})
}
