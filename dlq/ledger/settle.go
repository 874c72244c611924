package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/redrive-dlq/redrive/audit"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/dlq/redact"
	"github.com/redrive-dlq/redrive/rbac"
)

// Settlement is a person's word about an effect that nobody knew the end of.
type Settlement struct {
	Happened bool   // "it happened, id …", or "it did not"
	EffectID string // the provider's id; required when it happened
	Reason   string // how the person knows; required
}

// settled is the part of a dead job that settling needs.
type settled struct {
	Environment, JobType, Scope, Key, Status, Effect string
}

// Settle writes a person's word about a job's unknown effect: into the ledger
// when the job has a key, onto the job, and into the audit log, all or
// nothing. Errors: Forbidden, NotFound, Invalid, Conflict when the effect
// isn't unknown or a replay is under way.
func Settle(ctx context.Context, pool *pgxpool.Pool, p *rbac.Principal, deadJobID int64, s Settlement) error {
	if err := s.check(); err != nil {
		return err
	}
	job, err := readSettled(ctx, pool, deadJobID, "")
	if err != nil {
		return err
	}
	if !p.Can(rbac.Read, job.Environment, job.JobType) {
		return problem.New(problem.NotFound, "There is no job %d.", deadJobID)
	}
	if err := p.Require(job.Environment, job.JobType, rbac.SettleEffect); err != nil {
		return err
	}
	return Busy(pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if err := GiveWay(ctx, tx); err != nil {
			return err
		}
		key := Key{job.Environment, job.Scope, job.Key}
		if err := Lock(ctx, tx, key); err != nil {
			return err
		}
		job, err := readSettled(ctx, tx, deadJobID, "FOR UPDATE")
		if err != nil {
			return err
		}
		if job.Key != key.Key || job.Scope != key.Scope {
			return problem.New(problem.Conflict, "The job changed while you settled its effect. Reload the page.")
		}
		unknown, err := Unsettled(ctx, tx, key, job.Effect)
		if err != nil {
			return err
		}
		if !unknown || (job.Status != "open" && job.Status != "snoozed") {
			return problem.New(problem.Conflict, "The effect of this job isn't unknown any more (status %s, effect %s). Reload the page.", job.Status, job.Effect)
		}
		if err := noReplay(ctx, tx, key); err != nil {
			return err
		}
		if row, ok, err := Of(ctx, tx, key); err != nil {
			return err
		} else if ok && row.State == "done" && !s.Happened {
			return problem.New(problem.Conflict, "The ledger says that the effect of this key happened (id %q), so it can't be settled otherwise.", row.EffectID)
		}
		if _, err := audit.Append(ctx, tx, p.Actor(), s.entry(deadJobID, job)); err != nil {
			return err
		}
		return s.write(ctx, tx, p.Email, deadJobID, key)
	}))
}

func (s *Settlement) check() error {
	// What people type is kept in the audit log, which never forgets.
	s.Reason, s.EffectID = redact.Readable(strings.TrimSpace(s.Reason)), strings.TrimSpace(s.EffectID)
	switch {
	case len(s.Reason) < 3 || len(s.Reason) > 2000 || strings.ContainsRune(s.Reason, 0):
		return problem.At(problem.Invalid, "reason", "Say how you know, in 3 to 2,000 characters.")
	case s.Happened && s.EffectID == "":
		return problem.At(problem.Invalid, "effect_id", "Give the provider's id of the effect, so that others can find it.")
	case len(s.EffectID) > 255 || strings.ContainsRune(s.EffectID, 0):
		return problem.At(problem.Invalid, "effect_id", "A provider's id has at most 255 characters.")
	}
	return nil
}

