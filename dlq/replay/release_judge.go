package replay

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq/jobtype"
)

// judgeClaimed is the last check before replays leave, under the locks of their
// keys and jobs: by the same facts and rules as the plan. It ends those that
// may not leave, puts off those that a worker holds, and returns the rest.
func (s *Service) judgeClaimed(ctx context.Context, tx pgx.Tx, items []*claimed, how care) (free []*claimed, err error) {
	busy, err := tryKeys(ctx, tx, items)
	if err != nil {
		return nil, err
	}
	held := after(items)
	if how > quick {
		if err := waiting(ctx, tx, items, held); err != nil {
			return nil, err
		}
	}
	jobs := make([]int64, len(items))
	for i, c := range items {
		jobs[i] = c.DeadJobID
	}
	found, err := factsOfTaken(ctx, tx, jobs)
	if err != nil {
		return nil, err
	}
	byID := make(map[int64]facts, len(found))
	for _, f := range found {
		byID[f.ID] = f
	}
	var behind []int64
	var late []*claimed // held by a worker, or gone
	for _, c := range items {
		f, ok := byID[c.DeadJobID]
		switch {
		case held[c.ReplayID] && c.State == "pending":
			behind = append(behind, c.ReplayID)
		case busy[c.ReplayID] || !ok:
			late = append(late, c)
		default:
			c.facts = f
			c.SourceRef, c.AttemptCount, c.Queue = f.SourceRef, f.AttemptCount, f.Queue
			free = append(free, c)
		}
	}
	if err := markBehind(ctx, tx, behind); err != nil {
		return nil, err
	}
	if err := s.putOff(ctx, tx, late); err != nil {
		return nil, err
	}
	return s.endBlocked(ctx, tx, free)
}

// tryKeys takes the locks of the replays' keys without waiting; it returns
// those whose key a worker holds.
func tryKeys(ctx context.Context, tx pgx.Tx, items []*claimed) (busy map[int64]bool, err error) {
	var ids []int64
	var scopes, keys []string
	for _, c := range items {
		if c.Key.Key != "" {
			ids, scopes, keys = append(ids, c.ReplayID), append(scopes, c.Key.Scope), append(keys, c.Key.Key)
		}
	}
	busy = map[int64]bool{}
	if len(ids) == 0 {
		return busy, nil
	}
	rows, err := tx.Query(ctx, `
		SELECT id
		FROM unnest($2::bigint[], $3::text[], $4::text[]) AS k(id, scope, key)
		WHERE NOT pg_try_advisory_xact_lock(redrive.lock_key($1, scope, key))`, items[0].Environment, ids, scopes, keys)
	if err != nil {
		return nil, fmt.Errorf("replay: try keys: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return nil, fmt.Errorf("replay: try keys: %w", err)
	}
	for _, id := range found {
		busy[id] = true
	}
	return busy, nil
}

// endBlocked ends what may not leave any more and returns the rest.
func (s *Service) endBlocked(ctx context.Context, tx pgx.Tx, items []*claimed) (free []*claimed, err error) {
	for _, c := range items {
		e := s.mayLeave(c.facts, c.Item, c.run.AllowOld)
		if _, known := s.Targets[c.TargetKind]; e == nil && !known {
			e = &End{Outcome: Skipped, Code: NotReplayable, Detail: "this process knows no target of kind " + c.TargetKind}
		}
		if e == nil {
			free = append(free, c)
			continue
		}
		if err := s.endOne(ctx, tx, c.Item, *e); err != nil {
			return nil, err
		}
	}
	return free, nil
}

// mayLeave judges a job that a replay has taken, or is about to take; nil means
// go.
func (s *Service) mayLeave(f facts, it Item, allowOld bool) *End {
	if it.Proof {
		f = f.forProof()
	}
	if f.LedgerState == "done" || f.TwinDone {
		return doneMeanwhile(f)
	}
	if (f.Status != "replaying" && f.Status != "open") || f.Generation != it.Generation || f.PayloadVersion != it.PayloadVersion {
		return &End{Outcome: Skipped, Code: "changed", Detail: "the job changed after it was confirmed"}
	}
	t, _ := s.Types().Type(it.JobType)
	// It was open when it was taken, and its own replay is no other's.
	f.Status, f.InFlight, f.Environment, f.JobType = "open", 0, it.Environment, it.JobType
	v := decide(f, judging{Environment: it.Environment, JobType: it.JobType, Type: t, InScope: true, AllowOld: allowOld, Now: s.now()})
	switch v.Code {
	case Eligible:
		return nil
	case KeyDone:
		return &End{Outcome: AlreadyDone, Code: KeyDone, Detail: v.Detail, EffectID: v.EffectID}
	case EffectUnknown:
		return &End{Outcome: Skipped, Code: EffectUnknown, Detail: "its effect was begun meanwhile and its end isn't known", EffectUnknown: true}
	case PayloadMissing:
		return &payloadGone
	}
	return &End{Outcome: Skipped, Code: v.Code, Detail: v.Detail}
}

func doneMeanwhile(f facts) *End {
	if f.LedgerState == "done" {
		return &End{Outcome: AlreadyDone, Code: KeyDone, Detail: "the effect of this key is in the ledger", EffectID: f.LedgerEffectID}
	}
	return &End{Outcome: AlreadyDone, Code: KeyDone, Detail: fmt.Sprintf("job %d of the same key has done it", f.TwinID), EffectID: f.TwinEffectID}
}

// endOne ends a replay in the round; one that a worker's transaction is in the
// way of is put off.
func (s *Service) endOne(ctx context.Context, tx pgx.Tx, it Item, e End) error {
	err := pgx.BeginFunc(ctx, tx, func(sp pgx.Tx) error { return s.end(ctx, sp, it, e) })
	return s.later(ctx, tx, it, err)
}

// concurrencyOf is how many replays a type lets out at once at its destination.
func concurrencyOf(t jobtype.Target, catalogue *jobtype.Catalogue, environment, jobType string) int {
	if typ, ok := catalogue.Type(jobType); ok {
		if now, ok := typ.Target(environment); ok && now.Destination() == t.Destination() {
			return now.InFlight()
		}
	}
	return t.InFlight()
}
