package web

import (
	"fmt"
	"strings"
	"time"

	"github.com/redrive-dlq/redrive/dlq/board"
	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/dlq/redact"
	"github.com/redrive-dlq/redrive/views/component"
	"github.com/redrive-dlq/redrive/views/types"
)

// sideEffects are what a run of the type does outside, each as a sentence's end.
func sideEffects(t *jobtype.Type) []string {
	var texts []string
	for _, e := range t.SideEffects {
		switch {
		case e.Kind == "none":
		case e.Text != "":
			texts = append(texts, e.Text)
		default:
			texts = append(texts, e.Kind)
		}
	}
	return texts
}

// idempotencyWords says what keeps a second run from repeating the effect.
func idempotencyWords(t *jobtype.Type) string {
	var words string
	switch t.Idempotency.By {
	case "key":
		words = "by key, scope " + t.Scope()
	case "unique_constraint":
		words = "by a unique constraint of the application"
	case "marker":
		words = "by a marker of the application"
	default:
		words = "none: a second run repeats it"
		if !t.HasEffect() {
			words = "not needed: it does nothing outside"
		}
	}
	if t.Idempotency.ProviderDeduplicates {
		words += "; the provider refuses a second effect of one key"
	}
	return words
}

// provenWords says where and when the type's effect was shown to happen once.
func provenWords(t *jobtype.Type, proofs []board.Proof) []types.Proven {
	var out []types.Proven
	for _, p := range proofs {
		if p.JobType == t.Name {
			out = append(out, types.Proven{Environment: p.Environment, Text: "proven in " + p.Environment + ", " + p.ProvenAt.UTC().Format(time.DateOnly)})
		}
	}
	return out
}

// limitWords are the limits that people ask for first.
func limitWords(c *jobtype.Catalogue, t *jobtype.Type) []string {
	return []string{rateWords(t.Limit()), approvalWords(c, t), "canary of " + component.Count(t.Canary()) + fmt.Sprintf(", stops above %d %% failures", t.StopAtFailurePct())}
}

func rateWords(r jobtype.Rate) string {
	words := component.Count(r.PerMinute) + " a minute, " + component.Count(r.Burst) + " at once"
	if r.PerTenantPerMinute > 0 {
		words += "; " + component.Count(r.PerTenantPerMinute) + " a minute for each tenant"
	}
	return words
}

func approvalWords(c *jobtype.Catalogue, t *jobtype.Type) string {
	if t.ApprovalAbove() == 0 {
		return "always a second person"
	}
	words := "a second person above " + component.Count(t.ApprovalAbove()) + " a day"
	if cooling := coolingWords(c, t); cooling != "" {
		words += "; " + cooling
	}
	return words
}

// targetWords says where replays go: "River app-prod, queue mail; outcome within 15 min".
func targetWords(t jobtype.Target) string {
	return destinationWords(t) + "; outcome within " + component.Duration(t.OutcomeWithin)
}

// destinationWords names the endpoint behind a target.
func destinationWords(t jobtype.Target) string {
	switch {
	case t.River != nil:
		return "River " + t.River.Client + ", queue " + t.River.Queue
	case t.HTTP != nil:
		return t.HTTP.URL
	}
	return "nowhere"
}

// nowWords says how a type's replays fare; empty when nothing is under way.
func nowWords(h board.Health, environment, jobType string) string {
	for _, t := range h.Types {
		if t.Environment != environment || t.JobType != jobType || t.PerMinute+t.Waiting+t.Out == 0 {
			continue
		}
		return strings.Join([]string{component.Count(t.PerMinute) + " left in the last minute",
			component.Count(t.Waiting) + " to leave", component.Count(t.Out) + " out"}, ", ")
	}
	return ""
}

// heldWords says which hold stops a type's replays; empty: none does.
func heldWords(h board.Health, environment, jobType, destination string) string {
	for _, held := range h.Holds {
		if held.Stops(environment, jobType, destination) {
			return byWords(held)
		}
	}
	return ""
}

func byWords(h board.Held) string {
	words := "by " + h.PlacedBy + " since " + h.PlacedAt.UTC().Format("2006-01-02 15:04") + " UTC"
	if h.Reason != "" {
		words += ": " + redact.Readable(h.Reason)
	}
	return words
}
