// Package replay turns a person's order into one controlled new execution of
// a dead job: verdict, order, release under locks, outcome. A single replay is
// a batch of one.
//
// Lock order everywhere: bucket, key, replays, dead jobs. A release never
// waits for a key or a job: what is busy is left for the next round.
package replay

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/redrive-dlq/redrive/dlq/envelope"
	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/dlq/ledger"
)

// Outcome kinds: how a replay ends. The first final outcome wins.
const (
	Succeeded   = "succeeded"
	AlreadyDone = "already_done" // the effect was found in place
	Failed      = "failed"       // the job is open again
	Skipped     = "skipped"      // not released; outcome_code says why
	Unconfirmed = "unconfirmed"  // no outcome came: the effect is unknown
	Cancelled   = "cancelled"
)

// Item is one replay as a target sees it.
type Item struct {
	ReplayID       int64
	BatchID        int64
	DeadJobID      int64
	Generation     int
	PayloadVersion int
	Environment    string
	Source         string
	JobID          string
	JobType        string
	Entity         string
	Key            ledger.Key
	TargetKind     string
	Target         jobtype.Target
	SourceRef      json.RawMessage // where the job died, as its source wrote it
	AttemptCount   int
	Queue          string
	TargetRef      json.RawMessage // as the release wrote it
	ReleasedAt     time.Time
	Delivered      bool // the target is known to hold it
	Proof          bool // the second run of a proof: it leaves although its key is done

	ledgerBegins int // how often its effect had been begun when it left
}

// Refusal says why a target didn't take a replay: nothing has left.
type Refusal struct {
	Code   string // machine-readable, e.g. unique_conflict
	Detail string // completes "not replayed because …"
}

// Released is what a target says of a replay that was to leave.
type Released struct {
	Ref       json.RawMessage // what the outcome will be found by
	Delivered bool            // the target holds it already; false: a hand-over follows
	Refusal   *Refusal        // it didn't take it: nothing has left
	Err       error           // it couldn't say: nothing has left, it is tried again
}

// Target releases replays to where their jobs run.
type Target interface {
	// Check says for each item why the target can't carry its payload, or nil.
	// It writes nothing; one bad item harms only itself.
	Check(ctx context.Context, db pgx.Tx, items []Item, payloads [][]byte) ([]*Refusal, error)
	// Release hands replays over inside tx and answers for each, in order. An
	// item with an Err or a Refusal has left nothing behind in tx.
	Release(ctx context.Context, tx pgx.Tx, items []Item) ([]Released, error)
}

// Service plans, orders and releases replays. Any number of processes may run
// one on the same database.
type Service struct {
	Pool    *pgxpool.Pool
	Types   func() *jobtype.Catalogue // the catalogue in force now
	Targets map[string]Target         // by kind: river, http
	Sealer  envelope.Sealer
	Log     *slog.Logger
	Now     func() time.Time // injected in tests; nil means time.Now
	// Ran is how long the process has run, by a clock that never jumps; injected
	// in tests.
	Ran func() time.Duration
	// CheckDB is the database that a type's declared checks ask in an
	// environment, by a role that can only read; nil where there is none.
	CheckDB func(environment string) *pgxpool.Pool
	// Enqueue hands work on a batch to the engine inside tx; nil in tests, which
	// call Do themselves.
	Enqueue func(ctx context.Context, tx pgx.Tx, w Work, batch int64) error

	looks *looks
}

func (s *Service) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}

func (s *Service) log() *slog.Logger {
	if s.Log != nil {
		return s.Log
	}
	return slog.Default()
}

// kindOf names the target's kind as it is stored.
func kindOf(t jobtype.Target) string {
	switch {
	case t.River != nil:
		return "river"
	case t.HTTP != nil:
		return "http"
	}
	return ""
}

// storedTarget is a jobtype.Target as batches.target keeps it: the target
// that was confirmed, whatever the catalogue says later.
type storedTarget struct {
	Client        string `json:"client,omitempty"`
	Queue         string `json:"queue,omitempty"`
	URL           string `json:"url,omitempty"`
	Secret        string `json:"secret,omitempty"` // a reference, never the secret
	OutcomeWithin int64  `json:"outcome_within_ms"`
}

func encodeTarget(t jobtype.Target) (json.RawMessage, error) {
	st := storedTarget{OutcomeWithin: t.OutcomeWithin.Milliseconds()}
	if t.River != nil {
		st.Client, st.Queue = t.River.Client, t.River.Queue
	}
	if t.HTTP != nil {
		st.URL, st.Secret = t.HTTP.URL, t.HTTP.Secret
	}
	return json.Marshal(st)
}

func decodeTarget(kind string, raw json.RawMessage) (jobtype.Target, error) {
	var st storedTarget
	if err := json.Unmarshal(raw, &st); err != nil {
		return jobtype.Target{}, err
	}
	t := jobtype.Target{OutcomeWithin: time.Duration(st.OutcomeWithin) * time.Millisecond}
	switch kind {
	case "river":
		t.River = &jobtype.RiverTarget{Client: st.Client, Queue: st.Queue}
	case "http":
		t.HTTP = &jobtype.HTTPTarget{URL: st.URL, Secret: st.Secret}
	}
	return t, nil
}
