package replay

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/audit"
	"github.com/redrive-dlq/redrive/dlq/jobtype"
)

// stopAbove is the share of failures, in percent, above which a batch of the
// type stops by itself.
func (s *Service) stopAbove(jobType string) int {
	if t, ok := s.Types().Type(jobType); ok {
		return t.StopAtFailurePct()
	}
	return jobtype.DefaultStopAtFailurePct
}

// stopRun pauses a batch that fails too often. What is ready stays so; what is
// out goes on to its outcome.
func (s *Service) stopRun(ctx context.Context, tx pgx.Tx, b *bucket, u *run, bad, judged int64, limit int) error {
	why := fmt.Sprintf("%d of %d failed (limit %d %%)", bad, judged, limit)
	return s.pauseRun(ctx, tx, b, u, "failures", why, map[string]any{"failed": bad, "judged": judged, "limit_pct": limit})
}

// pauseRun pauses a batch by the system's own decision.
func (s *Service) pauseRun(ctx context.Context, tx pgx.Tx, b *bucket, u *run, kind, why string, details map[string]any) error {
	u.closed = true
	_, err := tx.Exec(ctx, `
		UPDATE redrive.batches
		SET state = 'paused', pause_kind = $2, pause_why = $3, paused_by = 'redrive', paused_at = $4
		WHERE id = $1 AND state IN ('scheduled', 'running')`, u.BatchID, kind, why, s.now())
	if err != nil {
		return fmt.Errorf("replay: pause batch: %w", err)
	}
	if err := setLive(ctx, tx, u.BatchID, false); err != nil {
		return err
	}
	details["kind"] = kind
	_, err = audit.Append(ctx, tx, audit.SystemActor(), u.batch(b).entry("batch.stop", why, details, s.now()))
	return err
}

// catalogueWhy says why the catalogue of now forbids what was confirmed; empty
// when it doesn't.
func (s *Service) catalogueWhy(b batchRow) string {
	t, why := s.typeNow(b)
	if why == "" && !t.Idempotent() && !b.AcceptRepeat {
		return fmt.Sprintf("nothing keeps %s from having its effect twice any more", b.JobType)
	}
	return why
}
