package jobtype

import (
	"errors"
	"fmt"
	"slices"
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
