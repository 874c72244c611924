package replay

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// room is how many more replays the destination takes now: below its
// concurrency, below one second's rate of what it doesn't hold yet, and only a
// few while its breaker is half open. The caller holds the destination, and
// only its holder lets replays out.
func (s *Service) room(ctx context.Context, tx pgx.Tx, d *destination, now time.Time, concurrency, perSecond int) (int, error) {
	switch d.Breaker {
	case "open":
		return 0, nil
	case "half_open":
		var out int
		err := tx.QueryRow(ctx, `
			SELECT count(*)
			FROM redrive.replays
			WHERE environment = $1 AND destination = $2 AND state = 'released' AND released_at BETWEEN $3 AND $4`,
			d.Environment, d.Name, d.ChangedAt, now).Scan(&out)
		if err != nil {
			return 0, fmt.Errorf("replay: tries at destination: %w", err)
		}
		d.Out, d.Undelivered = nil, nil
		// What hangs there since before counts, too.
		all, err := countOut(ctx, tx, d, `state = 'released'`, concurrency)
		return max(0, min(breakerTries-out, concurrency-int(all))), err
	}
	return s.closedRoom(ctx, tx, d, concurrency, perSecond)
}

func (s *Service) closedRoom(ctx context.Context, tx pgx.Tx, d *destination, concurrency, perSecond int) (int, error) {
	out, err := d.roomOf(ctx, tx, &d.Out, `state = 'released'`, concurrency)
	if err != nil || out == 0 {
		return 0, err
	}
	undelivered, err := d.roomOf(ctx, tx, &d.Undelivered, `state = 'released' AND delivered_at IS NULL`, perSecond)
	return min(out, undelivered), err
}

// roomOf is how far below the limit the bound is; where that may be too little,
// it counts, but never further than to the limit.
func (d *destination) roomOf(ctx context.Context, tx pgx.Tx, bound **int64, which string, limit int) (int, error) {
	if *bound == nil || **bound+releaseChunk > int64(limit) {
		n, err := countOut(ctx, tx, d, which, limit)
		if err != nil {
			return 0, err
		}
		if *bound = &n; n >= int64(limit) {
			*bound = nil // perhaps more
			return 0, nil
		}
	}
	return limit - int(**bound), nil
}

// countOut counts replays at a destination, at most up to the limit.
func countOut(ctx context.Context, tx pgx.Tx, d *destination, which string, limit int) (n int64, err error) {
	err = tx.QueryRow(ctx, `
		SELECT count(*)
		FROM (SELECT FROM redrive.replays WHERE environment = $1 AND destination = $2 AND `+which+` LIMIT $3) r`,
		d.Environment, d.Name, limit).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("replay: count what is out: %w", err)
	}
	return n, nil
}

// left adds what left in this round.
func (d *destination) left(out, undelivered int) {
	for _, n := range []struct {
		bound *int64
		more  int
	}{{d.Out, out}, {d.Undelivered, undelivered}} {
		if n.bound != nil {
			*n.bound += int64(n.more)
		}
	}
	d.changed = d.changed || out > 0
}
