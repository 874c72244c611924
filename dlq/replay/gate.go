package replay

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// gate looks at how the run has gone so far: it stops it, lets the rest follow
// a canary that has passed, or leaves it as it is.
func (s *Service) gate(ctx context.Context, tx pgx.Tx, b *bucket, u *run) error {
	if u.Kind != "batch" {
		return nil
	}
	good, bad, err := u.judged(ctx, tx)
	if err != nil {
		return err
	}
	limit := s.stopAbove(b.JobType)
	above := func(good int64) bool { return bad*100 > int64(limit)*(good+bad) }
	if min(u.Already, good) > 0 && (u.Wave == 0 || above(max(0, good-u.Already))) {
		never, err := u.neverRan(ctx, tx)
		if err != nil {
			return err
		}
		good = max(0, good-never)
	}
	over := above(good)
	least := int64(5)
	if u.Canary > 0 {
		least = min(least, int64(u.Canary))
	}
	if over && good+bad >= least {
		return s.stopRun(ctx, tx, b, u, bad, good+bad, limit)
	}
	if u.Wave != 0 {
		return nil
	}
	ended, err := u.canaryEnded(ctx, tx)
	switch {
	case err != nil || !ended:
		return err
	case over:
		return s.stopRun(ctx, tx, b, u, bad, good+bad, limit)
	case good+bad == 0 && !u.Activated:
		return nil
	case good+bad == 0:
		return s.replaceCanary(ctx, tx, b, u)
	}
	return s.pass(ctx, tx, b, u, bad, good+bad)
}

// judged counts the outcomes of what was released since the run is watched.
func (u *run) judged(ctx context.Context, tx pgx.Tx) (good, bad int64, err error) {
	good, bad = u.Good-u.BaseGood, u.Bad-u.BaseBad
	if len(u.Stragglers) == 0 {
		return good, bad, nil
	}
	var oldGood, oldBad int64
	err = tx.QueryRow(ctx, `
		SELECT count(*) FILTER (WHERE outcome IN ('succeeded', 'already_done')),
		       count(*) FILTER (WHERE outcome IN ('failed', 'unconfirmed'))
		FROM redrive.replays
		WHERE id = ANY($1) AND state = 'ended'`, u.Stragglers).Scan(&oldGood, &oldBad)
	if err != nil {
		return 0, 0, fmt.Errorf("replay: outcomes from before: %w", err)
	}
	return max(0, good-oldGood), max(0, bad-oldBad), nil
}

// neverRan counts those whose effect was done elsewhere before they were
// delivered, since the run is watched: they say nothing of how it goes.
func (u *run) neverRan(ctx context.Context, tx pgx.Tx) (n int64, err error) {
	err = tx.QueryRow(ctx, `
		SELECT count(*)
		FROM redrive.replays
		WHERE batch_id = $1 AND outcome = 'already_done' AND delivered_at IS NULL AND id <> ALL($2)
		  AND outcome_at >= coalesce((SELECT watch_from FROM redrive.runs WHERE batch_id = $1), '-infinity')`, u.BatchID, u.Stragglers).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("replay: outcomes of what never ran: %w", err)
	}
	return n, nil
}
