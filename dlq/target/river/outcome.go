package river

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/dlq/category"
	"github.com/redrive-dlq/redrive/dlq/failure"
	"github.com/redrive-dlq/redrive/dlq/redact"
	"github.com/redrive-dlq/redrive/dlq/replay"
)

const (
	watchEvery = 300 * time.Millisecond
	watchChunk = 500
)

// Watcher finds out how replays in River ended: from our open replays to
// river_job by id, never the other way round.
type Watcher struct {
	Target  *Target
	Service *replay.Service
	Log     *slog.Logger
}

// Run watches until ctx ends.
func (w *Watcher) Run(ctx context.Context) error {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		if err := w.Round(ctx); err != nil && ctx.Err() == nil {
			w.Log.WarnContext(ctx, "outcomes of River replays not read", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Round looks once at every open replay that went to River.
func (w *Watcher) Round(ctx context.Context) error {
	var after int64
	var failed error
	for {
		items, err := w.Service.InFlight(ctx, "river", after, watchChunk)
		if err != nil {
			return err
		}
		if len(items) == 0 {
			return failed
		}
		after = items[len(items)-1].ReplayID
		byClient := map[*Client][]replay.Item{}
		for _, it := range items {
			if c, refusal := w.Target.client(it); refusal == nil {
				byClient[c] = append(byClient[c], it)
			}
		}
		for c, its := range byClient {
			if err := w.look(ctx, c, its); err != nil {
				failed = errors.Join(failed, fmt.Errorf("%s: %w", c.Name, err))
			}
		}
	}
}

// seen is one river_job row as an outcome is read from it.
type seen struct {
	ID        int64
	State     string
	Attempt   int
	Replay    string
	Output    string
	LastError string
	Panicked  bool
}

func (w *Watcher) look(ctx context.Context, c *Client, items []replay.Item) error {
	ids := make([]int64, 0, len(items))
	refs := map[int64]ref{}
	for _, it := range items {
		var r ref
		if err := json.Unmarshal(it.TargetRef, &r); err != nil {
			return fmt.Errorf("river target: reference of replay %d: %w", it.ReplayID, err)
		}
		refs[it.ReplayID] = r
		ids = append(ids, r.RiverID)
	}
	rows, err := c.Pool.Query(ctx, `
		SELECT id, state::text, attempt, coalesce(metadata ->> 'redrive:replay', ''),
		       coalesce(metadata ->> 'output', ''), coalesce(errors[array_upper(errors, 1)] ->> 'error', ''),
		       coalesce(errors[array_upper(errors, 1)] ->> 'trace', '') <> ''
		FROM `+pgx.Identifier{c.Schema, "river_job"}.Sanitize()+`
		WHERE id = ANY($1)`, ids)
	if err != nil {
		return fmt.Errorf("river target: read rows: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[seen])
	if err != nil {
		return fmt.Errorf("river target: read rows: %w", err)
	}
	byID := map[int64]seen{}
	for _, s := range found {
		byID[s.ID] = s
	}
	var failed error
	for _, it := range items {
		r := refs[it.ReplayID]
		s, ok := byID[r.RiverID]
		if end := outcome(it, r, s, ok); end != nil {
			if end.Outcome == replay.Failed && w.hasEffect(it.JobType) {
				// The source's capture says it again; until then nobody may repeat it.
				end.EffectUnknown = s.Panicked || dlq.EndUnknown(category.Status(s.LastError), s.LastError)
			}
			if _, err := w.Service.Record(ctx, it.ReplayID, *end); err != nil {
				failed = errors.Join(failed, err)
			}
		}
	}
	return failed
}

// hasEffect: of a type that nobody declared nothing is known, so it may have one.
func (w *Watcher) hasEffect(jobType string) bool {
	t, ok := w.Service.Types().Type(jobType)
	return !ok || t.HasEffect()
}

// outcome reads one row; nil means not ended yet.
func outcome(it replay.Item, r ref, s seen, ok bool) *replay.End {
	mine := s.Replay == strconv.FormatInt(it.ReplayID, 10)
	switch {
	case !ok && !it.Delivered:
		return nil // another database: the hand-over decides
	case !ok:
		return &replay.End{Outcome: replay.Unconfirmed, Code: "gone", EffectUnknown: true,
			Detail: "the row is gone from River, so nobody can say how the run ended"}
	case !mine && !it.Delivered:
		return nil
	case !mine:
		return &replay.End{Outcome: replay.Unconfirmed, Code: "overtaken", EffectUnknown: true,
			Detail: "the row runs for another replay now"}
	case s.State == "completed":
		if s.Output == "already_done" {
			return &replay.End{Outcome: replay.AlreadyDone, Code: "worker", Detail: "the worker found the effect in place"}
		}
		return &replay.End{Outcome: replay.Succeeded, Code: "completed", Detail: "the worker completed it"}
	case s.State == "cancelled" && s.Attempt <= r.Attempt:
		return &replay.End{Outcome: replay.Cancelled, Code: "cancelled_at_source", Detail: "it was cancelled in River before it ran"}
	case s.State == "discarded" || s.State == "cancelled":
		class, _ := category.Classify(failure.Failure{JobType: it.JobType, Message: s.LastError})
		return &replay.End{Outcome: replay.Failed, Code: s.State, Detail: firstLine(redact.Readable(s.LastError)), Category: string(class)}
	}
	return nil
}

func firstLine(s string) string {
	for i, r := range s {
		if r == '\n' || i > 400 {
			return s[:i]
		}
	}
	return s
}
