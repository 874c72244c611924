package replay

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/dlq/ledger"
	"github.com/redrive-dlq/redrive/rbac"
)

// Verdict codes: why a job can't be replayed now.
const (
	Eligible        = "eligible"
	NotOpen         = "not_open"
	KeyDone         = "key_done"
	EffectUnknown   = "effect_unknown"
	KeyInFlight     = "key_in_flight"
	InvalidInput    = "invalid_input"
	AuthNotFixed    = "auth"
	SchemaViolation = "schema_violation"
	TypeUnknown     = "type_unknown"
	NotReplayable   = "not_replayable"
	PayloadMissing  = "payload_missing"
	TargetCantCarry = "target_cant_carry"
	OutOfScope      = "out_of_scope"
)

// Lift says what a person can do about a verdict; the console turns it into
// the button that it offers.
type Lift string

// The lifts.
const (
	LiftNone         Lift = ""
	LiftEdit         Lift = "edit"
	LiftDeclareFix   Lift = "declare_fix"
	LiftSettle       Lift = "settle"
	LiftWait         Lift = "wait"
	LiftCatalogue    Lift = "catalogue"
	LiftReopen       Lift = "reopen"
	LiftAskColleague Lift = "ask_colleague"
)

// Verdict is eligible, or blocked with a reason and what lifts it.
type Verdict struct {
	Code     string
	Detail   string // one or two plain sentences; no payload values
	Lift     Lift
	EffectID string // the earlier result's id, with KeyDone
	Fields   []jobtype.SchemaError
	target   jobtype.Target
}

// OK reports whether the job may be replayed.
func (v Verdict) OK() bool { return v.Code == Eligible }

// Needs is the right that replaying one job of a type takes: money, or a type
// without protection against doing it twice, is for on-call engineers.
func Needs(t *jobtype.Type) rbac.Permission {
	switch {
	case t == nil:
		return rbac.ReplayOne
	case t.MoneyRisk():
		return rbac.ReplayMoney
	case !t.Idempotent():
		return rbac.RunBatch
	}
	return rbac.ReplayOne
}

// Judge is the dry run of one job: it writes nothing and calls nothing outside.
// Errors: NotFound when the job isn't there or not in the principal's scope.
func (s *Service) Judge(ctx context.Context, p *rbac.Principal, deadJobID int64) (Verdict, error) {
	var v Verdict
	err := pgx.BeginTxFunc(ctx, s.Pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		j, err := readJob(ctx, tx, deadJobID, "")
		if err != nil {
			return err
		}
		v, err = s.judge(ctx, tx, p, j)
		return err
	})
	return v, err
}

func (s *Service) judge(ctx context.Context, tx pgx.Tx, p *rbac.Principal, j job) (Verdict, error) {
	t, known := s.Types().Type(j.JobType)
	if p != nil && !p.Can(Needs(t), j.Environment, j.JobType) {
		return Verdict{Code: OutOfScope, Lift: LiftAskColleague,
			Detail: fmt.Sprintf("Your role doesn't allow replaying %s in %s.", j.JobType, j.Environment)}, nil
	}
	if v, err := s.judgeEffect(ctx, tx, j, t); err != nil || v.Code != "" {
		return v, err
	}
	if v := judgeStatus(j); v.Code != "" {
		return v, nil
	}
	if v := judgePolicy(j, t, known); v.Code != "" {
		return v, nil
	}
	// Before the cause: no fix that a person declares makes a payload of a printout.
	if j.PayloadKind == "printout" {
		return Verdict{Code: PayloadMissing,
			Detail: "Only a printout of the arguments is stored, so this job cannot be sent again."}, nil
	}
	if v := judgeCause(j, t); v.Code != "" {
		return v, nil
	}
	return s.judgePayload(ctx, tx, j, t)
}

// judgeEffect reads the ledger: a key that is done blocks always, with the
// earlier result; a key begun without end is unknown, whatever the row says.
func (s *Service) judgeEffect(ctx context.Context, tx pgx.Tx, j job, t *jobtype.Type) (Verdict, error) {
	row, ok, err := ledger.Of(ctx, tx, j.key())
	if err != nil {
		return Verdict{}, err
	}
	if (ok && row.State == "done") || j.Effect == "done" {
		id := j.EffectID
		if ok && row.EffectID != "" {
			id = row.EffectID
		}
		detail := "This has already succeeded, so there is nothing to do."
		if id != "" {
			detail = fmt.Sprintf("This has already succeeded: its result is %s. There is nothing to do.", id)
		}
		return Verdict{Code: KeyDone, EffectID: id, Detail: detail}, nil
	}
	dedup := t != nil && t.Idempotency.ProviderDeduplicates
	if !dedup && j.Status != "replaying" && ((ok && row.State == "begun") || j.Effect == "unknown") {
		return Verdict{Code: EffectUnknown, Lift: LiftSettle,
			Detail: "The last attempt began the effect and nobody knows its end. Look the key up at the provider, then say whether it happened."}, nil
	}
	if j.IdempotencyKey == "" || j.Status == "replaying" {
		return Verdict{}, nil
	}
	other, err := readTwin(ctx, tx, j)
	if err != nil {
		return Verdict{}, err
	}
	if v := other.verdict(dedup); v.Code != "" {
		return v, nil
	}
	var replayID int64
	err = tx.QueryRow(ctx, `
		SELECT coalesce(min(id), 0)
		FROM (SELECT id
		      FROM redrive.replays
		      WHERE environment = $1 AND key_scope = $2 AND idempotency_key = $3 AND idempotency_key <> ''
		        AND state IN ('pending', 'ready')
		      UNION ALL
		      SELECT id
		      FROM redrive.replays
		      WHERE environment = $1 AND key_scope = $2 AND idempotency_key = $3 AND idempotency_key <> ''
		        AND state IN ('ready', 'released')) r -- each part has an index of its own`, j.Environment, j.KeyScope, j.IdempotencyKey).Scan(&replayID)
	if err != nil {
		return Verdict{}, fmt.Errorf("replay: key in flight: %w", err)
	}
	if replayID != 0 {
		return Verdict{Code: KeyInFlight, Lift: LiftWait,
			Detail: fmt.Sprintf("Another job of the same key is being replayed (replay %d). Wait for its outcome.", replayID)}, nil
	}
	return Verdict{}, nil
}

