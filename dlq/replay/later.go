package replay

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq/ledger"
)

// How long a replay that can't leave now waits at least. One whose key or job a
// worker holds lets those behind it go first; a single only goes behind those
// that are due already.
const (
	busyPause  = 2 * releaseEvery
	faultPause = 30 * time.Second
	// maxFaults is how often a hand-over may fail: a fault that doesn't go away
	// must not keep a batch open for ever.
	maxFaults = 5
)

// How a replay ends that can never leave.
var (
	jobGone     = End{Outcome: Skipped, Code: "job_gone", Detail: "not replayed because the job isn't stored any more"}
	payloadGone = End{Outcome: Skipped, Code: PayloadMissing, Detail: "not replayed because the payload isn't stored any more"}
)

// later puts off a replay whose turn failed: nothing of it has left. One fault
// harms only itself.
func (s *Service) later(ctx context.Context, tx pgx.Tx, it Item, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return err
	case ledger.IsBusy(err):
		return s.postpone(ctx, tx, []int64{it.ReplayID})
	case isHeld(err):
		return markBehind(ctx, tx, []int64{it.ReplayID})
	}
	s.log().WarnContext(ctx, "replay not released, it is tried again later", "replay", it.ReplayID, "error", err)
	return s.fault(ctx, tx, it)
}

// fault counts a failed hand-over; after a few the replay ends.
func (s *Service) fault(ctx context.Context, tx pgx.Tx, it Item) error {
	var faults int
	err := tx.QueryRow(ctx, `
		UPDATE redrive.replays
		SET faults = faults + 1, due_at = $2
		WHERE id = $1
		RETURNING faults`, it.ReplayID, s.now().Add(faultPause)).Scan(&faults)
	if err != nil {
		return fmt.Errorf("replay: count fault: %w", err)
	}
	if faults < maxFaults {
		return nil
	}
	return s.endOne(ctx, tx, it, End{Outcome: Skipped, Code: "release_failed",
		Detail: fmt.Sprintf("not replayed because handing it over failed %d times", faults)})
}

// postpone moves replays that have not left behind those that are due. They
// keep what they hold.
func (s *Service) postpone(ctx context.Context, tx pgx.Tx, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	now := s.now()
	_, err := tx.Exec(ctx, `
		UPDATE redrive.replays r
		SET due_at = CASE b.kind WHEN 'single' THEN $2::timestamptz ELSE $3 END
		FROM redrive.batches b
		WHERE r.id = ANY($1) AND r.state IN ('pending', 'ready') AND b.id = r.batch_id`, ids, now, now.Add(busyPause))
	if err != nil {
		return fmt.Errorf("replay: postpone: %w", err)
	}
	return nil
}

// putOff postpones replays whose key or job somebody holds; of one whose job was
// purged the replay ends.
func (s *Service) putOff(ctx context.Context, tx pgx.Tx, items []*claimed) error {
	if len(items) == 0 {
		return nil
	}
	all := make([]Item, len(items))
	for i, c := range items {
		all[i] = c.Item
	}
	kept, err := storedJobs(ctx, tx, all)
	if err != nil {
		return err
	}
	var busy []int64
	for _, c := range items {
		if kept[c.DeadJobID] {
			busy = append(busy, c.ReplayID)
		} else if err := s.endOne(ctx, tx, c.Item, jobGone); err != nil {
			return err
		}
	}
	return s.postpone(ctx, tx, busy)
}
