package replay

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/audit"
)

// ageChunk is how many requests one sweep lets age out.
const ageChunk = 100

// AgeRequests cancels batches that waited for a second person too long: what
// was agreed to a day ago isn't what anybody means now. It returns how many.
func (s *Service) AgeRequests(ctx context.Context) (n int, err error) {
	err = pgx.BeginFunc(ctx, s.Pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			SELECT id
			FROM redrive.batches
			WHERE state = 'waiting' AND approve_until <= $1
			ORDER BY id
			LIMIT $2
			FOR UPDATE SKIP LOCKED`, s.now(), ageChunk)
		if err != nil {
			return fmt.Errorf("replay: old requests: %w", err)
		}
		ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		if err != nil {
			return fmt.Errorf("replay: old requests: %w", err)
		}
		for _, id := range ids {
			if err := s.ageOut(ctx, tx, id); err != nil {
				return err
			}
		}
		n = len(ids)
		return nil
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

func (s *Service) ageOut(ctx context.Context, tx pgx.Tx, id int64) error {
	b, err := readBatch(ctx, tx, id, "")
	if err != nil {
		return err
	}
	const why = "nobody approved it within 24 hours"
	_, err = tx.Exec(ctx, `
		UPDATE redrive.batches
		SET state = 'cancelled', end_reason = $2, finished_at = $3
		WHERE id = $1`, id, why, s.now())
	if err != nil {
		return fmt.Errorf("replay: age out: %w", err)
	}
	details := map[string]any{"review_hash": b.ReviewHash, "eligible": b.Eligible, "asked_by": b.ConfirmedBy}
	_, err = audit.Append(ctx, tx, audit.SystemActor(), b.entry("batch.expire", why, details, s.now()))
	return err
}
