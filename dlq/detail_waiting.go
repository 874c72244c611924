package dlq

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Waiting is the replay that is ordered and has not left, which can still be
// taken back; nil when there is none.
func (d *Details) Waiting() *DetailReplay {
	for i := len(d.Replays) - 1; i >= 0; i-- {
		if r := &d.Replays[i]; r.State == "pending" || r.State == "ready" {
			return r
		}
	}
	return nil
}

// DetailWaiting reads the replay of a job that has not left; nil when there is
// none. Whether somebody may know of the job is the caller's business.
func DetailWaiting(ctx context.Context, db DB, deadJobID int64) (*DetailReplay, error) {
	var r DetailReplay
	err := db.QueryRow(ctx, `
		SELECT id, state, due_at
		FROM redrive.replays
		WHERE dead_job_id = $1 AND state IN ('pending', 'ready')
		ORDER BY id DESC
		LIMIT 1`, deadJobID).Scan(&r.ID, &r.State, &r.DueAt)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("dlq: waiting replay: %w", err)
	}
	return &r, nil
}

// waits says what a replay that has not left waits for.
func (r *DetailReplay) waits(entity string, now time.Time) string {
	switch {
	case r.Scheduled(now):
		return "a replay is scheduled for " + r.DueAt.UTC().Format("2006-01-02 15:04") + " UTC"
	case r.State == "pending" && entity != "":
		return "a replay is ordered and waits for its turn among those of " + cut(oneLine(entity), 120)
	}
	return "a replay is ordered and leaves as soon as the limits of its type allow"
}

// Scheduled reports whether the replay is due only later.
func (r *DetailReplay) Scheduled(now time.Time) bool { return r.DueAt != nil && r.DueAt.After(now) }
