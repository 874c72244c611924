package replay

import (
	"math"
	"sync"
	"time"
)

// jump is by how much wall clock and running time may differ between two looks
// at a bucket before the wall clock is said to have jumped.
const jump = 500 * time.Millisecond

// looks are a process's own looks at buckets. The wall clock is shared by all
// processes but may jump; the running time never does but is each one's own.
type looks struct {
	mu     sync.Mutex
	last   map[string]look
	aware  map[string]int  // for how many rounds a bucket's still look first
	waited map[int64]int64 // how far a batch was searched for what waits behind nothing
}

type look struct {
	wall time.Time
	ran  time.Duration
}

// shared is the injected time for a statement, or null: the database's clock
// counts then, which all processes share.
func (s *Service) shared() *time.Time {
	if s.Now == nil {
		return nil
	}
	now := s.Now()
	return &now
}

var (
	started = time.Now()
	looksMu sync.Mutex
)

func (s *Service) looked() *looks {
	looksMu.Lock()
	defer looksMu.Unlock()
	if s.looks == nil {
		s.looks = &looks{last: map[string]look{}, aware: map[string]int{}, waited: map[int64]int64{}}
	}
	return s.looks
}

// ran is how long the process has run. Where tests inject the clock alone, it
// is the truth.
func (s *Service) ran() time.Duration {
	switch {
	case s.Ran != nil:
		return s.Ran()
	case s.Now != nil:
		return s.Now().Sub(started)
	}
	return time.Since(started)
}

// jumped says whether the wall clock jumped since the last look at a bucket: what
// it says to have passed then counts for nothing. A process's first look has
// nothing to tell a jump by.
func (l *looks) jumped(bucket string, wall time.Time, ran time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, known := l.last[bucket]
	drift := wall.Sub(before.wall) - (ran - before.ran)
	return !known || drift.Abs() > jump+(ran-before.ran)/1000
}

// note keeps a look at a bucket, once what followed from it is committed: a round
// that fails must not hide a jump from the next.
func (l *looks) note(b *bucket) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last[b.name()] = look{b.At, b.ran}
}

// refill adds what came in since; never above the burst, and never for time
// that ran backwards.
func refill(tokens float64, elapsed time.Duration, perMinute, burst int) float64 {
	return math.Min(float64(burst), tokens+max(0, elapsed.Minutes())*float64(perMinute))
}

// behind is where the search of a batch goes on.
func (l *looks) behind(batch int64) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waited[batch]
}

func (l *looks) setBehind(batch, at int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.waited, batch)
	if at > 0 {
		l.waited[batch] = at
	}
}

// bewareFor is how many rounds look first after others stood in the way.
const bewareFor = 100

// care is how carefully the next round of a bucket begins.
func (l *looks) care(bucket string) care {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.aware[bucket] == 0 {
		return quick
	}
	l.aware[bucket]--
	return looking
}

func (l *looks) beware(bucket string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.aware[bucket] = bewareFor
}
