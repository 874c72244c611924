package replay

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/audit"
	"github.com/redrive-dlq/redrive/dlq/ledger"
)

// End is how a replay ends.
type End struct {
	Outcome       string // Succeeded, AlreadyDone, Failed, Skipped, Unconfirmed, Cancelled
	Code          string // machine-readable: http_400, deadline, unique_conflict …
	Detail        string // one plain sentence, redacted
	EffectID      string // the provider's id, when known
	EffectUnknown bool   // nobody knows whether the effect happened
	Failure       *Failure
	Category      string // of a failure whose source tells of the death itself

	onlyUndelivered bool // holds only while the target doesn't have it
	inLedger        bool // the ledger has the key's effect as done
}

// Failure is the attempt that a failed replay made, for targets whose jobs no
// source captures (HTTP). Texts are redacted before they get here.
type Failure struct {
	Class, Message string
	StatusCode     int
	Category       string
	Fingerprint    string
	Template       string
	DurationMS     int64
}

// Record writes a replay's outcome in a transaction of its own. The first
// final outcome wins: for a replay that has ended it changes nothing and
// reports false.
func (s *Service) Record(ctx context.Context, replayID int64, e End) (bool, error) {
	var first bool
	err := pgx.BeginFunc(ctx, s.Pool, func(tx pgx.Tx) error {
		// Outcomes are asked for again.
		err := ledger.GiveWay(ctx, tx)
		if err != nil {
			return err
		}
		first, err = s.RecordTx(ctx, tx, replayID, e)
		return err
	})
	return first, err
}

// RecordTx is Record inside the caller's transaction.
func (s *Service) RecordTx(ctx context.Context, tx pgx.Tx, replayID int64, e End) (bool, error) {
	var k ledger.Key
	err := tx.QueryRow(ctx, `
		SELECT environment, key_scope, idempotency_key FROM redrive.replays WHERE id = $1`, replayID).
		Scan(&k.Environment, &k.Scope, &k.Key)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, fmt.Errorf("replay: outcome for replay %d, which doesn't exist", replayID)
	}
	if err != nil {
		return false, fmt.Errorf("replay: outcome: %w", err)
	}
	if err := ledger.Lock(ctx, tx, k); err != nil {
		return false, err
	}
	items, err := s.items(ctx, tx, `
		WHERE r.id = @id AND r.state = 'released' AND (NOT @only_undelivered OR r.delivered_at IS NULL)
		FOR UPDATE OF r`, pgx.NamedArgs{"id": replayID, "only_undelivered": e.onlyUndelivered})
	if err != nil {
		return false, err
	}
	if len(items) == 0 {
		return false, s.keepLate(ctx, tx, replayID, e)
	}
	e, err = s.byLedger(ctx, tx, items[0], e)
	if err != nil {
		return false, err
	}
	return true, s.end(ctx, tx, items[0], e)
}

// byLedger lets the ledger correct an outcome: a success there beats a
// failure, and an effect begun without end stays unknown.
func (s *Service) byLedger(ctx context.Context, tx pgx.Tx, it Item, e End) (End, error) {
	row, ok, err := ledger.Of(ctx, tx, it.Key)
	if err != nil || !ok {
		return e, err
	}
	if it.Proof && row.State == "done" {
		return e, nil // it was done before: how this run itself ended is the question
	}
	switch row.State {
	case "done":
		// It was done after the release: a key that is done doesn't leave.
		switch e.Outcome {
		case Succeeded, AlreadyDone:
			if row.EffectID != "" {
				e.EffectID = row.EffectID
			}
		case Skipped, Cancelled: // it never ran
			e = End{Outcome: AlreadyDone, Code: KeyDone, EffectID: row.EffectID, Detail: "the effect was done elsewhere, and this replay never ran: " + e.Detail}
		default:
			e = End{Outcome: Succeeded, Code: "ledger_done", EffectID: row.EffectID,
				Detail: "the ledger says that the effect happened, although the run ended otherwise: " + e.Detail}
		}
		e.inLedger = true
	case "begun":
		e.EffectUnknown = true
		if e.Outcome == Succeeded || e.Outcome == AlreadyDone {
			e.Outcome, e.Code = Unconfirmed, "begun_without_end"
			e.Detail = "the run ended well, but the effect was begun and its end never written"
		}
	case "failed":
		// An older row says nothing of this run.
		if e.Outcome == Failed && row.Begins > it.ledgerBegins {
			e.EffectUnknown = false
		}
	}
	return e, nil
}

// end ends a replay by the system's own word. The caller holds the key's lock
// and the replay's row.
func (s *Service) end(ctx context.Context, tx pgx.Tx, it Item, e End) error {
	if err := s.writeDown(ctx, tx, it, e); err != nil {
		return err
	}
	return s.finish(ctx, tx, it, e)
}

