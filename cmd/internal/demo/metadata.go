package demo

import (
	"encoding/json"
	"fmt"
)

// The keys of River's metadata that tell Redrive what args alone don't say.
const (
	metaJob      = "redrive:job"      // about the job, written when it is inserted
	metaAttempts = "redrive:attempts" // one entry per failed attempt
	metaDeath    = "redrive:death"    // why the worker gave up, and what it knows of the effect
)

// jobFacts stand under redrive:job.
type jobFacts struct {
	Key            string `json:"idempotency_key"`
	Tenant         string `json:"tenant,omitempty"`
	Entity         string `json:"entity,omitempty"`
	Event          string `json:"event,omitempty"`
	PayloadVersion int    `json:"payload_version"`
}

// attemptFacts stand under redrive:attempts; number matches River's attempt.
type attemptFacts struct {
	Attempt       int    `json:"attempt"`
	ErrorClass    string `json:"error_class"`
	DurationMS    int64  `json:"duration_ms"`
	WorkerVersion string `json:"worker_version"`
	SideEffect    string `json:"side_effect"` // none, unknown or done
}

// deathFacts stand under redrive:death; attempt says which death they are of.
type deathFacts struct {
	Attempt       int    `json:"attempt"`
	GaveUp        string `json:"gave_up"`
	Category      string `json:"category,omitempty"`
	Reason        reason `json:"reason"`
	Effect        string `json:"effect"` // none, unknown or done
	WorkerVersion string `json:"worker_version"`
}

type reason struct {
	Code string `json:"code"`
	Text string `json:"text"`
}

// alreadyDone is the output of a run that found its effect in the ledger: the
// word by which Redrive tells it from a run that did the effect.
const alreadyDone = "already_done"

// output is what a run records that did its effect.
type output struct {
	ID string `json:"id"` // the provider's
}

func jobMetadata(f jobFacts) []byte {
	b, err := json.Marshal(map[string]any{metaJob: f})
	if err != nil {
		panic(err) // strings and numbers only
	}
	return b
}

func entity(kind string, id int64) string { return fmt.Sprintf("%s:%d", kind, id) }
