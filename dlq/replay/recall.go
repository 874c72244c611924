package replay

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// stillFree checks batch, holds and breaker at the last moment before a replay is
// delivered: they act on what was released, too. What has not left is taken back,
// or ends with its cancelled batch. The caller holds the key and the replay.
func (s *Service) stillFree(ctx context.Context, tx pgx.Tx, it Item, tried bool) (bool, error) {
	var state string
	err := tx.QueryRow(ctx, `SELECT state FROM redrive.batches WHERE id = $1`, it.BatchID).Scan(&state)
	if err != nil {
		return false, fmt.Errorf("replay: state of batch: %w", err)
	}
	if state == "cancelling" || state == "cancelled" {
		return false, s.end(ctx, tx, it, cancelledEnd(tried))
	}
	hold, err := HeldBy(ctx, tx, it.Environment, it.JobType, it.Target.Destination())
	if err != nil {
		return false, err
	}
	open, err := breakerOpen(ctx, tx, it)
	if err != nil {
		return false, err
	}
	switch {
	case state == "running" && hold == nil && !open:
		return true, nil
	case tried:
		return false, ErrHeld
	}
	return false, s.recall(ctx, tx, it)
}

// cancelledEnd is how a replay ends that was out, undelivered, when its batch
// was cancelled.
func cancelledEnd(tried bool) End {
	if tried {
		return End{Outcome: Unconfirmed, Code: "cancelled_late", EffectUnknown: true,
			Detail: "its batch was cancelled while it was handed over, and nobody knows whether an earlier try had delivered it"}
	}
	return End{Outcome: Cancelled, Code: "cancelled", Detail: "cancelled with its batch before it was delivered"}
}

// recall takes back a released replay that provably has not left. It waits its
// turn again and lets go what it held: its batch may be paused for days, and
// what waits behind it in others may be their canary.
func (s *Service) recall(ctx context.Context, tx pgx.Tx, it Item) error {
	_, err := tx.Exec(ctx, `
		WITH u AS (UPDATE redrive.runs SET live = true WHERE batch_id = $2 AND NOT live
		               AND EXISTS (SELECT FROM redrive.batches WHERE id = $2 AND kind = 'single'))
		UPDATE redrive.replays
		SET state = 'pending', released_at = NULL, delivered_at = NULL, deadline_at = NULL, target_ref = '{}', refusals = 0, refused_at = NULL
		WHERE id = $1 AND state = 'released'`, it.ReplayID, it.BatchID)
	if err != nil {
		return fmt.Errorf("replay: recall: %w", err)
	}
	return wake(ctx, tx, it)
}
