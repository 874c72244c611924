package replay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/audit"
)

// The breaker opens when of the last outcomes at a destination in a short while
// many, and at least half, say that it is down or drowning.
const (
	breakerWindow   = 2 * time.Minute
	breakerLast     = 20
	breakerFailures = 5
	breakerPause    = 15 * time.Second // doubled by each opening in a row …
	breakerLongest  = 10 * time.Minute // … up to this
	breakerTries    = 3                // at most so many are out while it is half open
)

// destination is the endpoint behind a target, held by a round.
type destination struct {
	Environment  string
	Name         string
	Breaker      string // closed, open, half_open
	FailingSince *time.Time
	RetryAt      *time.Time
	Openings     int
	Why          string
	ChangedAt    time.Time
	Out          *int64 // at most so many are out; nil: not known
	Undelivered  *int64 // at most so many of them aren't delivered; nil: not known

	changed bool
}

// takeDestination locks the destination; held is false when another type's
// round is at it.
func (s *Service) takeDestination(ctx context.Context, tx pgx.Tx, environment, name string) (d *destination, held bool, err error) {
	for range 2 {
		rows, err := tx.Query(ctx, `
			SELECT environment, name, breaker, failing_since, retry_at, openings, why, changed_at, out_bound AS out,
			       undelivered_bound AS undelivered
			FROM redrive.destinations
			WHERE environment = $1 AND name = $2
			FOR UPDATE SKIP LOCKED`, environment, name)
		if err != nil {
			return nil, false, fmt.Errorf("replay: lock destination: %w", err)
		}
		d, err = pgx.CollectExactlyOneRow(rows, pgx.RowToAddrOfStructByName[destination])
		if err == nil {
			return d, true, nil
		}
		if !errors.Is(err, pgx.ErrNoRows) {
			return nil, false, fmt.Errorf("replay: lock destination: %w", err)
		}
		tag, err := tx.Exec(ctx, `
			INSERT INTO redrive.destinations (environment, name, changed_at) VALUES ($1, $2, $3)
			ON CONFLICT DO NOTHING`, environment, name, s.now())
		if err != nil {
			return nil, false, fmt.Errorf("replay: destination: %w", err)
		}
		if tag.RowsAffected() == 0 {
			return nil, false, nil
		}
	}
	return nil, false, nil
}

// judged is an outcome, or connections that weren't taken, as the breaker reads it.
type judged struct {
	Down bool // the destination is down or drowning
	N    int  // how many say so
	At   time.Time
}

// watch reads the last outcomes and refused connections, which are written
// without a lock of ours, and moves the breaker. Outcomes of what left before the last change don't count.
// now is by the clock of the limits, by which replays leave: that of a process
// may be another.
func (s *Service) watch(ctx context.Context, tx pgx.Tx, d *destination, now time.Time) error {
	d.setBack(now)
	if d.Breaker == "open" {
		if d.RetryAt != nil && now.Before(*d.RetryAt) {
			return nil
		}
		d.set("half_open", now)
		return nil
	}
	rows, err := tx.Query(ctx, `
		SELECT *
		FROM ((
			SELECT outcome IN ('failed', 'unconfirmed') AND (new_category IN ('transient', 'throttled')
			           OR (outcome = 'unconfirmed' AND outcome_code IN ('no_answer', 'deadline'))) AS down, 1 AS n, outcome_at AS at
			FROM redrive.replays
			WHERE environment = $1 AND destination = $2 AND outcome IN ('succeeded', 'already_done', 'failed', 'unconfirmed')
			  AND outcome_at > $3 AND coalesce(released_at, outcome_at) >= $4
			ORDER BY outcome_at DESC
			LIMIT $5)
		UNION ALL (
			SELECT true, refusals, refused_at
			FROM redrive.replays
			WHERE environment = $1 AND destination = $2 AND state = 'released' AND delivered_at IS NULL
			  AND refused_at IS NOT NULL AND refused_at > $3 AND released_at >= $4
			ORDER BY refused_at DESC
			LIMIT $5)) j
		ORDER BY at DESC
		LIMIT $5`, d.Environment, d.Name, now.Add(-breakerWindow), d.ChangedAt, breakerLast)
	if err != nil {
		return fmt.Errorf("replay: outcomes at destination: %w", err)
	}
	last, err := pgx.CollectRows(rows, pgx.RowToStructByName[judged])
	if err != nil {
		return fmt.Errorf("replay: outcomes at destination: %w", err)
	}
	return s.move(ctx, tx, d, last, now)
}

