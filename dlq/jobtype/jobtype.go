// Package jobtype is the catalogue: what is declared about each type of job,
// in a YAML file that is reviewed like code. It says where replays of a type
// go in each environment, what they do outside, what protects them from doing
// it twice, what their payloads look like and what a person may change.
package jobtype

import (
	"slices"
	"time"
)

// Catalogue is one loaded file; it never changes afterwards.
type Catalogue struct {
	// Environments in their declared order, the most careful one first.
	Environments []string
	// CoolingOff are the environments where a wait stands in for the second
	// person; none unless the file says so, and never for money.
	CoolingOff []string
	// Sources where jobs die.
	Sources []Source
	types   map[string]*Type
	names   []string
	files   Files
}

// Type looks a job type up by its exact name.
func (c *Catalogue) Type(name string) (*Type, bool) {
	t, ok := c.types[name]
	return t, ok
}

// Types are all types in the order of the file.
func (c *Catalogue) Types() []*Type {
	all := make([]*Type, 0, len(c.names))
	for _, name := range c.names {
		all = append(all, c.types[name])
	}
	return all
}

// Source looks a source up by its exact name.
func (c *Catalogue) Source(name string) (Source, bool) {
	i := slices.IndexFunc(c.Sources, func(s Source) bool { return s.Name == name })
	if i < 0 {
		return Source{}, false
	}
	return c.Sources[i], true
}

// Source is a place where jobs die: it belongs to exactly one environment.
type Source struct {
	Name        string
	Environment string
	Kind        string // "river" or "http"
	Schema      string // of River's tables; empty means the search path
	URL         string // of another database, as env:NAME; empty means Redrive's own
}

// Type is the policy of one job type.
type Type struct {
	Name        string
	Owner       string
	Runbook     string // an http(s) URL or empty
	SideEffects []SideEffect
	Idempotency Idempotency
	SchemaFiles map[int]string // by payload version
	Redact      Redact
	Edits       Edits
	Rate        Rate
	Batch       Batch
	Retention   Retention
	ValidFor    time.Duration // from the death; zero means for ever
	TriageIn    time.Duration // zero means no deadline
	Targets     map[string]Target
	Checks      []Check
	schemas     schemas
	schemaSums  map[int]string // of the schema files, short
}

// SideEffect is something a run does to the world outside.
type SideEffect struct {
	Kind string // email, money, webhook, write or none
	Text string // completes "It …": "sends one e-mail to the customer"
}

// Idempotency is what keeps a second run from repeating the effect.
type Idempotency struct {
	By    string // key, unique_constraint, marker or none
	Scope string // of the ledger; empty means the type's name
	// ProviderDeduplicates declares that the provider itself refuses a second
	// effect of one key: an unknown effect may then be replayed.
	ProviderDeduplicates bool
}

// Redact says which payload places people may see, by JSON Pointer.
type Redact struct {
	Show []string
	Mask map[string]string // pointer to kind of mask
}

// Edits are the changes a person may make before a replay.
type Edits struct {
	Payload []string // JSON Pointers
	Target  bool
	Options []string
}

// Rate limits releases of a type; zero means the default, see [Type.Limit].
type Rate struct{ PerMinute, Burst, PerTenantPerMinute int }

// Batch are the rules for batches of a type; zero means the default, see
// [Type.ApprovalAbove], [Type.Canary] and [Type.StopAtFailurePct].
type Batch struct {
	ApprovalAbove, Canary, StopAtFailurePct int
	// ContinueEntity lets an entity's later replays go on after one of them
	// failed; by default they are skipped.
	ContinueEntity bool
}

// Retention is how long ended jobs are kept; zero means the default.
type Retention struct{ Recovered, Discarded time.Duration }

// Check is a read-only query that must find a row before a replay.
type Check struct {
	Name string
	SQL  string
	Args []string // JSON Pointers into the payload
}

// Target is where replays of a type go in one environment; exactly one of
// River and HTTP is set.
type Target struct {
	River *RiverTarget
	HTTP  *HTTPTarget
	// OutcomeWithin is how long after the release an outcome may take before
	// the replay counts as unconfirmed.
	OutcomeWithin time.Duration
	// Concurrency is the most replays that may be out at its destination at
	// once, all types together; zero means [DefaultConcurrency].
	Concurrency int
}

// RiverTarget re-enters a job into the River of a declared source.
type RiverTarget struct{ Client, Queue string }

// HTTPTarget posts the payload to a URL; only loopback addresses for now.
type HTTPTarget struct {
	URL    string
	Secret string // a reference (env:NAME), never the secret itself
}

// DefaultOutcomeWithin applies where a target names no deadline.
const DefaultOutcomeWithin = 15 * time.Minute

// Destination names the endpoint behind the target, for people and for limits.
func (t Target) Destination() string {
	switch {
	case t.River != nil:
		return "river:" + t.River.Client + "/" + t.River.Queue
	case t.HTTP != nil:
		return t.HTTP.URL
	}
	return ""
}
