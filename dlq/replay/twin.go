package replay

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// twin is another job of the same key: they share one effect, also where no
// worker writes the ledger. The zero twin says nothing.
type twin struct {
	ID       int64
	Done     bool // its effect happened; else nobody knows
	EffectID string
}

// readTwin finds the job of j's key that says most of the effect: one that is
// done or has recovered, else one whose effect is unknown.
func readTwin(ctx context.Context, tx pgx.Tx, j job) (w twin, err error) {
	if j.IdempotencyKey == "" {
		return twin{}, nil
	}
	err = tx.QueryRow(ctx, `
		SELECT id, effect = 'done' OR status = 'recovered' AS done, effect_id
		FROM redrive.dead_jobs
		WHERE environment = $1 AND key_scope = $2 AND idempotency_key = $3 AND idempotency_key <> '' AND id <> $4
		  AND (effect IN ('done', 'unknown') OR status = 'recovered')
		ORDER BY done DESC, id
		LIMIT 1`, j.Environment, j.KeyScope, j.IdempotencyKey, j.ID).Scan(&w.ID, &w.Done, &w.EffectID)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return twin{}, fmt.Errorf("replay: other jobs of the key: %w", err)
	}
	return w, nil
}

// verdict is what the twin means to an order; the zero verdict when nothing.
func (w twin) verdict(deduplicated bool) Verdict {
	switch {
	case w.ID == 0 || (!w.Done && deduplicated):
		return Verdict{}
	case w.Done:
		return Verdict{Code: KeyDone, EffectID: w.EffectID,
			Detail: fmt.Sprintf("Job %d has the same key and has done this already, so there is nothing to do.", w.ID)}
	}
	return Verdict{Code: EffectUnknown,
		Detail: fmt.Sprintf("Job %d has the same key, and nobody knows the end of its effect. Settle it there first.", w.ID)}
}
