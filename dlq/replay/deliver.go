package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq/ledger"
	"github.com/redrive-dlq/redrive/dlq/problem"
)

// ErrHeld says that a replay may not be delivered now, and that an earlier try
// may have delivered it: it can't be taken back. Ask again.
var ErrHeld = errors.New("replay: held back")

// Undelivered returns a released replay that its target doesn't hold yet, with
// its payload; ok is false when there is nothing to deliver (it ended, was
// delivered, or was recalled). Batch, holds and ledger are checked once more.
// tried says that an earlier try may have delivered it. Errors: ErrHeld.
func (s *Service) Undelivered(ctx context.Context, replayID int64, tried bool) (it Item, payload []byte, ok bool, err error) {
	err = pgx.BeginFunc(ctx, s.Pool, func(tx pgx.Tx) error {
		it, payload, ok, err = s.undelivered(ctx, tx, replayID, tried)
		return err
	})
	return it, payload, ok, err
}

// Claim is Undelivered that also writes, committed on return, that the replay
// is on its way: for targets whose delivery is the execution itself (HTTP). A
// claimed replay is never sent again unless Unclaim says that it provably
// wasn't accepted.
func (s *Service) Claim(ctx context.Context, replayID int64) (it Item, payload []byte, ok bool, err error) {
	err = pgx.BeginFunc(ctx, s.Pool, func(tx pgx.Tx) error {
		it, payload, ok, err = s.undelivered(ctx, tx, replayID, false)
		if err != nil || !ok {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE redrive.replays SET delivered_at = $2 WHERE id = $1`, replayID, s.now())
		return err
	})
	return it, payload, ok, err
}

// Unclaim takes a claim back after the destination provably didn't accept it
// (no connection was made). The breaker hears of it: while it is open, the
// replay goes back to those that wait.
func (s *Service) Unclaim(ctx context.Context, replayID int64) error {
	_, err := s.Pool.Exec(ctx, `
		UPDATE redrive.replays
		SET delivered_at = NULL, refusals = refusals + 1, refused_at = coalesce($2, clock_timestamp())
		WHERE id = $1 AND state = 'released'`, replayID, s.shared())
	if err != nil {
		return fmt.Errorf("replay: unclaim: %w", err)
	}
	return nil
}

// MarkDelivered writes that the target holds the replay and what its outcome
// is found by.
func (s *Service) MarkDelivered(ctx context.Context, replayID int64, ref json.RawMessage) error {
	_, err := s.Pool.Exec(ctx, `
		UPDATE redrive.replays
		SET delivered_at = $2, target_ref = $3
		WHERE id = $1 AND state = 'released'`, replayID, s.now(), ref)
	if err != nil {
		return fmt.Errorf("replay: mark delivered: %w", err)
	}
	return nil
}

func (s *Service) undelivered(ctx context.Context, tx pgx.Tx, replayID int64, tried bool) (it Item, payload []byte, ok bool, err error) {
	var k ledger.Key
	err = tx.QueryRow(ctx, `
		SELECT environment, key_scope, idempotency_key FROM redrive.replays WHERE id = $1`, replayID).
		Scan(&k.Environment, &k.Scope, &k.Key)
	if errors.Is(err, pgx.ErrNoRows) {
		return it, nil, false, nil
	}
	if err != nil {
		return it, nil, false, fmt.Errorf("replay: deliver: %w", err)
	}
	if err := ledger.GiveWay(ctx, tx); err != nil {
		return it, nil, false, err
	}
	if err := ledger.Lock(ctx, tx, k); err != nil {
		return it, nil, false, err
	}
	items, err := s.items(ctx, tx, `
		WHERE r.id = @id AND r.state = 'released' AND r.delivered_at IS NULL AND r.deadline_at > @now
		FOR UPDATE OF r`, pgx.NamedArgs{"id": replayID, "now": s.now()})
	if err != nil || len(items) == 0 {
		return it, nil, false, err
	}
	it = items[0]
	if free, err := s.stillFree(ctx, tx, it, tried); err != nil || !free {
		return it, nil, false, err
	}
	row, found, err := ledger.Of(ctx, tx, k)
	if err != nil {
		return it, nil, false, err
	}
	if found && row.State == "done" && !it.Proof {
		return it, nil, false, s.end(ctx, tx, it, End{Outcome: AlreadyDone, Code: KeyDone, EffectID: row.EffectID,
			Detail: "the effect of this key was done before it was delivered"})
	}
	j, err := readJob(ctx, tx, it.DeadJobID, "")
	if problem.Is(err, problem.NotFound) {
		return it, nil, false, s.end(ctx, tx, it, jobGone)
	}
	if err != nil {
		return it, nil, false, err
	}
	it.SourceRef, it.AttemptCount, it.Queue = j.SourceRef, j.AttemptCount, j.Queue
	payload, err = s.Payload(ctx, tx, it.DeadJobID, it.PayloadVersion)
	if errors.Is(err, errNoPayload) {
		return it, nil, false, s.end(ctx, tx, it, payloadGone)
	}
	return it, payload, err == nil, err
}
