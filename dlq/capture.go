package dlq

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq/envelope"
)

// Types is what capture asks the catalogue.
type Types interface {
	// Scope is the ledger scope of a type's keys.
	Scope(jobType string) string
	// HasSideEffects reports whether a run does anything outside.
	HasSideEffects(jobType string) bool
}

// Capturer writes deaths into the store. It is safe for concurrent use.
type Capturer struct {
	types  Types
	sealer envelope.Sealer
	now    func() time.Time

	mu      sync.Mutex
	storeID string // read once; guarded by mu
}

// NewCapturer returns a Capturer. Without types a key's scope is its job type
// and no type has side effects; without a sealer payloads are stored plain;
// without a clock it is time.Now.
func NewCapturer(types Types, sealer envelope.Sealer, now func() time.Time) *Capturer {
	if sealer == nil {
		sealer = envelope.Plain{}
	}
	if now == nil {
		now = time.Now
	}
	return &Capturer{types: types, sealer: sealer, now: now}
}

// The outcomes of a capture.
const (
	CaptureCreated   = "created"   // the first death that is known of this job
	CaptureUpdated   = "updated"   // a later death: the next generation, open again
	CaptureUnchanged = "unchanged" // the same death again, or one before the latest
	CaptureRefused   = "refused"   // the document is wrong; Captured.Err says where
)

// Captured answers for one document.
type Captured struct {
	ID         int64 // of the dead job; 0 when refused
	Generation int   // the job's current one
	Outcome    string
	Err        error // a *problem.Error when refused: nothing of it was stored
}

// Capture writes deaths in the caller's transaction, in few statements, and
// answers for each in the order given. A document that breaks a rule is
// refused in its answer and harms no other: callers that can't hand the answer
// to the sender must keep the document with Quarantine. An error means that
// the transaction failed and nothing was stored.
//
// Any number of captures may run at once; only captures of the same job wait
// for each other. Capture locks dead_jobs rows, in the order of their
// identity, and nothing else.
func (c *Capturer) Capture(ctx context.Context, tx pgx.Tx, docs []*Document) ([]Captured, error) {
	out := make([]Captured, len(docs))
	now := c.now().UTC().Truncate(time.Microsecond) // what PostgreSQL keeps
	rows := make([]*death, 0, len(docs))
	for i, doc := range docs {
		if err := doc.validate(); err != nil {
			out[i] = Captured{Outcome: CaptureRefused, Err: err}
			continue
		}
		rows = append(rows, c.prepare(i, doc, now))
	}
	slices.SortStableFunc(rows, compareIdentity)
	for len(rows) > 0 {
		// A job's deaths are taken in order, one a round; nearly always there
		// is one round.
		var round, rest []*death
		for i, d := range rows {
			if i > 0 && compareIdentity(rows[i-1], d) == 0 {
				rest = append(rest, d)
			} else {
				round = append(round, d)
			}
		}
		if err := c.captureRound(ctx, tx, round, now); err != nil {
			return nil, err
		}
		for _, d := range round {
			out[d.index] = Captured{ID: d.id, Generation: d.generation, Outcome: d.outcome}
		}
		rows = rest
	}
	return out, nil
}

func compareIdentity(a, b *death) int {
	return cmp.Or(
		cmp.Compare(a.doc.Environment, b.doc.Environment),
		cmp.Compare(a.doc.Source, b.doc.Source),
		cmp.Compare(a.doc.JobID, b.doc.JobID))
}

// captureRound takes deaths of different jobs, sorted by identity.
func (c *Capturer) captureRound(ctx context.Context, tx pgx.Tx, round []*death, now time.Time) error {
	if err := findJobs(ctx, tx, round, now); err != nil {
		return err
	}
	if err := c.seal(ctx, tx, round); err != nil {
		return err
	}
	if err := writeDeaths(ctx, tx, round, now); err != nil {
		return fmt.Errorf("dlq: capture: deaths: %w", err)
	}
	return nil
}

// findJobs gives every death of the round its job: a new row, or the known one,
// locked. A known job may be purged between the two statements; then it is new.
func findJobs(ctx context.Context, tx pgx.Tx, round []*death, now time.Time) error {
	missing := round
	for try := 1; ; try++ {
		if err := insertJobs(ctx, tx, missing, now); err != nil {
			return fmt.Errorf("dlq: capture: new jobs: %w", err)
		}
		missing = slices.DeleteFunc(slices.Clone(missing), func(d *death) bool { return d.id != 0 })
		if len(missing) == 0 {
			return nil
		}
		err := lockJobs(ctx, tx, missing)
		if err == nil {
			return nil
		}
		if !errors.Is(err, errUnseen) || try == 3 {
			return fmt.Errorf("dlq: capture: known jobs: %w", err)
		}
	}
}

func (c *Capturer) scope(jobType string) string {
	if c.types != nil {
		if s := c.types.Scope(jobType); s != "" {
			return s
		}
	}
	return jobType
}

func (c *Capturer) hasSideEffects(jobType string) bool {
	return c.types != nil && c.types.HasSideEffects(jobType)
}
