// Package river puts replays back into an application's River queue and finds
// out how they ended.
package river

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/redrive-dlq/redrive/dlq/replay"
)

// Client is one River that replays go to. Its client is insert-only: it never
// leads, since a leader's cleaner would apply our retention there.
type Client struct {
	Name        string        // as the catalogue's targets name it
	Environment string        // replays of another environment are refused
	Schema      string        // of River's tables
	Pool        *pgxpool.Pool // of the database River lives in
	Same        bool          // that database is the store's own

	client *river.Client[pgx.Tx]
}

// Target is replay.Target for River clients.
type Target struct {
	clients map[string]*Client
	// Payload reads the exact bytes of a payload version.
	Payload func(ctx context.Context, tx pgx.Tx, deadJobID int64, version int) ([]byte, error)
	// HandOver enqueues the hand-over of replays to a River in another
	// database, inside the releasing transaction.
	HandOver func(ctx context.Context, tx pgx.Tx, replayIDs []int64) error
}

// New makes a target of the given clients.
func New(clients ...*Client) (*Target, error) {
	t := &Target{clients: map[string]*Client{}}
	for _, c := range clients {
		var err error
		c.client, err = river.NewClient(riverpgxv5.New(c.Pool), &river.Config{Schema: c.Schema})
		if err != nil {
			return nil, fmt.Errorf("river target %s: %w", c.Name, err)
		}
		t.clients[c.Name] = c
	}
	return t, nil
}

// sourceRef is what the River source wrote of the row where a job died.
type sourceRef struct {
	RiverID     int64  `json:"river_id"`
	Attempt     int    `json:"attempt"`
	FinalizedAt string `json:"finalized_at"`
	Schema      string `json:"schema"`
	Client      string `json:"client"`
}

// ref is what an outcome is found by.
type ref struct {
	RiverID int64 `json:"river_id"`
	Attempt int   `json:"attempt"` // of the row before the replay's own
	NewRow  bool  `json:"new_row,omitempty"`
}

// client returns the client an item goes to, or why there is none.
func (t *Target) client(it replay.Item) (*Client, *replay.Refusal) {
	c, ok := t.clients[it.Target.River.Client]
	if !ok {
		return nil, &replay.Refusal{Code: "no_client", Detail: fmt.Sprintf("no River client %q is configured", it.Target.River.Client)}
	}
	if c.Environment != it.Environment {
		return nil, &replay.Refusal{Code: "environment", Detail: fmt.Sprintf("the River client %q belongs to %s and the job to %s; a replay never leaves its environment", c.Name, c.Environment, it.Environment)}
	}
	return c, nil
}

// Release puts the job back in the releasing transaction when River lives in
// the store's database; else it commits the intent and a hand-over follows.
func (t *Target) Release(ctx context.Context, tx pgx.Tx, items []replay.Item) ([]replay.Released, error) {
	out := make([]replay.Released, len(items))
	for i, it := range items {
		out[i].Err = pgx.BeginFunc(ctx, tx, func(sp pgx.Tx) (err error) {
			out[i], err = t.release(ctx, sp, it)
			return err
		})
	}
	return out, nil
}

func (t *Target) release(ctx context.Context, tx pgx.Tx, it replay.Item) (replay.Released, error) {
	c, refusal := t.client(it)
	if refusal != nil {
		return replay.Released{Refusal: refusal}, nil
	}
	if !c.Same {
		if err := t.HandOver(ctx, tx, []int64{it.ReplayID}); err != nil {
			return replay.Released{}, fmt.Errorf("river target: hand over: %w", err)
		}
		from := c.origin(it)
		raw, err := json.Marshal(ref{RiverID: from.RiverID, Attempt: from.Attempt})
		return replay.Released{Ref: raw}, err
	}
	payload, err := t.Payload(ctx, tx, it.DeadJobID, it.PayloadVersion)
	if err != nil {
		return replay.Released{}, err
	}
	r, refusal, err := c.reenter(ctx, tx, it, payload)
	if err != nil || refusal != nil {
		return replay.Released{Refusal: refusal}, err
	}
	raw, err := json.Marshal(r)
	return replay.Released{Ref: raw, Delivered: true}, err
}

// origin is the row where the job died; zero when it came through another door
// or died in another River, where the same id is another job's.
func (c *Client) origin(it replay.Item) sourceRef {
	var s sourceRef
	_ = json.Unmarshal(it.SourceRef, &s) // another door's reference has no such fields
	if (s.Client != "" && s.Client != c.Name) || (s.Schema != "" && s.Schema != c.Schema) {
		return sourceRef{}
	}
	return s
}