func readSettled(ctx context.Context, db DB, id int64, lock string) (j settled, err error) {
	err = db.QueryRow(ctx, `
		SELECT environment, job_type, key_scope, idempotency_key, status, effect
		FROM redrive.dead_jobs
		WHERE id = $1 `+lock, id).
		Scan(&j.Environment, &j.JobType, &j.Scope, &j.Key, &j.Status, &j.Effect)
	if errors.Is(err, pgx.ErrNoRows) {
		return j, problem.New(problem.NotFound, "There is no job %d.", id)
	}
	if err != nil {
		return j, fmt.Errorf("ledger: read job: %w", err)
	}
	return j, nil
}

// Unsettled reports whether nobody knows how the effect ended: the job's row
// says so, or the ledger has it begun without end, by another job of its key.
func Unsettled(ctx context.Context, db DB, k Key, effect string) (bool, error) {
	if effect == "unknown" {
		return true, nil
	}
	row, ok, err := Of(ctx, db, k)
	return ok && row.State == "begun" && effect != "done", err
}

// noReplay refuses to settle a key that a replay under way may be changing.
func noReplay(ctx context.Context, tx pgx.Tx, k Key) error {
	var replay int64
	err := tx.QueryRow(ctx, `
		SELECT coalesce(min(id), 0)
		FROM redrive.replays
		WHERE environment = $1 AND key_scope = $2 AND idempotency_key = $3 AND idempotency_key <> ''
		  AND state IN ('ready', 'released')`, k.Environment, k.Scope, k.Key).Scan(&replay)
	if err != nil {
		return fmt.Errorf("ledger: replays of the key: %w", err)
	}
	if replay != 0 {
		return problem.New(problem.Conflict, "Replay %d of the same key is under way. Wait for its outcome, then look again.", replay)
	}
	return nil
}

func (s Settlement) entry(id int64, j settled) audit.Entry {
	action := "effect.did_not_happen"
	details := map[string]any{}
	if s.Happened {
		action = "effect.happened"
		details["effect_id"] = s.EffectID
	}
	if j.Key != "" {
		sum := sha256.Sum256([]byte(j.Key))
		details["key_sha256"] = hex.EncodeToString(sum[:])
	}
	return audit.Entry{
		Action: action, Object: audit.Object{Kind: "job", ID: strconv.FormatInt(id, 10)},
		Environment: j.Environment, JobType: j.JobType, DeadJob: id, Reason: s.Reason, Details: details,
	}
}

// write changes ledger and jobs. When it happened, the ledger's trigger closes
// every open job of the key, this one too; a job without a key is closed here.
func (s Settlement) write(ctx context.Context, tx pgx.Tx, by string, id int64, k Key) error {
	state := "failed"
	if s.Happened {
		state = "done"
	}
	if k.Key != "" {
		_, err := tx.Exec(ctx, `
			INSERT INTO redrive.ledger AS l (environment, scope, key, state, effect_id, finished_at, settled_by)
			VALUES ($1, $2, $3, $4, $5, now(), $6)
			ON CONFLICT (environment, scope, key) DO UPDATE
			SET state = excluded.state, effect_id = excluded.effect_id, finished_at = now(), settled_by = excluded.settled_by
			WHERE l.state <> 'done'`, k.Environment, k.Scope, k.Key, state, s.EffectID, by)
		if err != nil {
			return fmt.Errorf("ledger: settle: %w", err)
		}
	}
	var err error
	if s.Happened {
		_, err = tx.Exec(ctx, `
			UPDATE redrive.dead_jobs
			SET status = 'resolved', effect = 'done', effect_id = $2, settled_reason = $3, settled_ref = $2,
			    settled_by = $4, settled_at = now(), updated_at = now()
			WHERE id = $1`, id, s.EffectID, s.Reason, by)
	} else {
		_, err = tx.Exec(ctx, `
			UPDATE redrive.dead_jobs
			SET effect = 'none', updated_at = now()
			WHERE (id = $1 OR (idempotency_key <> '' AND environment = $2 AND key_scope = $3 AND idempotency_key = $4))
			  AND effect = 'unknown'`, id, k.Environment, k.Scope, k.Key)
	}
	if err != nil {
		return fmt.Errorf("ledger: settle job: %w", err)
	}
	return nil
}
