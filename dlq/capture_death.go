package dlq

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/redrive-dlq/redrive/dlq/moment"
)

// deathTimes is what a document says about when things happened.
type deathTimes struct {
	told        *time.Time // the death, when told and plausible
	died        time.Time  // told, else the capture's time; never after it
	note        string     // why died isn't the worker's word
	enqueued    *time.Time
	firstFailed *time.Time
}

// timesOf works the times out. The death's own time wins; else it is the
// latest attempt's (attempts keep the sent order, which clocks may contradict).
// An implausible time is shown where it was told, and never sorted by.
func timesOf(doc *Document, now time.Time) (t deathTimes) {
	t.enqueued = plausible(doc.EnqueuedAt, now)
	var latest *time.Time
	for i := range doc.Attempts {
		at := plausible(doc.Attempts[i].At, now)
		if at == nil {
			continue
		}
		if latest == nil || at.After(*latest) {
			latest = at
		}
		if t.firstFailed == nil || at.Before(*t.firstFailed) {
			t.firstFailed = at
		}
	}
	if t.told = plausible(doc.DeadAt, now); t.told == nil {
		t.told = latest
		switch {
		case len(doc.DeadAt) > 0:
			t.note = "the time of death that was told can't be right: "
		case latest == nil:
			t.note = "no time of death was told: "
		}
		switch {
		case t.note != "" && latest != nil:
			t.note += "this is the latest attempt's"
		case t.note != "":
			t.note += "this is when it was captured"
		}
	}
	switch {
	case t.told == nil:
		t.died = now
	case t.told.After(now):
		t.died, t.note = now, "the worker's clock is ahead: this is when it was captured"
	default:
		t.died = *t.told
	}
	return t
}

// plausible reads a time; nil when it is missing,
// unreadable or implausible.
func plausible(raw json.RawMessage, now time.Time) *time.Time {
	if len(raw) == 0 {
		return nil
	}
	m := moment.Parse(raw, now)
	if !m.Plausible {
		return nil
	}
	return &m.At
}

// endOfTime stands in for now where a time must read the same whenever it is
// read: a redelivery's key may not depend on the clock.
var endOfTime = time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC)

// deathKey tells deaths of one job apart: attempt number and told time. A
// document that tells neither has the same key each time: the same death.
func deathKey(doc *Document) string {
	t := timesOf(doc, endOfTime)
	key := fmt.Sprintf("%d@", doc.attemptNumber())
	if t.told != nil {
		key += t.told.Format("2006-01-02T15:04:05.000000Z")
	}
	if len(doc.DeadAt) > 0 && plausible(doc.DeadAt, endOfTime) == nil {
		sum := sha256.Sum256(doc.DeadAt)
		key += "#" + hex.EncodeToString(sum[:8])
	}
	return key
}

// lastDeath is what the store knows of a job's latest death.
type lastDeath struct {
	attempt int
	at      time.Time // as told, else when it was captured
}

// newer reports whether an unknown death comes after the latest known one: it
// is later, or a higher attempt (whose worker's clock may lag).
func (l lastDeath) newer(attempt int, told *time.Time) bool {
	return attempt > l.attempt || told != nil && told.After(l.at)
}
