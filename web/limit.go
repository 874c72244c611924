package web

import (
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
)

// Exports of one person: so many at once, and one more each exportEvery. Each
// reads a whole batch.
const (
	exportBurst = 5
	exportEvery = 20 * time.Second
)

// Orders of one person: plans, confirmations, approvals and single replays. A
// person never gets there; a script that does should plan one batch.
const (
	orderBurst = 200
	orderEvery = 200 * time.Millisecond
)

// limiter is a token bucket for each person, in this process: nobody keeps the
// database busy alone.
type limiter struct {
	burst int
	every time.Duration // for one more
	words string        // what was done so often

	mu  sync.Mutex
	was map[int64]bucket // by user
}

func newLimiter(burst int, every time.Duration, words string) *limiter {
	return &limiter{burst: burst, every: every, words: words, was: map[int64]bucket{}}
}

type bucket struct {
	tokens float64
	at     time.Time
}

// CountExport counts one export of who asks, by page or by API. Errors: TooMany.
func CountExport(c echo.Context) error {
	s := c.Get(keyServer).(*Server)
	return s.exports.take(Principal(c).UserID, s.people.Now())
}

// take counts one act of the person. Errors: TooMany, with a *rbac.Throttled
// cause that says when to try again.
func (l *limiter) take(user int64, now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, known := l.was[user]
	if !known {
		b = bucket{float64(l.burst), now}
	}
	b.tokens = min(float64(l.burst), b.tokens+max(0, now.Sub(b.at).Seconds())/l.every.Seconds())
	b.at = now
	if b.tokens < 1 {
		wait := time.Duration((1 - b.tokens) * float64(l.every))
		return problem.Wrap(&rbac.Throttled{After: wait}, problem.TooMany, "You %s a lot just now. Nothing was done this time; try again in %d seconds.", l.words, int(wait.Seconds())+1)
	}
	b.tokens--
	l.keep(user, b, now)
	return nil
}

// keep stores the bucket and forgets those that are full again.
func (l *limiter) keep(user int64, b bucket, now time.Time) {
	for other, one := range l.was {
		if now.Sub(one.at) > time.Duration(l.burst)*l.every {
			delete(l.was, other)
		}
	}
	l.was[user] = b
}
