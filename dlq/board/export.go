package board

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/dlq/redact"
)

// Exported is one replay in an export. With job, generation, payload version
// and verdict of all of them, in their order, anybody can make the plan's hash
// again.
type Exported struct {
	DeadJob        int64      `json:"dead_job"`
	Generation     int        `json:"generation"`
	PayloadVersion int        `json:"payload_revision"` // ours: an edit raises it
	Verdict        string     `json:"verdict"`
	VerdictDetail  string     `json:"verdict_detail,omitempty"`
	Replay         int64      `json:"replay"`
	JobID          string     `json:"job_id"`
	State          string     `json:"state"`
	Outcome        string     `json:"outcome,omitempty"`
	Code           string     `json:"code,omitempty"`
	Detail         string     `json:"detail,omitempty"`
	EffectID       string     `json:"effect_id,omitempty"`
	ReleasedAt     *time.Time `json:"released_at,omitempty"`
	OutcomeAt      *time.Time `json:"outcome_at,omitempty"`
	NewFingerprint string     `json:"new_fingerprint,omitempty"`
	NextGeneration int        `json:"next_generation,omitempty"`
}

// exportChunk is how many replays are read at once.
const exportChunk = 5000

// errPlanChanged ends an export whose plan was judged again in its middle.
var errPlanChanged = errors.New("board: export: the plan was judged again meanwhile")

// Export streams the replays of a batch that BatchOf returned, in the order of
// their jobs' ids. It reads them in chunks, so that its memory doesn't grow with
// them and a slow reader holds neither a connection nor a snapshot; an outcome
// is told as it is when its chunk is read. When the plan changes meanwhile it
// ends with an error.
func Export(ctx context.Context, db dlq.DB, batch int64, each func(Exported) error) error {
	revision, err := planRevision(ctx, db, batch)
	if err != nil {
		return err
	}
	for after, full := int64(0), true; full; {
		chunk, err := collect[Exported](ctx, db, "export", `
			SELECT r.dead_job_id AS dead_job, r.generation, r.payload_version, r.verdict, r.verdict_detail, r.id AS replay, r.job_id, r.state,
			       coalesce(r.outcome, '') AS outcome, r.outcome_code AS code, r.outcome_detail AS detail, r.effect_id,
			       r.released_at, r.outcome_at, `+newFingerprint+`, `+nextGeneration+`
			FROM redrive.replays r
			WHERE (r.batch_id, r.dead_job_id) > (@batch, @after) AND r.batch_id <= @batch
			ORDER BY r.batch_id, r.dead_job_id
			LIMIT @chunk`, pgx.NamedArgs{"batch": batch, "after": after, "chunk": exportChunk})
		if err != nil {
			return err
		}
		for i := range chunk {
			e := &chunk[i]
			for _, text := range []*string{&e.VerdictDetail, &e.JobID, &e.Detail, &e.EffectID} {
				*text = redact.Readable(*text)
			}
			if err := each(*e); err != nil {
				return err
			}
			after = e.DeadJob
		}
		full = len(chunk) == exportChunk
	}
	if now, err := planRevision(ctx, db, batch); err != nil || now != revision {
		return cmp.Or(err, errPlanChanged)
	}
	return nil
}

// planRevision is the revision of a batch's plan, negative while it is made.
func planRevision(ctx context.Context, db dlq.DB, batch int64) (revision int, err error) {
	err = db.QueryRow(ctx, `
		SELECT CASE state WHEN 'planning' THEN -1 - plan_revision ELSE plan_revision END
		FROM redrive.batches
		WHERE id = $1`, batch).Scan(&revision)
	if err != nil {
		return 0, fmt.Errorf("board: export: %w", err)
	}
	return revision, nil
}
