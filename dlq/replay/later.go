package replay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// How long a replay that can't leave now waits at least: one whose key or job a
// worker holds only goes behind those that are due already.
const (
	busyPause  = 0
	faultPause = 30 * time.Second
)

// errBusy says that a worker's transaction holds the key or the job.
var errBusy = errors.New("replay: key or job is busy")

// How a replay ends that can never leave.
var (
	jobGone     = End{Outcome: Skipped, Code: "job_gone", Detail: "not replayed because the job isn't stored any more"}
	payloadGone = End{Outcome: Skipped, Code: PayloadMissing, Detail: "not replayed because the payload isn't stored any more"}
)

// postpone moves a ready replay behind those that are due. It stays the head
// of its entity and key.
func (s *Service) postpone(ctx context.Context, tx pgx.Tx, it Item, pause time.Duration) error {
	_, err := tx.Exec(ctx, `
		UPDATE redrive.replays SET due_at = $2 WHERE id = $1 AND state = 'ready'`, it.ReplayID, s.now().Add(pause))
	if err != nil {
		return fmt.Errorf("replay: postpone: %w", err)
	}
	return nil
}

// lockedOrGone tells a job that somebody holds from one that was purged, whose
// replay ends.
func (s *Service) lockedOrGone(ctx context.Context, tx pgx.Tx, it Item) error {
	var there bool
	err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM redrive.dead_jobs WHERE id = $1)`, it.DeadJobID).Scan(&there)
	if err != nil {
		return fmt.Errorf("replay: look for job: %w", err)
	}
	if there {
		return errBusy
	}
	return s.end(ctx, tx, it, jobGone)
}

func hasPayload(ctx context.Context, tx pgx.Tx, it Item) (kept bool, err error) {
	err = tx.QueryRow(ctx, `
		SELECT EXISTS (
			SELECT FROM redrive.payloads
			WHERE dead_job_id = $1 AND version = $2 AND bytes IS NOT NULL AND encoding <> 'none')`,
		it.DeadJobID, it.PayloadVersion).Scan(&kept)
	if err != nil {
		return false, fmt.Errorf("replay: look for payload: %w", err)
	}
	return kept, nil
}
