// Package infer drafts a catalogue from the jobs that were seen: what it can't
// know stays to be filled in by the people who wrote the workers.
package infer

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/dlq/jobtype"
)

const (
	samples = 100 // dead jobs looked at for each type, environment and status
	fields  = 40  // payload places suggested of a type at most
)

// Seen is what was seen of one undeclared type.
type Seen struct {
	Name         string
	Environments map[string]*Place
	Jobs         int // looked at
	WithKey      int // of them, those with an idempotency key
	paths        map[string]int
}

// Place is where jobs of a type died in one environment.
type Place struct {
	Jobs    int
	Sources map[string]string // name to kind, river or another
	Queues  map[string]int
}

// Source is a place where jobs died.
type Source struct{ Environment, Name, Kind string }

// World is what a draft is made from.
type World struct {
	Types     []*Seen
	Sources   []Source
	Catalogue *jobtype.Catalogue // in force; nil: none was ever loaded
}

// Read looks at what was seen and isn't declared. It reads redacted payloads
// only, and of them only the places.
func Read(ctx context.Context, db dlq.DB) (w World, err error) {
	if w.Catalogue, err = jobtype.Stored(ctx, db); err != nil {
		return w, err
	}
	if w.Sources, err = collect[Source](ctx, db, `
		SELECT environment, name, kind
		FROM redrive.sources
		ORDER BY environment, name`); err != nil {
		return w, err
	}
	rows, err := collect[sample](ctx, db, `
		SELECT d.job_type, d.environment, d.source, coalesce(s.kind, '') AS kind, d.queue, d.idempotency_key <> '' AS key,
		       coalesce((SELECT p.redacted
		                 FROM redrive.payloads p
		                 WHERE p.dead_job_id = d.id AND p.version = d.payload_version AND p.size < 65536), '') AS redacted
		FROM (SELECT DISTINCT environment, job_type, status FROM redrive.type_counts WHERE n > 0) c
		CROSS JOIN LATERAL (
			SELECT *
			FROM redrive.dead_jobs
			WHERE job_type = c.job_type AND status = c.status AND environment = c.environment
			ORDER BY died_at DESC, id DESC
			LIMIT $1) d
		LEFT JOIN redrive.sources s ON s.environment = d.environment AND s.name = d.source
		ORDER BY d.job_type, d.id`, samples)
	if err != nil {
		return w, err
	}
	for _, r := range rows {
		if w.Catalogue != nil {
			if _, declared := w.Catalogue.Type(r.JobType); declared {
				continue
			}
		}
		if n := len(w.Types); n == 0 || w.Types[n-1].Name != r.JobType {
			w.Types = append(w.Types, &Seen{Name: r.JobType, Environments: map[string]*Place{}, paths: map[string]int{}})
		}
		w.Types[len(w.Types)-1].add(r)
	}
	return w, nil
}

// sample is one dead job, as far as a draft looks at it.
type sample struct {
	JobType, Environment, Source, Kind, Queue string
	Key                                       bool
	Redacted                                  []byte
}

func (s *Seen) add(r sample) {
	p := s.Environments[r.Environment]
	if p == nil {
		p = &Place{Sources: map[string]string{}, Queues: map[string]int{}}
		s.Environments[r.Environment] = p
	}
	p.Jobs++
	p.Sources[r.Source] = r.Kind
	if r.Queue != "" {
		p.Queues[r.Queue]++
	}
	s.Jobs++
	if r.Key {
		s.WithKey++
	}
	var document any
	if json.Unmarshal(r.Redacted, &document) == nil {
		s.walk("", document, 0)
	}
}

// plainField is a name that a programmer gave: a key made of data (an address,
// an id) is a value, too.
var plainField = regexp.MustCompile(`^[A-Za-z_][A-Za-z_-]{0,39}[0-9]?$`)

func (s *Seen) walk(at string, v any, depth int) {
	object, ok := v.(map[string]any)
	if !ok {
		if at != "" {
			s.paths[at]++
		}
		return
	}
	for name, inner := range object {
		if plainField.MatchString(name) && depth < 4 {
			s.walk(at+"/"+name, inner, depth+1)
		}
	}
}

// Fields are the payload's places, those that at least half of the jobs have.
func (s *Seen) Fields() []string {
	var out []string
	for _, path := range slices.Sorted(maps.Keys(s.paths)) {
		if s.paths[path]*2 >= s.Jobs && len(out) < fields {
			out = append(out, path)
		}
	}
	return out
}

func collect[T any](ctx context.Context, db dlq.DB, sql string, args ...any) ([]T, error) {
	rows, err := db.Query(ctx, sql, args...)
	if err != nil {
		return nil, fmt.Errorf("infer: %w", err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[T])
	if err != nil {
		return nil, fmt.Errorf("infer: %w", err)
	}
	return out, nil
}
