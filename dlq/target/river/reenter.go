package river

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/redrive-dlq/redrive/dlq/replay"
)

// Metadata keys that we write onto River rows.
const (
	MetaReplay = "redrive:replay" // the replay that runs this row
	MetaJobID  = "redrive:job_id" // the job id with us, on rows that we made
	MetaKey    = "redrive:key"    // the idempotency key
	MetaEntity = "redrive:entity" // the thing whose order matters
	MetaOwn    = "redrive:own"    // the dead job that we made the row for
)

// row is what a re-entry has to know of river_job.
type row struct {
	State   string
	Attempt int
	Args    string
	Replay  string
	Kind    string
	Same    bool // it died when the captured death says
}

// reenter is the guarded way back into River: the row is locked, must have
// ended badly and be the very attempt that was captured. JobRetryTx alone
// would retry a completed job too, and leave a cancelled one all its attempts.
func (c *Client) reenter(ctx context.Context, tx pgx.Tx, it replay.Item, payload []byte) (ref, *replay.Refusal, error) {
	if it.Proof { // the job's own row is completed: what it did is to be asked again
		return c.insert(ctx, tx, it, payload)
	}
	from := c.origin(it)
	id := from.RiverID
	var died *string
	if from.FinalizedAt != "" {
		died = &from.FinalizedAt
	}
	table := pgx.Identifier{c.Schema, "river_job"}.Sanitize()
	var r row
	err := tx.QueryRow(ctx, `
		SELECT state::text, attempt, args::text, coalesce(metadata ->> 'redrive:replay', ''), kind,
		       coalesce(finalized_at = $2::timestamptz, true)
		FROM `+table+`
		WHERE id = $1
		FOR UPDATE`, id, died).Scan(&r.State, &r.Attempt, &r.Args, &r.Replay, &r.Kind, &r.Same)
	if errors.Is(err, pgx.ErrNoRows) || (err == nil && r.Kind != it.JobType) { // another job's: ids began anew there
		return c.insert(ctx, tx, it, payload)
	}
	if err != nil {
		return ref{}, nil, fmt.Errorf("river target: lock row: %w", err)
	}
	if r.Replay == strconv.FormatInt(it.ReplayID, 10) {
		// Only with a River in another database: the retry was committed, the confirmation wasn't.
		return ref{RiverID: id, Attempt: from.Attempt}, nil, nil
	}
	if r.State != "discarded" && r.State != "cancelled" {
		return ref{}, &replay.Refusal{Code: "changed_at_source", Detail: "the job is " + r.State + " in River now: somebody retried it there"}, nil
	}
	if r.Attempt != from.Attempt || !r.Same {
		return ref{}, &replay.Refusal{Code: "changed_at_source",
			Detail: fmt.Sprintf("River has attempt %d and Redrive knows %d: it died again and its newest death isn't captured yet", r.Attempt, from.Attempt)}, nil
	}
	return c.retry(ctx, tx, it, id, r, payload)
}

// retry writes edited args, retries and marks the row, all under a savepoint:
// what River refuses leaves nothing behind.
func (c *Client) retry(ctx context.Context, tx pgx.Tx, it replay.Item, id int64, r row, payload []byte) (ref, *replay.Refusal, error) {
	table := pgx.Identifier{c.Schema, "river_job"}.Sanitize()
	err := pgx.BeginFunc(ctx, tx, func(sp pgx.Tx) error {
		if string(payload) != r.Args {
			if _, err := sp.Exec(ctx, `UPDATE `+table+` SET args = $2::text::jsonb WHERE id = $1`, id, string(payload)); err != nil {
				return err
			}
		}
		if _, err := c.client.JobRetryTx(ctx, sp, id); err != nil {
			return err
		}
		_, err := sp.Exec(ctx, `
			UPDATE `+table+`
			SET max_attempts = attempt + 1, metadata = metadata || jsonb_build_object('redrive:replay', $2::text)
			WHERE id = $1`, id, strconv.FormatInt(it.ReplayID, 10))
		return err
	})
	if refusal := refusalOf(err); refusal != nil {
		return ref{}, refusal, nil
	}
	if err != nil {
		return ref{}, nil, fmt.Errorf("river target: retry: %w", err)
	}
	return ref{RiverID: id, Attempt: r.Attempt}, nil, nil
}

// refusalOf reads River's own limits as reasons; nil for any other error.
func refusalOf(err error) *replay.Refusal {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return nil
	}
	switch pg.Code {
	case "23505":
		return &replay.Refusal{Code: "unique_conflict", Detail: "a live job in River holds the same unique key"}
	case "22003":
		return &replay.Refusal{Code: "attempts_exhausted", Detail: "River counts no further attempts for this row (32,767)"}
	case "22P02", "22P05", "22021":
		return &replay.Refusal{Code: "not_jsonb", Detail: "River keeps arguments as jsonb, which can't hold these bytes"}
	}
	return nil
}
