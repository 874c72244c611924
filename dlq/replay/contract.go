package replay

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq/filter"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
)

// Work is work on a batch in the background. The engine runs it until it is
// done; each call does a bounded part in transactions of its own, so that a
// killed process loses nothing and two at once do no harm.
type Work string

// The kinds of work.
const (
	WorkPlan   Work = "plan"   // freeze the selection, or judge it again
	WorkStart  Work = "start"  // take the eligible jobs of a confirmed batch
	WorkCancel Work = "cancel" // end what has not left of a cancelled batch
)

var errUnbuilt = problem.New(problem.Unavailable, "This isn't built yet.")

// Do runs a part of the work and says whether all of it is done.
func (s *Service) Do(ctx context.Context, w Work, batch int64) (done bool, err error) {
	switch w {
	case WorkPlan:
		return s.doPlan(ctx, batch)
	case WorkStart:
		return s.doStart(ctx, batch)
	case WorkCancel:
		return s.doCancel(ctx, batch)
	}
	return true, nil
}

func (s *Service) enqueue(ctx context.Context, tx pgx.Tx, w Work, batch int64) error {
	if s.Enqueue == nil {
		return nil // tests run the work themselves
	}
	return s.Enqueue(ctx, tx, w, batch)
}

func (s *Service) doPlan(context.Context, int64) (bool, error)   { return true, errUnbuilt }
func (s *Service) doStart(context.Context, int64) (bool, error)  { return true, errUnbuilt }
func (s *Service) doCancel(context.Context, int64) (bool, error) { return true, errUnbuilt }

// Selection is what a person chose to replay: what a filter matches, or ids.
// An empty selection is an error, never everything.
type Selection struct {
	Filter filter.Filter
	IDs    []int64 // of dead jobs; at most MaxSelected
}

// MaxSelected is how many rows may be selected by id; more take a filter.
const MaxSelected = 10_000

// Plan persists one batch for each environment and type that the selection
// touches and begins to freeze them; it returns their ids, at least one.
// Errors: Invalid (empty or matching nothing, more than 50 types, the reason),
// Forbidden for one who may plan nothing of it.
func (s *Service) Plan(ctx context.Context, p *rbac.Principal, sel Selection, reason string) ([]int64, error) {
	return nil, errUnbuilt
}

// PlanFailed plans the jobs of a batch's failed replays anew.
func (s *Service) PlanFailed(ctx context.Context, p *rbac.Principal, batch int64, reason string) ([]int64, error) {
	return nil, errUnbuilt
}

// Rejudge judges the members of an unconfirmed batch again (the same jobs, as
// they are now); reviews of the plan before are void.
func (s *Service) Rejudge(ctx context.Context, p *rbac.Principal, batch int64) error {
	return errUnbuilt
}

// FixOrder declares for a group or a batch what was fixed.
type FixOrder struct {
	Environment string // of a group; a batch has its own
	Fingerprint string // either a group …
	Batch       int64  // … or a batch
	Kind        string // worker_version, ticket, record
	Ref         string // the version, the ticket's number, the record; required
	Reason      string // required
}

// DeclareFix lifts invalid input and auth of what it covers; a batch that
// isn't confirmed yet is judged again.
func (s *Service) DeclareFix(ctx context.Context, p *rbac.Principal, o FixOrder) error {
	return errUnbuilt
}

// ReviewOrder is the first confirmation: how the batch shall run.
type ReviewOrder struct {
	Batch         int64
	PlanHash      string        // as shown; another one is a Conflict
	Reason        string        // required
	StartAfter    time.Duration // from the last confirmation; 0 = at once
	StartAt       time.Time     // zero: StartAfter counts
	RatePerMinute int           // 0 = the type's limit; above it Invalid
	Canary        int           // 0 = none
	AcceptRepeat  bool          // required for a type that isn't idempotent
}

// Review stores the settings and returns the hash that a confirmation is bound to.
func (s *Service) Review(ctx context.Context, p *rbac.Principal, o ReviewOrder) (reviewHash string, err error) {
	return "", errUnbuilt
}

// Confirmation is what the second page shows before anything is confirmed or
// approved.
type Confirmation struct {
	Batch         int64
	PlanHash      string
	ReviewHash    string
	Phrase        string // to be typed exactly
	Risk          string // "may charge 32 cards"
	NeedsApproval string // why a second person is asked; empty: not
	Nonce         string // one use, for this person and review
}

// Confirming prepares the second page: for a planned batch the confirmation,
// for a waiting one the approval. Errors: Conflict that says what is missing
// (not reviewed, stale plan, another state), Forbidden.
func (s *Service) Confirming(ctx context.Context, p *rbac.Principal, batch int64) (Confirmation, error) {
	return Confirmation{}, errUnbuilt
}

// ConfirmOrder is the second confirmation. The caller has checked the step-up.
type ConfirmOrder struct {
	Batch      int64
	PlanHash   string
	ReviewHash string
	Phrase     string
	Nonce      string // of the page; empty for a token, whose use is once by the batch's state
}

// Confirm orders the batch, or asks a second person. It answers the batch's
// new state. The same confirmation twice is a Conflict that changes nothing.
func (s *Service) Confirm(ctx context.Context, p *rbac.Principal, o ConfirmOrder) (state string, err error) {
	return "", errUnbuilt
}

// Approve is the second person's word: never the first's, nor one of their tokens.
func (s *Service) Approve(ctx context.Context, p *rbac.Principal, o ConfirmOrder) (state string, err error) {
	return "", errUnbuilt
}

// Pause stops releases of a batch within a second.
func (s *Service) Pause(ctx context.Context, p *rbac.Principal, batch int64, reason string) error {
	return errUnbuilt
}

// Resume lets a paused batch go on. After a stop by itself it takes a reason
// and begins with a new canary.
func (s *Service) Resume(ctx context.Context, p *rbac.Principal, batch int64, reason string) error {
	return errUnbuilt
}

// SetRate changes the rate of a batch under way, downwards only.
func (s *Service) SetRate(ctx context.Context, p *rbac.Principal, batch int64, perMinute int) error {
	return errUnbuilt
}

// Cancel ends what has not left; what is out goes on to its outcome. It also
// withdraws a batch that was only planned or waits for approval. It returns
// how many it stops and how many are out.
func (s *Service) Cancel(ctx context.Context, p *rbac.Principal, batch int64, reason string) (stops, out int64, err error) {
	return 0, 0, errUnbuilt
}

// Hold is a stop of all replays of an environment, of a type in it, or of a
// destination.
type Hold struct {
	ID          int64
	Environment string
	JobType     string // empty: not limited to a type
	Destination string // empty: not limited to a destination
	Reason      string
	PlacedBy    string
	PlacedAt    time.Time
}

// PlaceHold holds replays at once, in every process; the reason may follow. A
// hold that is in force already is returned as it is.
func (s *Service) PlaceHold(ctx context.Context, p *rbac.Principal, h Hold) (id int64, err error) {
	return 0, errUnbuilt
}

// ExplainHold adds the reason of a hold later.
func (s *Service) ExplainHold(ctx context.Context, p *rbac.Principal, id int64, reason string) error {
	return errUnbuilt
}

// LiftHold ends a hold; it takes a reason.
func (s *Service) LiftHold(ctx context.Context, p *rbac.Principal, id int64, reason string) error {
	return errUnbuilt
}

// Holds are those in force that the principal may see, the newest first.
func (s *Service) Holds(ctx context.Context, p *rbac.Principal) ([]Hold, error) {
	return nil, errUnbuilt
}
