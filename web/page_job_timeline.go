package web

import (
	"strconv"
	"strings"
	"time"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/views/job"
	"github.com/redrive-dlq/redrive/views/route"
)

// jobTimeline are the attempts, deaths, replays with later outcomes and edits, in
// the domain's order.
func jobTimeline(events []dlq.DetailEvent) []job.Event {
	var out []job.Event
	for _, e := range events {
		switch {
		case e.Attempt != nil:
			out = append(out, attemptEvent(e.Attempt))
		case e.Death != nil:
			out = append(out, deathEvent(e.Death))
		case e.Replay != nil:
			out = append(out, replayEvent(e.Replay))
		case e.Late != nil:
			out = append(out, lateEvent(e.Late))
		case e.Edit != nil:
			out = append(out, job.Event{Kind: "edit", Title: "Version " + strconv.Itoa(e.Edit.Version) + " by " + e.Edit.CreatedBy,
				At: job.Moment{At: e.Edit.CreatedAt}, Reason: reasonText(e.Edit.Reason)})
		}
	}
	return out
}

// deathEvent says which replay failed with the death, and leads to its batch.
func deathEvent(d *dlq.DetailDeath) job.Event {
	e := job.Event{Kind: "death", Title: "Given up: moved to the dead-letter queue", At: job.Moment{At: d.DiedAt}}
	if d.Generation > 1 {
		e.Title = "Given up again, death " + strconv.Itoa(d.Generation)
	}
	if r := d.Replay; r != nil {
		e.Title += ": " + replayName(r) + " failed again"
		e.Href = route.Batch(formatID(r.BatchID))
	}
	return e
}

// replayName names a replay, and the batch that it is one of many of.
func replayName(r *dlq.DetailReplay) string {
	if r.Single {
		return "replay " + formatID(r.ID)
	}
	return "replay " + formatID(r.ID) + " of batch " + formatID(r.BatchID)
}

// lateEvent is what was said of a replay after its first outcome.
func lateEvent(l *dlq.DetailLate) job.Event {
	e := job.Event{Kind: "replay", Title: "Later word on replay " + formatID(l.ReplayID) + "; the first outcome stands", At: job.Moment{At: l.At},
		State: l.Outcome, Code: l.Code, Message: reasonText(l.Detail)}
	if l.EffectID != "" {
		e.SideEffect = reasonText(l.EffectID)
	}
	return e
}

func attemptEvent(a *dlq.DetailAttempt) job.Event {
	e := job.Event{Kind: "attempt", Title: "Attempt " + strconv.Itoa(a.Seq), At: job.Moment{At: when(a.At), Raw: a.AtRaw, Note: a.AtNote},
		State: "failed", Worker: a.Worker, WorkerVersion: a.WorkerVersion, ErrorClass: a.ErrorClass, Message: a.Message}
	if a.ReplayID != nil {
		e.Title += ", by replay " + formatID(*a.ReplayID)
	}
	if lower := strings.ToLower(a.ErrorClass); strings.Contains(lower, "timeout") || strings.Contains(lower, "deadline") {
		e.State = "timeout"
	}
	if a.DurationMS != nil {
		e.Duration = time.Duration(*a.DurationMS) * time.Millisecond
	}
	if a.StatusCode != 0 {
		e.Code = strconv.Itoa(a.StatusCode)
	}
	if !strings.EqualFold(a.SideEffect, "none") {
		e.SideEffect = a.SideEffect
	}
	return e
}

func replayEvent(r *dlq.DetailReplay) job.Event {
	e := job.Event{Kind: "replay", Title: "Replay by " + r.By, At: job.Moment{At: r.OrderedAt}, State: r.State,
		Message: reasonText(r.OutcomeDetail), Reason: reasonText(r.Reason), Href: route.Batch(strconv.FormatInt(r.BatchID, 10))}
	if !r.Single {
		e.Title = "Replay " + formatID(r.ID) + " of batch " + formatID(r.BatchID) + " by " + r.By
	}
	if r.Outcome != "" {
		e.State = r.Outcome
	}
	if r.PayloadVersion > 1 {
		e.Title += ", payload version " + strconv.Itoa(r.PayloadVersion)
	}
	if r.Outcome == "" && r.ReleasedAt == nil && r.DueAt != nil && r.DueAt.Sub(r.OrderedAt) > time.Minute {
		e.Title += ", due " + r.DueAt.UTC().Format("2006-01-02 15:04") + " UTC"
	}
	if r.ReleasedAt != nil && r.OutcomeAt != nil {
		e.Duration = r.OutcomeAt.Sub(*r.ReleasedAt)
	}
	if r.EffectID != "" {
		e.SideEffect = reasonText(r.EffectID)
	}
	return e
}
