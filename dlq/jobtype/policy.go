package jobtype

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// ErrNotReplayable is wrapped by what [Type.Replayable] returns.
var ErrNotReplayable = errors.New("not replayable")

// Target is where replays go in an environment. There is no fallback from one
// environment to another: a replay never leaves its own.
func (t *Type) Target(environment string) (Target, bool) {
	target, ok := t.Targets[environment]
	return target, ok
}

// Replayable says why jobs of the type can't be replayed in an environment,
// or nil when they can.
func (t *Type) Replayable(environment string) error {
	if _, ok := t.Targets[environment]; ok {
		return nil
	}
	return fmt.Errorf("%w: %s has no target in %s; add one under targets in the catalogue", ErrNotReplayable, t.Name, environment)
}

// Scope is the ledger scope of the type's keys. Two types with one scope
// guard one effect together.
func (t *Type) Scope() string {
	if t.Idempotency.Scope != "" {
		return t.Idempotency.Scope
	}
	return t.Name
}

// Idempotent says whether something keeps a second run from repeating the
// effect: a guard, or having no effect at all.
func (t *Type) Idempotent() bool {
	return t.Idempotency.By != "none" || !t.HasEffect()
}

// HasEffect says whether a run does anything to the world outside.
func (t *Type) HasEffect() bool {
	return slices.ContainsFunc(t.SideEffects, func(e SideEffect) bool { return e.Kind != "none" })
}

// MoneyRisk says whether a run may move money.
func (t *Type) MoneyRisk() bool {
	return slices.ContainsFunc(t.SideEffects, func(e SideEffect) bool { return e.Kind == "money" })
}

// EditAllowed says whether a person may change exactly this payload place.
func (t *Type) EditAllowed(pointer string) bool { return slices.Contains(t.Edits.Payload, pointer) }

// What holds where the catalogue says nothing: slow enough to be watched.
const (
	DefaultPerMinute        = 600
	DefaultBurst            = 20
	DefaultConcurrency      = 100
	DefaultApprovalAbove    = 1000
	DefaultCanary           = 10
	DefaultStopAtFailurePct = 20
)

// CoolingOffFor is the wait that may stand in for a second person.
const CoolingOffFor = 30 * time.Minute

// Limit is the rate of the type's releases with defaults filled in; only
// PerTenantPerMinute may be zero: tenants are not capped then.
func (t *Type) Limit() Rate {
	r := t.Rate
	if r.PerMinute == 0 {
		r.PerMinute = DefaultPerMinute
		if r.Burst == 0 {
			r.Burst = DefaultBurst
		}
	}
	if r.Burst == 0 {
		r.Burst = max(1, r.PerMinute/60)
	}
	return r
}

// CoolsOff says whether, in an environment, a wait of [CoolingOffFor] stands in
// for the second person that batches of a type would need: what a team of one
// may choose. Money always takes a second person.
func (c *Catalogue) CoolsOff(environment string, t *Type) bool {
	return slices.Contains(c.CoolingOff, environment) && !t.MoneyRisk()
}

// ApprovalAbove is how many replays one person may release in 24 hours before
// a second one is asked; for money it is zero.
func (t *Type) ApprovalAbove() int {
	switch {
	case t.MoneyRisk():
		return 0
	case t.Batch.ApprovalAbove == 0:
		return DefaultApprovalAbove
	}
	return t.Batch.ApprovalAbove
}

// Canary is how many replays of a batch leave first, unless a person chooses.
func (t *Type) Canary() int {
	if t.Batch.Canary == 0 {
		return DefaultCanary
	}
	return t.Batch.Canary
}

// StopAtFailurePct is the share of failures, in percent, above which a batch
// stops by itself.
func (t *Type) StopAtFailurePct() int {
	if t.Batch.StopAtFailurePct == 0 {
		return DefaultStopAtFailurePct
	}
	return t.Batch.StopAtFailurePct
}

// InFlight is how many replays may be out at the target's destination at once.
func (t Target) InFlight() int {
	if t.Concurrency == 0 {
		return DefaultConcurrency
	}
	return t.Concurrency
}
