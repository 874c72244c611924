package web

import (
	"context"
	"time"

	"github.com/a-h/templ"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/dlq/ledger"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/dlq/redact"
	"github.com/redrive-dlq/redrive/rbac"
	"github.com/redrive-dlq/redrive/views/job"
	"github.com/redrive-dlq/redrive/views/route"
)

// jobActs are the acts with one form each; edit and replay have files of their
// own.
var jobActs = []jobAct{
	{
		action: route.Note, perm: rbac.Triage, name: "note", title: "Add a note to %s",
		consequence: func(dlq.TriageJob, *jobtype.Type) string { return "" },
		view: func(_ *Server, _ dlq.TriageJob, a job.Act, f actForm) templ.Component {
			a.ReasonError = f.errorAt(route.FieldText)
			return job.NoteForm(a, f.Text)
		},
		do: func(ctx context.Context, s *Server, p *rbac.Principal, j dlq.TriageJob, f actForm) error {
			return dlq.TriageNote(ctx, s.config.Pool, p, j.ID, f.Text)
		},
		done: func(actForm) string { return "The note was added." },
	},
	{
		action: route.Assign, perm: rbac.Triage, name: "assign", title: "Who looks after %s",
		consequence: func(dlq.TriageJob, *jobtype.Type) string {
			return "The job's page and lists show who looks after it. Nothing is sent, and nobody gets a message."
		},
		view: func(_ *Server, _ dlq.TriageJob, a job.Act, f actForm) templ.Component {
			return job.Assign(job.AssignProps{Act: a, Assignee: f.Assignee, AssigneeError: f.errorAt(route.FieldAssignee)})
		},
		do: func(ctx context.Context, s *Server, p *rbac.Principal, j dlq.TriageJob, f actForm) error {
			return dlq.TriageAssign(ctx, s.config.Pool, p, j.ID, f.Assignee)
		},
		done: func(f actForm) string {
			if f.Assignee == "" {
				return "Nobody looks after the job now."
			}
			return "The job is looked after by " + f.Assignee + " now."
		},
	},
	{
		action: route.Resolve, perm: rbac.Triage, name: "resolve", title: "Resolve %s",
		consequence: func(_ dlq.TriageJob, t *jobtype.Type) string {
			return "The job counts as settled elsewhere and is closed. Nothing is sent and it will not run again. One run of it " + runDoes(t) + "."
		},
		view: func(_ *Server, _ dlq.TriageJob, a job.Act, f actForm) templ.Component {
			return job.Resolve(job.ResolveProps{Act: a, Reference: f.Reference, ReferenceError: f.errorAt(route.FieldRef)})
		},
		do: func(ctx context.Context, s *Server, p *rbac.Principal, j dlq.TriageJob, f actForm) error {
			if f.Reference == "" {
				return problem.At(problem.Invalid, route.FieldRef, "Say where it was settled: a ticket, an order or a provider's id.")
			}
			return dlq.TriageResolve(ctx, s.config.Pool, p, j.ID, dlq.TriageSettling{Generation: f.generation(), Reason: f.Reason, Reference: f.Reference})
		},
		done: func(actForm) string { return "Resolved. Nothing was sent." },
	},
	{
		action: route.Discard, perm: rbac.Triage, name: "discard", title: "Discard %s",
		consequence: func(_ dlq.TriageJob, t *jobtype.Type) string {
			return "The job will not be fixed and is closed. Nothing is sent, and what a run does will not happen by it: it " + runDoes(t) +
				". It can be reopened until it is purged."
		},
		view: func(_ *Server, _ dlq.TriageJob, a job.Act, _ actForm) templ.Component { return job.Discard(a) },
		do: func(ctx context.Context, s *Server, p *rbac.Principal, j dlq.TriageJob, f actForm) error {
			return dlq.TriageDiscard(ctx, s.config.Pool, p, j.ID, dlq.TriageSettling{Generation: f.generation(), Reason: f.Reason})
		},
		done: func(actForm) string { return "Discarded. Nothing was sent." },
	},
	{
		action: route.Reopen, perm: rbac.Triage, name: "reopen", title: "Reopen %s",
		consequence: func(_ dlq.TriageJob, t *jobtype.Type) string {
			return "The job is open again, so that it can be replayed. Nothing is sent now; one run of it " + runDoes(t) + "."
		},
		view: func(_ *Server, _ dlq.TriageJob, a job.Act, _ actForm) templ.Component { return job.Reopen(a) },
		do: func(ctx context.Context, s *Server, p *rbac.Principal, j dlq.TriageJob, f actForm) error {
			return dlq.TriageReopen(ctx, s.config.Pool, p, j.ID, dlq.TriageSettling{Generation: f.generation(), Reason: f.Reason})
		},
		done: func(actForm) string { return "The job is open again. Nothing was sent." },
	},
	{
		action: route.Snooze, perm: rbac.Triage, name: "snooze", title: "Snooze %s",
		consequence: func(dlq.TriageJob, *jobtype.Type) string {
			return "The job leaves the list of open ones and opens again by itself at that time, or when it dies again. Nothing is sent meanwhile."
		},
		view: func(s *Server, _ dlq.TriageJob, a job.Act, f actForm) templ.Component {
			return job.Snooze(job.SnoozeProps{Act: a, Until: f.Until, UntilError: f.errorAt(route.FieldUntil), Now: s.people.Now()})
		},
		do: func(ctx context.Context, s *Server, p *rbac.Principal, j dlq.TriageJob, f actForm) error {
			until, err := utcMinute(route.FieldUntil, f.Until)
			if err != nil {
				return err
			}
			order := dlq.TriageSettling{Generation: f.generation(), Reason: f.Reason, Until: until}
			return dlq.TriageSnooze(ctx, s.config.Pool, p, j.ID, order, s.people.Now())
		},
		done: func(f actForm) string { return "Snoozed. The job opens again by itself." },
	},
	{
		action: route.Fix, perm: rbac.DeclareFix, name: "declare_fix", title: "Declare a fix for %s",
		consequence: func(_ dlq.TriageJob, t *jobtype.Type) string {
			return "The job may then be replayed with its payload as it is, until it dies again. Nothing is sent now; one run of it " + runDoes(t) + "."
		},
		view: func(_ *Server, _ dlq.TriageJob, a job.Act, f actForm) templ.Component {
			return job.Fix(job.FixProps{Act: a, Kind: f.Kind, Reference: f.Reference, KindError: f.errorAt(route.FieldKind), ReferenceError: f.errorAt(route.FieldRef)})
		},
		do: func(ctx context.Context, s *Server, p *rbac.Principal, j dlq.TriageJob, f actForm) error {
			fix := dlq.TriageFix{Generation: f.generation(), Kind: f.Kind, Reference: f.Reference, Reason: f.Reason}
			return dlq.TriageDeclareFix(ctx, s.config.Pool, p, j.ID, fix)
		},
		done: func(actForm) string { return "The fix is declared. Nothing was sent; the job can be replayed." },
	},
	{
		action: route.Settle, perm: rbac.SettleEffect, name: "settle", title: "How did the effect of %s end?",
		consequence: func(_ dlq.TriageJob, t *jobtype.Type) string {
			return "Nothing is sent now. If it did not happen, a replay becomes possible: one run " + runDoes(t) +
				". If it happened, this job and all open ones of its key are closed."
		},
		view: func(s *Server, j dlq.TriageJob, a job.Act, f actForm) templ.Component {
			t, _ := s.config.Types().Type(j.JobType)
			return job.Settle(job.SettleProps{Act: a, Question: effectQuestion(t), Ended: f.Ended, EffectID: f.EffectID,
				EndedError: f.errorAt(route.FieldEnded), EffectIDError: f.errorAt(route.FieldEffectID)})
		},
		do: settleAct,
		done: func(f actForm) string {
			if f.Ended == "happened" {
				return "Recorded that it happened. The job is closed, and nothing is sent again."
			}
			return "Recorded that it did not happen. The job can be replayed."
		},
	},
}

