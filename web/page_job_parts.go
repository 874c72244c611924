package web

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

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
