package api

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/dlq/source"
)

const (
	// seenEvery is how often a source's row is told that documents come.
	seenEvery = 30 * time.Second
	// maxSeen bounds what is remembered: a token without a limit may name any
	// environment.
	maxSeen = 10_000
)

// seenSources remembers which sources' rows are up to date. The zero value is
// ready.
type seenSources struct {
	mu sync.Mutex
	at map[source.ID]time.Time
}

// due reports, once in seenEvery, that the source's row wants to be written.
func (s *seenSources) due(id source.ID, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, ok := s.at[id]; ok && now.Sub(at) < seenEvery {
		return false
	}
	if s.at == nil || len(s.at) >= maxSeen {
		s.at = map[source.ID]time.Time{}
	}
	s.at[id] = now
	return true
}

func (s *seenSources) forget(id source.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.at, id)
}

// sawSources writes down the sources of documents: outside the capture's
// transaction, because ON CONFLICT DO UPDATE locks the row even when it
// changes nothing, and captures of one source would wait for each other.
func (a *API) sawSources(ctx context.Context, docs []*dlq.Document) error {
	for _, d := range docs {
		id := source.ID{Environment: d.Environment, Name: d.Source}
		if !a.sources.due(id, time.Now()) {
			continue
		}
		if err := a.sawSource(ctx, id); err != nil {
			a.sources.forget(id)
			return fmt.Errorf("api: source: %w", err)
		}
	}
	return nil
}

// sawSource keeps the kind of a source that is known: a document posted for a
// River source doesn't turn it into another. It waits for nobody's lock.
func (a *API) sawSource(ctx context.Context, id source.ID) error {
	_, err := a.Pool.Exec(ctx, `
		INSERT INTO redrive.sources (environment, name, kind)
		VALUES ($1, $2, $3)
		ON CONFLICT DO NOTHING`, id.Environment, id.Name, source.KindHTTP)
	if err != nil {
		return err
	}
	_, err = a.Pool.Exec(ctx, `
		UPDATE redrive.sources
		SET last_seen_at = now(), last_error = ''
		WHERE (environment, name) IN (
			SELECT environment, name
			FROM redrive.sources
			WHERE environment = $1 AND name = $2 AND kind = $3
			FOR UPDATE SKIP LOCKED)`, id.Environment, id.Name, source.KindHTTP)
	return err
}
