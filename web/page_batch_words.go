package web

import (
	"strings"
	"time"

	"github.com/redrive-dlq/redrive/dlq/board"
	"github.com/redrive-dlq/redrive/dlq/replay"
	"github.com/redrive-dlq/redrive/views/component"
	"github.com/redrive-dlq/redrive/views/route"
)

// willHappen says in sentences what a batch would do at a rate and with a
// canary.
func (s *Server) willHappen(b board.Batch, perMinute, canary int) []string {
	if b.Eligible == 0 {
		return []string{"Nothing would be sent: no job of it can be replayed as it is."}
	}
	t, _ := s.config.Types().Type(b.JobType)
	words := []string{"This " + replay.Risk(t, b.Eligible) + paceWords(b, perMinute, canary) + "."}
	if guard := guardWords(t); guard != "" {
		words = append(words, strings.Replace(guard, "of this key", "of each key", 1))
	}
	return append(words, "They go to "+s.destinationName(b)+".")
}

// paceWords complete what a batch may do: " for 3 tenants over about 14 min at
// 120 a minute, 10 first as a canary".
func paceWords(b board.Batch, perMinute, canary int) string {
	var words string
	if b.Tenants > 1 {
		words = " for " + component.Plural(b.Tenants, "tenant", "tenants")
	}
	words += " over " + lasts(b.Eligible, perMinute) + " at " + component.Count(perMinute) + " a minute"
	if n := min(canary, b.Eligible); n > 0 && n < b.Eligible {
		words += ", " + component.Count(n) + " first as a canary"
	}
	return words
}

// startsWhen says when a batch would start that is confirmed now.
func (f reviewForm) startsWhen(now time.Time) string {
	switch f.When {
	case "now":
		return "It starts as soon as it is confirmed."
	case "later":
		if at, err := utcMinute(route.FieldAt, f.At); err == nil {
			return "It starts at " + timeOfDay(at, now) + "."
		}
		return "It starts at the time that you choose."
	}
	return "It starts at " + timeOfDay(now.Add(replay.DefaultStartAfter), now) + " if it is confirmed now."
}

// startWords say when a reviewed batch starts.
func (s *Server) startWords(b board.Batch) string {
	switch {
	case b.StartAt != nil:
		return "It starts at " + timeOfDay(*b.StartAt, s.people.Now()) + "."
	case b.StartAfterS == 0:
		return "It starts at once with the last confirmation."
	}
	return "It starts " + component.Duration(time.Duration(b.StartAfterS)*time.Second) + " after the last confirmation; until then it can be taken back without a trace outside."
}
