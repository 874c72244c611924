package web

import (
	"strings"
	"time"

	"github.com/redrive-dlq/redrive/dlq/board"
	"github.com/redrive-dlq/redrive/dlq/replay"
	"github.com/redrive-dlq/redrive/views/component"
)

// willHappen says in sentences what a batch would do at a rate and with a
// canary.
func (s *Server) willHappen(b board.Batch, perMinute, canary int) []string {
	if b.Eligible == 0 {
		return []string{"Nothing would be sent: no job of it can be replayed as it is."}
	}
	t, _ := s.config.Types().Type(b.JobType)
	what := "This " + replay.Risk(t, b.Eligible)
	if b.Tenants > 1 {
		what += ", for " + component.Plural(b.Tenants, "tenant", "tenants")
	}
	words := []string{what + "."}
	pace := "At " + component.Count(perMinute) + " a minute it takes " + lasts(b.Eligible, perMinute)
	if n := min(canary, b.Eligible); n > 0 && n < b.Eligible {
		pace += "; " + component.Plural(n, "replay leaves", "replays leave") + " first as a canary, spread over tenants and failures"
	}
	words = append(words, pace+".")
	if guard := guardWords(t); guard != "" {
		words = append(words, strings.Replace(guard, "of this key", "of each key", 1))
	}
	return append(words, "They go to "+s.destinationName(b)+".")
}

// startWords say when a reviewed batch starts.
func (s *Server) startWords(b board.Batch) string {
	switch {
	case b.StartAt != nil:
		return "It starts at " + timeOfDay(*b.StartAt, s.people.Now()) + "."
	case b.StartAfterS == 0:
		return "It starts at once."
	}
	return "It starts " + component.Duration(time.Duration(b.StartAfterS)*time.Second) + " after the last confirmation; until then it can be taken back without a trace outside."
}
