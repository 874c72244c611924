package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// errOther says that a target answered for another number of replays.
var errOther = errors.New("replay: the target didn't answer for each replay")

// care is how carefully a round goes: what usually goes well is tried without
// looking first, and a round that failed is done again with more care.
type care int

const (
	quick   care = iota // who holds a job, key or entity shows when it is taken
	looking             // look first who holds them
	single              // and hand over one by one, each under a savepoint
)

// send hands replays over and returns those that left. Where all at once fails,
// the round is done again and each is tried by itself, so that a bad one harms
// only itself.
func (s *Service) send(ctx context.Context, tx pgx.Tx, items []*claimed, how care) ([]*claimed, error) {
	if len(items) == 0 {
		return nil, nil
	}
	if how < single {
		// Without a savepoint: rows that were locked outside of one and change
		// inside it cost PostgreSQL a multixact each.
		return s.sendAll(ctx, tx, items)
	}
	var left []*claimed
	for _, c := range items {
		var one []*claimed
		err := pgx.BeginFunc(ctx, tx, func(sp pgx.Tx) (err error) {
			one, err = s.sendAll(ctx, sp, []*claimed{c})
			return err
		})
		if err != nil {
			one = nil
		}
		if err := s.later(ctx, tx, c.Item, err); err != nil {
			return nil, err
		}
		left = append(left, one...)
	}
	return left, nil
}

// sendAll hands over and writes who left; what the target refused or couldn't
// say of single ones is written beside it.
func (s *Service) sendAll(ctx context.Context, tx pgx.Tx, items []*claimed) (left []*claimed, err error) {
	all := make([]Item, len(items))
	for i, c := range items {
		all[i] = c.Item
	}
	outs, err := s.Targets[items[0].TargetKind].Release(ctx, tx, all)
	if err != nil {
		return nil, err
	}
	if len(outs) != len(items) {
		return nil, errOther
	}
	if left, err = s.markReleased(ctx, tx, items, outs); err != nil {
		return nil, err
	}
	for i, out := range outs {
		switch {
		case out.Err != nil:
			err = s.later(ctx, tx, items[i].Item, out.Err)
		case out.Refusal != nil:
			err = s.endOne(ctx, tx, items[i].Item, End{Outcome: Skipped, Code: out.Refusal.Code, Detail: "not replayed because " + out.Refusal.Detail})
		}
		if err != nil {
			return nil, err
		}
	}
	return left, nil
}

// markReleased writes of those that the target took that they left.
func (s *Service) markReleased(ctx context.Context, tx pgx.Tx, items []*claimed, outs []Released) (left []*claimed, err error) {
	var ids []int64
	var delivered []bool
	var refs []string
	var begins []int
	for i, out := range outs {
		if out.Err != nil || out.Refusal != nil {
			continue
		}
		if len(out.Ref) == 0 {
			out.Ref = json.RawMessage("{}")
		}
		c := items[i]
		c.Delivered = out.Delivered
		left = append(left, c)
		ids, delivered = append(ids, c.ReplayID), append(delivered, out.Delivered)
		refs, begins = append(refs, string(out.Ref)), append(begins, c.facts.LedgerBegins)
	}
	if len(left) == 0 {
		return nil, nil
	}
	now := s.leaves(items[0].run.bucket)
	tag, err := tx.Exec(ctx, `
		UPDATE redrive.replays r
		SET state = 'released', behind = false, released_at = $5, delivered_at = CASE WHEN u.delivered THEN $5::timestamptz END,
		    deadline_at = $6, target_ref = u.ref::jsonb, ledger_begins = u.begins
		FROM unnest($1::bigint[], $2::bool[], $3::text[], $4::int[]) AS u(id, delivered, ref, begins)
		WHERE r.id = u.id AND r.state IN ('pending', 'ready')`, ids, delivered, refs, begins, now, now.Add(items[0].Target.OutcomeWithin))
	if err != nil {
		return nil, fmt.Errorf("replay: mark released: %w", err)
	}
	if tag.RowsAffected() != int64(len(ids)) {
		return nil, fmt.Errorf("replay: mark released: %d of %d replays were there", tag.RowsAffected(), len(ids))
	}
	return left, nil
}