// move opens or closes the breaker by the last outcomes, the newest first.
func (s *Service) move(ctx context.Context, tx pgx.Tx, d *destination, last []judged, now time.Time) error {
	down, all := 0, 0
	var since time.Time
	for _, j := range last {
		all += j.N
		if j.Down {
			down += j.N
			since = j.At
		}
	}
	switch {
	case d.Breaker == "half_open" && down < all:
		d.Openings, d.FailingSince, d.RetryAt, d.Why = 0, nil, nil, ""
		d.set("closed", now)
		return s.tell(ctx, tx, d, "breaker.close", "a replay came through")
	case d.Breaker == "half_open" && down > 0:
		d.Why = "a replay that tried it failed"
		return s.open(ctx, tx, d, *orNow(d.FailingSince, since), now)
	case d.Breaker == "closed" && down >= breakerFailures && 2*down >= all:
		d.Why = fmt.Sprintf("%d of the last %d deliveries failed", down, all)
		return s.open(ctx, tx, d, since, now)
	}
	return nil
}

func orNow(t *time.Time, now time.Time) *time.Time {
	if t != nil {
		return t
	}
	return &now
}

func (s *Service) open(ctx context.Context, tx pgx.Tx, d *destination, since, now time.Time) error {
	retry := now.Add(pauseAfter(d.Openings))
	d.Openings, d.FailingSince, d.RetryAt = d.Openings+1, &since, &retry
	d.set("open", now)
	return s.tell(ctx, tx, d, "breaker.open", d.Why)
}

// pauseAfter is how long the breaker stays open after so many openings in a row.
func pauseAfter(openings int) time.Duration {
	return min(breakerLongest, breakerPause<<min(openings, 10))
}

// setBack brings a change that lies ahead back to now: the clock was ahead then,
// and the breaker would neither try again nor hear of its tries until it is
// there again.
func (d *destination) setBack(now time.Time) {
	if !d.ChangedAt.After(now) {
		return
	}
	d.ChangedAt, d.changed = now, true
	if d.RetryAt != nil {
		retry := now.Add(pauseAfter(d.Openings - 1))
		d.RetryAt = &retry
	}
}

func (d *destination) set(breaker string, now time.Time) {
	d.Breaker, d.ChangedAt, d.changed = breaker, now, true
}

// tell writes down that the breaker stopped releases, or lets them go on.
func (s *Service) tell(ctx context.Context, tx pgx.Tx, d *destination, action, why string) error {
	details := map[string]any{"openings": d.Openings}
	if d.RetryAt != nil {
		details["retry_at"] = d.RetryAt.UTC().Format(time.RFC3339)
	}
	_, err := audit.Append(ctx, tx, audit.SystemActor(), audit.Entry{
		Action: action, Object: audit.Object{Kind: "destination", ID: d.Name}, Environment: d.Environment, Reason: why, Details: details, At: s.now(),
	})
	return err
}

// put queues the destination's new state.
func (d *destination) put(batch *pgx.Batch) {
	batch.Queue(`
		UPDATE redrive.destinations
		SET breaker = $3, failing_since = $4, retry_at = $5, openings = $6, why = $7, changed_at = $8,
		    opened_at = CASE WHEN $3 = 'open' AND breaker <> 'open' THEN $8 ELSE opened_at END,
		    out_bound = $9, undelivered_bound = $10
		WHERE environment = $1 AND name = $2`, d.Environment, d.Name, d.Breaker, d.FailingSince, d.RetryAt, d.Openings, d.Why, d.ChangedAt,
		d.Out, d.Undelivered)
}

// breakerOpen says whether nothing may be delivered to the replay's destination.
func breakerOpen(ctx context.Context, tx pgx.Tx, it Item) (open bool, err error) {
	err = tx.QueryRow(ctx, `
		SELECT EXISTS (SELECT FROM redrive.destinations WHERE environment = $1 AND name = $2 AND breaker = 'open')`,
		it.Environment, it.Target.Destination()).Scan(&open)
	if err != nil {
		return false, fmt.Errorf("replay: breaker of destination: %w", err)
	}
	return open, nil
}
