package replay

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

const (
	behindChunk = 1000 // replays that one step of a sweep looks at
	behindSteps = 20   // steps of one sweep of a batch
)

// after are those of a claim that come after another of it: of a job, a key or
// an entity one leaves at a time, what is ready first, then the oldest.
func after(items []*claimed) map[int64]bool {
	behind := map[int64]bool{}
	first := map[string]*claimed{}
	for _, slot := range []func(c *claimed) string{
		func(c *claimed) string { return strconv.FormatInt(c.DeadJobID, 10) },
		func(c *claimed) string { return named("k", c.Key.Key, c.Key.Scope) },
		func(c *claimed) string { return named("e", c.Entity) },
	} {
		for _, c := range items {
			name := slot(c)
			if name == "" {
				continue
			}
			before := first[name]
			if before == nil {
				first[name] = c
			} else if c.before(before) {
				first[name], behind[before.ReplayID] = c, true
			} else {
				behind[c.ReplayID] = true
			}
		}
	}
	return behind
}

// named is a slot's name; empty when the first part is.
func named(kind string, parts ...string) string {
	if parts[0] == "" {
		return ""
	}
	return kind + "\x00" + strings.Join(parts, "\x00")
}

// before says which of two for one slot leaves first.
func (c *claimed) before(o *claimed) bool {
	if (c.State == "ready") != (o.State == "ready") {
		return c.State == "ready"
	}
	if !c.OrderAt.Equal(o.OrderAt) {
		return c.OrderAt.Before(o.OrderAt)
	}
	return c.ReplayID < o.ReplayID
}

// waiting adds those of a claim whose job, key or entity another replay holds.
func waiting(ctx context.Context, tx pgx.Tx, items []*claimed, held map[int64]bool) error {
	ids := make([]int64, len(items))
	for i, c := range items {
		ids[i] = c.ReplayID
	}
	rows, err := tx.Query(ctx, `
		SELECT r.id
		FROM redrive.replays r
		WHERE r.id = ANY($1) AND r.state = 'pending' AND (
			EXISTS (
				SELECT FROM redrive.replays a
				WHERE a.dead_job_id = r.dead_job_id AND a.state IN ('ready', 'released') AND a.id <> r.id)
			OR (r.idempotency_key <> '' AND EXISTS (
				SELECT FROM redrive.replays a
				WHERE a.environment = r.environment AND a.key_scope = r.key_scope AND a.idempotency_key = r.idempotency_key
				  AND a.idempotency_key <> '' AND a.state IN ('ready', 'released') AND a.id <> r.id))
			OR (r.entity <> '' AND EXISTS (
				SELECT FROM redrive.replays a
				WHERE a.environment = r.environment AND a.entity = r.entity AND a.entity <> ''
				  AND a.state IN ('ready', 'released') AND a.id <> r.id)))`, ids)
	if err != nil {
		return fmt.Errorf("replay: look who holds: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return fmt.Errorf("replay: look who holds: %w", err)
	}
	for _, id := range found {
		held[id] = true
	}
	return nil
}

// markBehind puts replays behind the one that holds their job, key or entity.
func markBehind(ctx context.Context, tx pgx.Tx, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, `UPDATE redrive.replays SET behind = true WHERE id = ANY($1) AND state = 'pending'`, ids)
	if err != nil {
		return fmt.Errorf("replay: put behind: %w", err)
	}
	return nil
}

// Unblock lets replays go on that wait behind nothing any more. Who ends lets
// the next one go; this finds those whose holder ended at the very moment when
// they were put behind it, or before their job was taken.
func (s *Service) Unblock(ctx context.Context) (int64, error) {
	rows, err := s.Pool.Query(ctx, `
		SELECT u.batch_id
		FROM redrive.runs u
		WHERE u.live AND u.due_at <= $1
		  AND EXISTS (SELECT FROM redrive.replays r WHERE r.batch_id = u.batch_id AND r.state = 'pending' AND r.behind)`, s.now())
	if err != nil {
		return 0, fmt.Errorf("replay: batches that wait: %w", err)
	}
	batches, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return 0, fmt.Errorf("replay: batches that wait: %w", err)
	}
	var freed int64
	for _, batch := range batches {
		n, err := s.unblock(ctx, batch)
		freed += n
		if err != nil {
			return freed, err
		}
	}
	return freed, nil
}

func (s *Service) unblock(ctx context.Context, batch int64) (freed int64, err error) {
	after := s.looked().behind(batch)
	for range behindSteps {
		last, n, err := s.unblockStep(ctx, batch, after)
		freed += n
		if err != nil {
			return freed, err
		}
		if after = last; last == 0 {
			break
		}
	}
	s.looked().setBehind(batch, after)
	return freed, nil
}

// unblockStep looks at a bounded number; last is 0 at the end of the batch.
func (s *Service) unblockStep(ctx context.Context, batch, after int64) (last, freed int64, err error) {
	err = s.Pool.QueryRow(ctx, `
		WITH w AS MATERIALIZED (
			SELECT id, batch_id, dead_job_id, environment, key_scope, idempotency_key, entity, order_at
			FROM redrive.replays
			WHERE batch_id = $1 AND wave IN (0, 1) AND state = 'pending' AND behind AND id > $2
			ORDER BY id
			LIMIT $3),
		free AS (
			SELECT w.id
			FROM w
			WHERE NOT EXISTS (
				SELECT FROM redrive.replays a
				WHERE a.dead_job_id = w.dead_job_id AND a.state IN ('ready', 'released'))
			  AND (w.idempotency_key = '' OR NOT EXISTS (
				SELECT FROM redrive.replays a
				WHERE a.environment = w.environment AND a.key_scope = w.key_scope AND a.idempotency_key = w.idempotency_key
				  AND a.idempotency_key <> '' AND a.state IN ('ready', 'released')))
			  AND (w.entity = '' OR (NOT EXISTS (
				SELECT FROM redrive.replays a
				WHERE a.environment = w.environment AND a.entity = w.entity AND a.entity <> '' AND a.state IN ('ready', 'released'))
			  AND NOT EXISTS (
				SELECT FROM redrive.replays a
				WHERE a.batch_id = w.batch_id AND a.entity = w.entity AND a.entity <> ''
				  AND (a.order_at, a.id) < (w.order_at, w.id)
				  AND (a.state = 'pending' OR (a.state = 'planned' AND a.verdict = 'eligible')))))),
		freed AS (
			UPDATE redrive.replays
			SET behind = false
			WHERE id IN (SELECT r.id FROM redrive.replays r JOIN free USING (id) WHERE r.state = 'pending' AND r.behind FOR UPDATE OF r SKIP LOCKED)
			RETURNING id)
		SELECT CASE WHEN (SELECT count(*) FROM w) = $3 THEN (SELECT max(id) FROM w) ELSE 0 END, (SELECT count(*) FROM freed)`,
		batch, after, behindChunk).Scan(&last, &freed)
	if err != nil {
		return 0, 0, fmt.Errorf("replay: let go on: %w", err)
	}
	return last, freed, nil
}
