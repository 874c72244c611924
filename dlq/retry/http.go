package retry

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// RetryableStatus says whether an HTTP status is worth another attempt: 408,
// 429 and the 5xx that name a passing condition. Other 4xx need a correction,
// other 5xx (501, 505) a change of the server. A 500 counts as passing: most
// are, and the number of attempts is bounded.
func RetryableStatus(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests,
		http.StatusInternalServerError, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// ParseRetryAfter reads a Retry-After value (RFC 9110, 10.2.3): whole seconds
// or an HTTP date. A date in the past is zero. Anything else, negative or
// fractional seconds among it, is not ok and is to be ignored.
func ParseRetryAfter(value string, now time.Time) (wait time.Duration, ok bool) {
	value = strings.TrimSpace(value)
	if value == "" || len(value) > 64 {
		return 0, false
	}
	if digitsOnly(value) {
		seconds, err := strconv.ParseInt(value, 10, 64)
		if err != nil || seconds > int64(math.MaxInt64/time.Second) {
			return math.MaxInt64, true // absurdly far: the caller clamps it
		}
		return time.Duration(seconds) * time.Second, true
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	return max(0, at.Sub(now)), true
}

func (p Policy) retryAfter(value string, now time.Time) (time.Duration, bool) {
	if p.MaxRetryAfter <= 0 {
		return 0, false
	}
	wait, ok := ParseRetryAfter(value, now)
	return min(wait, p.MaxRetryAfter), ok
}

func digitsOnly(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}
