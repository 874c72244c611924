package river

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/redrive-dlq/redrive/dlq/replay"
)

// insert makes a new row for a job whose row River has deleted; with us it
// keeps its job id and key. A row that we made before is the job's row now: as
// long as it hasn't ended badly, another beside it would do the work twice.
func (c *Client) insert(ctx context.Context, tx pgx.Tx, it replay.Item, payload []byte) (ref, *replay.Refusal, error) {
	own := strconv.FormatInt(it.DeadJobID, 10)
	if it.Proof {
		if made, err := c.made(ctx, tx, it); err != nil || made != 0 {
			return ref{RiverID: made, NewRow: true}, nil, err
		}
	}
	var alive string
	err := tx.QueryRow(ctx, `
		SELECT coalesce(min(state::text), '')
		FROM `+pgx.Identifier{c.Schema, "river_job"}.Sanitize()+`
		WHERE metadata @> jsonb_build_object('`+MetaOwn+`', $1::text) AND kind = $2 AND state NOT IN ('discarded', 'cancelled')`,
		own, it.JobType).Scan(&alive)
	if err != nil {
		return ref{}, nil, fmt.Errorf("river target: look for a row of ours: %w", err)
	}
	if alive != "" && !it.Proof {
		return ref{}, &replay.Refusal{Code: "changed_at_source", Detail: "an earlier replay's row is " + alive + " in River"}, nil
	}
	meta, err := json.Marshal(map[string]string{
		MetaOwn:    own,
		MetaReplay: strconv.FormatInt(it.ReplayID, 10), MetaJobID: it.JobID, MetaKey: it.Key.Key, MetaEntity: it.Entity,
	})
	if err != nil {
		return ref{}, nil, err
	}
	queue := it.Target.River.Queue
	if queue == "" {
		queue = it.Queue
	}
	if queue == "" {
		queue = river.QueueDefault
	}
	var id int64
	err = pgx.BeginFunc(ctx, tx, func(sp pgx.Tx) error {
		res, err := c.client.InsertTx(ctx, sp, rawArgs{it.JobType, payload}, &river.InsertOpts{MaxAttempts: 1, Metadata: meta, Queue: queue})
		if err != nil {
			return err
		}
		id = res.Job.ID
		return nil
	})
	if refusal := refusalOf(err); refusal != nil {
		return ref{}, refusal, nil
	}
	if err != nil {
		return ref{}, nil, fmt.Errorf("river target: insert: %w", err)
	}
	return ref{RiverID: id, NewRow: true}, nil, nil
}

// made is the row that an earlier try made for the second run of a proof; 0: none.
func (c *Client) made(ctx context.Context, tx pgx.Tx, it replay.Item) (id int64, err error) {
	err = tx.QueryRow(ctx, `
		SELECT coalesce(min(id), 0)
		FROM `+pgx.Identifier{c.Schema, "river_job"}.Sanitize()+`
		WHERE metadata @> jsonb_build_object('`+MetaReplay+`', $1::text) AND kind = $2`,
		strconv.FormatInt(it.ReplayID, 10), it.JobType).Scan(&id)
	if err != nil {
		return 0, fmt.Errorf("river target: look for the proof's row: %w", err)
	}
	return id, nil
}

// rawArgs sends stored bytes as River args.
type rawArgs struct {
	kind  string
	bytes []byte
}

// Kind implements river.JobArgs.
func (a rawArgs) Kind() string { return a.kind }

// MarshalJSON implements json.Marshaler.
func (a rawArgs) MarshalJSON() ([]byte, error) { return a.bytes, nil }