func settleAct(ctx context.Context, s *Server, p *rbac.Principal, j dlq.TriageJob, f actForm) error {
	if f.Ended != "happened" && f.Ended != "not" {
		return problem.At(problem.Invalid, route.FieldEnded, "Choose how it ended. Where nobody knows, choose nothing and look it up first.")
	}
	if f.Ended == "not" && f.EffectID != "" {
		return problem.At(problem.Invalid, route.FieldEffectID, "An effect that did not happen has no id at the provider. Empty this field, or say that it happened.")
	}
	if g := f.generation(); g != 0 && g != j.Generation {
		return problem.New(problem.Conflict, "This job died again since the page was shown. Reload it and look at the new failure first.")
	}
	// What is typed here is read by everybody, so it is kept redacted.
	return ledger.Settle(ctx, s.config.Pool, p, j.ID, ledger.Settlement{
		Happened: f.Ended == "happened", EffectID: f.EffectID, Reason: redact.Readable(f.Reason)})
}

// effectQuestion asks for what nobody knows, in the type's own words.
func effectQuestion(t *jobtype.Type) string {
	question := "Did the effect happen?"
	if t == nil {
		return question
	}
	for _, e := range t.SideEffects {
		switch e.Kind {
		case "email":
			question = "Was the e-mail sent?"
		case "money":
			question = "Was the money moved?"
		case "webhook":
			question = "Was the endpoint called?"
		case "write":
			question = "Was it written?"
		default:
			continue
		}
		return question + " One run " + e.Text + "."
	}
	return question
}

// utcMinute reads what a datetime-local field sends, as UTC. Errors: Invalid.
func utcMinute(field, text string) (time.Time, error) {
	for _, layout := range []string{"2006-01-02T15:04", "2006-01-02T15:04:05"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	if text == "" {
		return time.Time{}, problem.At(problem.Invalid, field, "Choose a time, in UTC.")
	}
	return time.Time{}, problem.At(problem.Invalid, field, "This is no time. Write it like 2026-01-31T16:05, in UTC.")
}
