package filter

import (
	"strconv"
	"strings"
	"time"
)

// aliases are words that people bring along from elsewhere.
var aliases = map[string]string{
	"environment": "env", "state": "status", "is": "status", "error": "class", "error_class": "class",
	"job_type": "type", "kind": "type", "job_id": "job", "id": "job", "fingerprint": "group",
	"idempotency_key": "key", "since": "newer", "after": "newer", "before": "older", "until": "older", "customer": "tenant",
}

// maxAge is the greatest age: beyond it a time would leave its range.
const maxAge = 100 * 366 * 24 * time.Hour

// readAge reads 30s, 5m, 2h, 3d or 1w.
func readAge(v string) (time.Duration, bool) {
	for _, a := range ages {
		digits, found := strings.CutSuffix(v, a.unit)
		if !found {
			continue
		}
		n, err := strconv.ParseUint(digits, 10, 32)
		if err != nil || n == 0 || n > uint64(maxAge/a.of) {
			return 0, false
		}
		return time.Duration(n) * a.of, true
	}
	return 0, false
}

// nearest returns the word that is at most two edits away, and nearer than it
// is long; empty when there is none.
func nearest(word string, words []string) string {
	best, bestAt := "", 3
	if len(word) > 40 {
		return ""
	}
	for _, w := range words {
		if d := distance(word, w); d < bestAt && d < len(w)/2+1 {
			best, bestAt = w, d
		}
	}
	return best
}

// distance counts the edits between two words; a swap of neighbours is one.
func distance(a, b string) int {
	var before []int
	last := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
