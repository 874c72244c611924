package web

import (
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
)

// Exports of one person: so many at once, and one more each exportEvery.
const (
	exportBurst = 5
	exportEvery = 20 * time.Second
)

// limiter is a token bucket for each person, in this process: an export reads
// a whole batch, so that nobody keeps the database busy with them.
type limiter struct {
	mu  sync.Mutex
	was map[int64]bucket // by user
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

// take counts one export of the person. Errors: TooMany, with a *rbac.Throttled
// cause that says when to try again.
func (l *limiter) take(user int64, now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, known := l.was[user]
	if !known {
		b = bucket{exportBurst, now}
	}
	b.tokens = min(exportBurst, b.tokens+max(0, now.Sub(b.at).Seconds())/exportEvery.Seconds())
	b.at = now
	if b.tokens < 1 {
		wait := time.Duration((1 - b.tokens) * float64(exportEvery))
		return problem.Wrap(&rbac.Throttled{After: wait}, problem.TooMany, "You exported a lot just now. Nothing was read this time; try again in %d seconds.", int(wait.Seconds())+1)
	}
	b.tokens--
	l.keep(user, b, now)
	return nil
}

// keep stores the bucket and forgets those that are full again.
func (l *limiter) keep(user int64, b bucket, now time.Time) {
	if l.was == nil {
		l.was = map[int64]bucket{}
	}
	for other, one := range l.was {
		if now.Sub(one.at) > exportBurst*exportEvery {
			delete(l.was, other)
		}
	}
	l.was[user] = b
}