func judgeStatus(j job) Verdict {
	switch j.Status {
	case "open":
		return Verdict{}
	case "replaying":
		return Verdict{Code: NotOpen, Lift: LiftWait, Detail: "It is being replayed already. Wait for the outcome."}
	}
	return Verdict{Code: NotOpen, Lift: LiftReopen, Detail: fmt.Sprintf("It is %s, not open. Reopen it first.", j.Status)}
}

func judgePolicy(j job, t *jobtype.Type, known bool) Verdict {
	if !known {
		return Verdict{Code: TypeUnknown, Lift: LiftCatalogue,
			Detail: fmt.Sprintf("Nobody declared the type %s, so it isn't known where it goes and what it does. Add it to the catalogue.", j.JobType)}
	}
	if err := t.Replayable(j.Environment); err != nil {
		return Verdict{Code: NotReplayable, Lift: LiftCatalogue,
			Detail: fmt.Sprintf("The catalogue names no target for %s in %s.", j.JobType, j.Environment)}
	}
	return Verdict{}
}

// judgeCause: invalid input and auth fail again unless something changed.
func judgeCause(j job, t *jobtype.Type) Verdict {
	if j.FixKind != "" {
		return Verdict{}
	}
	switch j.Category {
	case "invalid_input":
		lift := LiftDeclareFix
		if len(t.Edits.Payload) > 0 && j.PayloadKind == "json" {
			lift = LiftEdit
		}
		return Verdict{Code: InvalidInput, Lift: lift,
			Detail: "The input was refused; replaying it as it is would fail again. Correct the payload, or declare what was fixed."}
	case "auth":
		return Verdict{Code: AuthNotFixed, Lift: LiftDeclareFix,
			Detail: "The credentials were refused. Fix the key first, then declare the fix."}
	}
	return Verdict{}
}

func (s *Service) judgePayload(ctx context.Context, tx pgx.Tx, j job, t *jobtype.Type) (Verdict, error) {
	payload, err := s.Payload(ctx, tx, j.ID, j.PayloadVersion)
	if errors.Is(err, errNoPayload) {
		return Verdict{Code: PayloadMissing, Detail: "The payload isn't stored any more, so this job cannot be sent again."}, nil
	}
	if err != nil {
		return Verdict{}, err
	}
	if len(t.SchemaFiles) > 0 {
		faults, err := t.Validate(j.SchemaVersion, payload)
		if err != nil {
			return Verdict{Code: SchemaViolation, Lift: LiftCatalogue, Detail: err.Error()}, nil
		}
		if len(faults) > 0 {
			return Verdict{Code: SchemaViolation, Lift: LiftEdit, Fields: faults,
				Detail: fmt.Sprintf("The payload breaks its schema: %s %s.", faults[0].Pointer, faults[0].Message)}, nil
		}
	}
	target, _ := t.Target(j.Environment)
	to, ok := s.Targets[kindOf(target)]
	if !ok {
		return Verdict{Code: NotReplayable, Lift: LiftCatalogue, Detail: "This process knows no target of kind " + kindOf(target) + "."}, nil
	}
	refusals, err := to.Check(ctx, tx, []Item{j.item(target)}, [][]byte{payload})
	if err != nil {
		return Verdict{}, err
	}
	if refusal := refusals[0]; refusal != nil {
		return Verdict{Code: TargetCantCarry, Detail: "The target can't carry this payload: " + refusal.Detail + "."}, nil
	}
	return Verdict{Code: Eligible, Detail: "Nothing stands in the way.", target: target}, nil
}

func (j job) item(t jobtype.Target) Item {
	return Item{DeadJobID: j.ID, Generation: j.Generation, PayloadVersion: j.PayloadVersion, Environment: j.Environment,
		Source: j.Source, JobID: j.JobID, JobType: j.JobType, Entity: j.Entity, Key: j.key(), TargetKind: kindOf(t),
		Target: t, SourceRef: j.SourceRef, AttemptCount: j.AttemptCount, Queue: j.Queue}
}