// writeDown appends the entry of a decision of the system that stops a replay;
// outcomes are rows.
func (s *Service) writeDown(ctx context.Context, tx pgx.Tx, it Item, e End) error {
	if e.Outcome != Skipped && e.Outcome != Cancelled {
		return nil
	}
	_, err := audit.Append(ctx, tx, audit.SystemActor(), audit.Entry{
		Action: "replay." + e.Outcome, Object: audit.Object{Kind: "replay", ID: strconv.FormatInt(it.ReplayID, 10)},
		Environment: it.Environment, JobType: it.JobType, DeadJob: it.DeadJobID, Batch: it.BatchID, Reason: e.Detail,
		Details: map[string]any{"code": e.Code}, At: s.now(),
	})
	return err
}

// finish writes the outcome onto replay, job and batch, and lets the next of
// the entity go.
func (s *Service) finish(ctx context.Context, tx pgx.Tx, it Item, e End) error {
	_, err := tx.Exec(ctx, `
		UPDATE redrive.replays
		SET state = 'ended', outcome = $2, outcome_code = $3, outcome_detail = $4, effect_id = $5, outcome_at = $6, new_category = $7
		WHERE id = $1`, it.ReplayID, e.Outcome, e.Code, e.Detail, e.EffectID, s.now(), e.category())
	if err != nil {
		return fmt.Errorf("replay: end: %w", err)
	}
	if err := s.endJob(ctx, tx, it, e); err != nil {
		return err
	}
	if err := s.skipLater(ctx, tx, it, e); err != nil {
		return err
	}
	if err := wake(ctx, tx, it); err != nil {
		return err
	}
	return endBatch(ctx, tx, it.BatchID)
}

// endJob gives the job its status. A job that died again meanwhile (its source
// was faster) is one generation further and keeps its status.
func (s *Service) endJob(ctx context.Context, tx pgx.Tx, it Item, e End) error {
	status, effect := "open", "" // '' keeps the effect
	switch e.Outcome {
	case Succeeded, AlreadyDone:
		status, effect = "recovered", "done"
	case Unconfirmed:
		effect = "unknown"
	}
	if e.EffectUnknown {
		effect = "unknown"
	}
	if it.Proof {
		status, effect = "recovered", "done" // by the run before, whatever became of this one
	}
	tag, err := tx.Exec(ctx, `
		UPDATE redrive.dead_jobs
		SET status = $3, effect = CASE WHEN $4 = '' THEN effect ELSE $4 END,
		    effect_id = CASE WHEN $5 = '' THEN effect_id ELSE $5 END,
		    settled_reason = CASE WHEN $3 = 'recovered' THEN $6 ELSE '' END, settled_ref = '', settled_by = '',
		    settled_at = CASE WHEN $3 = 'recovered' THEN $7::timestamptz END, updated_at = $7::timestamptz
		WHERE id = $1 AND generation = $2 AND status = 'replaying'`,
		it.DeadJobID, it.Generation, status, effect, e.EffectID, "recovered by replay "+strconv.FormatInt(it.ReplayID, 10), s.now())
	if err != nil {
		return fmt.Errorf("replay: end job: %w", err)
	}
	if tag.RowsAffected() == 0 && e.inLedger {
		// The death of this run came first: with its effect done there is nothing
		// to do about it.
		_, err := tx.Exec(ctx, `
			UPDATE redrive.dead_jobs
			SET status = 'recovered', effect = 'done', effect_id = CASE WHEN $4 = '' THEN effect_id ELSE $4 END,
			    settled_reason = $5, settled_ref = '', settled_by = '', settled_at = $6, updated_at = $6
			WHERE id = $1 AND key_scope = $2 AND idempotency_key = $3 AND status IN ('open', 'snoozed')`,
			it.DeadJobID, it.Key.Scope, it.Key.Key, e.EffectID, "recovered by replay "+strconv.FormatInt(it.ReplayID, 10), s.now())
		if err != nil {
			return fmt.Errorf("replay: recover job: %w", err)
		}
	}
	if tag.RowsAffected() == 0 && effect == "unknown" {
		// Whatever it died of since: this effect may have happened.
		_, err := tx.Exec(ctx, `
			UPDATE redrive.dead_jobs
			SET effect = 'unknown', updated_at = $4
			WHERE id = $1 AND key_scope = $2 AND idempotency_key = $3 AND effect = 'none'`, it.DeadJobID, it.Key.Scope, it.Key.Key, s.now())
		if err != nil {
			return fmt.Errorf("replay: unknown effect: %w", err)
		}
	}
	if e.Outcome == Failed && e.Failure != nil {
		return s.recordDeath(ctx, tx, it, *e.Failure)
	}
	return nil
}
