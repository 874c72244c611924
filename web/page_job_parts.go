package web

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/dlq/filter"
	"github.com/redrive-dlq/redrive/views/job"
	"github.com/redrive-dlq/redrive/views/route"
)

// jobHeaders are the headers as the table shows them, in their order.
func jobHeaders(list []dlq.DetailHeader) []job.Header {
	out := make([]job.Header, 0, len(list))
	for _, h := range list {
		one := job.Header{Name: h.Name, Value: h.Value, Kind: "text"}
		switch h.Form {
		case "empty", "null":
			one.Kind = h.Form
		case "hex":
			one.Kind = "bytes"
		}
		if h.Note != "" {
			one.Value += " (" + h.Note + ")"
		}
		out = append(out, one)
	}
	return out
}

// jobExtra are the document's fields that nobody knows, by name.
func jobExtra(raw json.RawMessage) []job.Header {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return nil // it is our own redacted copy; an unreadable one is not shown
	}
	var out []job.Header
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		value := string(fields[name])
		var text string
		if json.Unmarshal(fields[name], &text) == nil && strings.HasPrefix(value, `"`) {
			value = text
		}
		out = append(out, job.Header{Name: name, Value: value, Kind: "text"})
	}
	return out
}

// jobError is the last attempt's error, or what the row knows without history.
func jobError(d *dlq.Details) *job.Error {
	last := d.Last()
	if last == nil {
		if d.Job.ErrorClass == "" && d.Job.ErrorMessage == "" {
			return nil
		}
		return &job.Error{Class: d.Job.ErrorClass, Message: d.Job.ErrorMessage}
	}
	e := &job.Error{Class: last.ErrorClass, Message: last.Message, Stack: last.Stack}
	for _, cause := range last.Causes {
		e.Causes = append(e.Causes, job.Cause{Class: cause.ErrorClass, Message: cause.Message})
	}
	return e
}

// jobLedger is the entry of the job's key; a key without one says so.
func jobLedger(d *dlq.Details) *job.Ledger {
	if d.Job.IdempotencyKey == "" {
		return nil
	}
	l := &job.Ledger{Scope: d.Job.KeyScope, State: "none"}
	if d.Ledger == nil {
		return l
	}
	l.State, l.Result, l.At, l.By = d.Ledger.State, d.Ledger.Result, d.Ledger.BegunAt, "the worker"
	if l.Result == "" {
		l.Result = d.Ledger.EffectID
	}
	if d.Ledger.FinishedAt != nil {
		l.At = *d.Ledger.FinishedAt
	}
	if d.Ledger.SettledBy != "" {
		l.By = d.Ledger.SettledBy + ", by hand"
	}
	return l
}

func jobRelated(j dlq.DetailJob, set dlq.DetailRelatedSet) job.Related {
	r := job.Related{Total: int(set.Total)}
	f := filter.Filter{}
	switch set.By {
	case "key":
		r.Title, f.Keys, f.Environments = "Same key", []string{j.IdempotencyKey}, []string{j.Environment}
	case "entity":
		r.Title, f.Entities, f.Environments = "Same entity, "+j.Entity, []string{j.Entity}, []string{j.Environment}
	default:
		r.Title, f.Fingerprints = "Same failure", []string{j.Fingerprint}
	}
	values := f.Values()
	values.Set(route.ParamStatus, route.AnyStatus)
	r.Href = route.Jobs + "?" + values.Encode()
	for _, other := range set.Jobs {
		r.Jobs = append(r.Jobs, job.RelatedJob{ID: strconv.FormatInt(other.ID, 10), JobID: other.JobID, Type: other.JobType, Status: other.Status, DiedAt: other.DiedAt})
	}
	return r
}

// jobTimeline are the attempts, deaths, replays and edits, in the domain's order.
func jobTimeline(events []dlq.DetailEvent) []job.Event {
	var out []job.Event
	for _, e := range events {
		switch {
		case e.Attempt != nil:
			out = append(out, attemptEvent(e.Attempt))
		case e.Death != nil:
			title := "Given up: moved to the dead-letter queue"
			if e.Death.Generation > 1 {
				title = "Given up again, death " + strconv.Itoa(e.Death.Generation)
			}
			out = append(out, job.Event{Kind: "death", Title: title, At: job.Moment{At: e.Death.DiedAt}})
		case e.Replay != nil:
			out = append(out, replayEvent(e.Replay))
		case e.Edit != nil:
			out = append(out, job.Event{Kind: "edit", Title: "Version " + strconv.Itoa(e.Edit.Version) + " by " + e.Edit.CreatedBy,
				At: job.Moment{At: e.Edit.CreatedAt}, Reason: reasonText(e.Edit.Reason)})
		}
	}
	return out
}

func attemptEvent(a *dlq.DetailAttempt) job.Event {
	e := job.Event{Kind: "attempt", Title: "Attempt " + strconv.Itoa(a.Seq), At: job.Moment{At: when(a.At), Raw: a.AtRaw, Note: a.AtNote},
		State: "failed", Worker: a.Worker, WorkerVersion: a.WorkerVersion, ErrorClass: a.ErrorClass, Message: a.Message}
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
