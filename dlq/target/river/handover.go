package river

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/redrive-dlq/redrive/dlq/replay"
)

// HandOverArgs is Redrive's own job for a replay that goes to a River in
// another database: it carries an id only.
type HandOverArgs struct {
	ReplayID int64 `json:"replay_id"`
}

// Kind implements river.JobArgs.
func (HandOverArgs) Kind() string { return "redrive_river_hand_over" }

// HandOverWorker does the guarded retry in the other database. The row's
// marker makes it at most one release while the row exists, however often this
// job runs.
type HandOverWorker struct {
	river.WorkerDefaults[HandOverArgs]
	Target  *Target
	Service *replay.Service
}

// heldPause is how soon a hand-over that is held back is tried again.
const heldPause = time.Second

// Work implements river.Worker.
func (w *HandOverWorker) Work(ctx context.Context, job *river.Job[HandOverArgs]) error {
	it, payload, ok, err := w.Service.Undelivered(ctx, job.Args.ReplayID, job.Attempt > 1)
	if errors.Is(err, replay.ErrHeld) {
		return river.JobSnooze(heldPause)
	}
	if err != nil || !ok {
		return err
	}
	c, refusal := w.Target.client(it)
	if refusal != nil {
		return w.refuse(ctx, it, *refusal)
	}
	var r ref
	err = pgx.BeginFunc(ctx, c.Pool, func(tx pgx.Tx) error {
		gone, err := c.gone(ctx, tx, c.origin(it).RiverID)
		if err != nil {
			return err
		}
		if gone && job.Attempt > 1 {
			return errGone // an earlier try may have made a row of its own
		}
		r, refusal, err = c.reenter(ctx, tx, it, payload)
		return err
	})
	switch {
	case errors.Is(err, errGone):
		_, err = w.Service.Record(ctx, it.ReplayID, replay.End{Outcome: replay.Unconfirmed, Code: "gone", EffectUnknown: true,
			Detail: "the row is gone from River and an earlier hand-over may have run"})
		return err
	case err != nil:
		return fmt.Errorf("hand over replay %d: %w", it.ReplayID, err)
	case refusal != nil:
		return w.refuse(ctx, it, *refusal)
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return w.Service.MarkDelivered(ctx, it.ReplayID, raw)
}

// NextRetry implements river.Worker: only hand-overs are retried, soon and in
// small steps.
func (w *HandOverWorker) NextRetry(job *river.Job[HandOverArgs]) time.Time {
	return time.Now().Add(time.Duration(min(job.Attempt, 30)) * time.Second)
}

var errGone = errors.New("row gone")

func (c *Client) gone(ctx context.Context, tx pgx.Tx, id int64) (bool, error) {
	var exists bool
	err := tx.QueryRow(ctx, `
		SELECT EXISTS (SELECT FROM `+pgx.Identifier{c.Schema, "river_job"}.Sanitize()+` WHERE id = $1)`, id).Scan(&exists)
	return !exists, err
}

func (w *HandOverWorker) refuse(ctx context.Context, it replay.Item, r replay.Refusal) error {
	_, err := w.Service.Record(ctx, it.ReplayID, replay.End{Outcome: replay.Skipped, Code: r.Code, Detail: "not replayed because " + r.Detail})
	return err
}
