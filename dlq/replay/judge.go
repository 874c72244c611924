package replay

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
)

// judging is what jobs of one environment and type are judged under.
type judging struct {
	Environment string
	JobType     string
	Type        *jobtype.Type // nil: nobody declared it
	InScope     bool          // whoever asks may replay this type here
	AllowOld    bool          // a person takes jobs along that are too old, with a reason
	Single      bool          // one job by itself; in a batch more can be said
	Now         time.Time
}

// Judge is the dry run of one job: it writes nothing and calls nothing outside.
// Errors: NotFound when the job isn't there or not in the principal's scope.
func (s *Service) Judge(ctx context.Context, p *rbac.Principal, deadJobID int64) (Verdict, error) {
	var v Verdict
	err := pgx.BeginTxFunc(ctx, s.Pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		_, one, err := s.judgeOne(ctx, tx, p, deadJobID, "")
		v = one
		return err
	})
	return v, err
}

// judgeOne judges a single job, under a lock or none.
func (s *Service) judgeOne(ctx context.Context, tx pgx.Tx, p *rbac.Principal, id int64, lock string) (facts, Verdict, error) {
	found, err := factsOf(ctx, tx, []int64{id}, lock)
	if err != nil {
		return facts{}, Verdict{}, err
	}
	if len(found) == 0 {
		return facts{}, Verdict{}, problem.New(problem.NotFound, "There is no job %d.", id)
	}
	f := found[0]
	j := judging{Environment: f.Environment, JobType: f.JobType, Single: true, Now: s.now()}
	j.Type, _ = s.Types().Type(f.JobType)
	j.InScope = p == nil || p.Can(Needs(j.Type), f.Environment, f.JobType)
	all, err := s.judgeAll(ctx, tx, j, found)
	if err != nil {
		return facts{}, Verdict{}, err
	}
	return f, all[0], nil
}

// judgeAll judges jobs of one environment and type: first by their facts, then
// those that nothing stands in the way of by their payloads and what these
// depend on. One bad job harms only itself.
func (s *Service) judgeAll(ctx context.Context, tx pgx.Tx, j judging, all []facts) ([]Verdict, error) {
	out := make([]Verdict, len(all))
	for i, f := range all {
		out[i] = decide(f, j)
	}
	if j.Type == nil {
		return out, nil
	}
	if err := s.judgePayloads(ctx, tx, j, all, out); err != nil {
		return nil, err
	}
	return out, nil
}

// decide is the verdict on one job by its facts; eligible means that only its
// payload is still to be looked at.
func decide(f facts, j judging) Verdict {
	if !j.InScope {
		return Verdict{Code: OutOfScope, Lift: LiftAskColleague,
			Detail: fmt.Sprintf("Your role doesn't allow replaying %s in %s.", j.JobType, j.Environment)}
	}
	for _, v := range []Verdict{
		judgeEffect(f, j.Type),
		judgeStatus(f.job),
		judgePolicy(f.job, j.Type, j.Type != nil),
		judgeKept(f),
	} {
		if v.Code != "" {
			return v
		}
	}
	if v := judgeCause(f, j.Type); v.Code != "" {
		return v
	}
	if v := judgeAge(f, j); v.Code != "" {
		return v
	}
	return Verdict{Code: Eligible, Detail: "Nothing stands in the way."}
}

// judgeEffect: a key that is done blocks always, with the earlier result; a key
// begun without end is unknown, whatever the job's row says.
func judgeEffect(f facts, t *jobtype.Type) Verdict {
	if f.LedgerState == "done" || f.Effect == "done" {
		id := f.EffectID
		if f.LedgerState == "done" && f.LedgerEffectID != "" {
			id = f.LedgerEffectID
		}
		detail := "This has already succeeded, so there is nothing to do."
		if id != "" {
			detail = fmt.Sprintf("This has already succeeded: its result is %s. There is nothing to do.", id)
		}
		return Verdict{Code: KeyDone, EffectID: id, Detail: detail}
	}
	if f.Status == "replaying" {
		return Verdict{}
	}
	dedup := t != nil && t.Idempotency.ProviderDeduplicates
	if !dedup && (f.LedgerState == "begun" || f.Effect == "unknown") {
		return Verdict{Code: EffectUnknown, Lift: LiftSettle,
			Detail: "The last attempt began the effect and nobody knows its end. Look the key up at the provider, then say whether it happened."}
	}
	if v := f.twin().verdict(dedup); v.Code != "" {
		return v
	}
	if f.InFlight != 0 {
		return Verdict{Code: KeyInFlight, Lift: LiftWait,
			Detail: fmt.Sprintf("Another job of the same key is being replayed (replay %d). Wait for its outcome.", f.InFlight)}
	}
	return Verdict{}
}

// judgeKept: before the cause, since no fix that a person declares makes a
// payload of a printout.
func judgeKept(f facts) Verdict {
	switch {
	case f.PayloadKind == "printout":
		return Verdict{Code: PayloadMissing, Detail: "Only a printout of the arguments is stored, so this job cannot be sent again."}
	case !f.Stored:
		return Verdict{Code: PayloadMissing, Detail: "The payload isn't stored any more, so this job cannot be sent again."}
	}
	return Verdict{}
}

// judgeAge: what is too old or overtaken would do harm now. A type whose checks
// say that a job is still wanted needs no age.
func judgeAge(f facts, j judging) Verdict {
	if f.Superseded != 0 {
		return Verdict{Code: Superseded,
			Detail: fmt.Sprintf("Job %d is a newer change of the same entity and has run already; this older one would undo it. Discard it, or resolve it with a reference.", f.Superseded)}
	}
	if limit := j.Type.ValidFor; limit > 0 && !j.AllowOld && len(j.Type.Checks) == 0 && j.Now.Sub(f.DiedAt) > limit {
		v := Verdict{Code: TooOld, Lift: LiftAllowOld,
			Detail: fmt.Sprintf("It died more than %s ago, and its type is valid no longer than that. A person who may run batches can take old jobs along, with a reason.", limit)}
		if j.Single {
			v.Detail = fmt.Sprintf("It died more than %s ago, and its type is valid no longer than that. Plan a batch of it: there a person can take old jobs along, with a reason.", limit)
		}
		return v
	}
	return Verdict{}
}
