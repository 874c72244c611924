// Package jobs is the list of dead jobs with its filters.
package jobs

import (
	"net/url"
	"time"

	"github.com/redrive-dlq/redrive/views/component"
	"github.com/redrive-dlq/redrive/views/layout"
	"github.com/redrive-dlq/redrive/views/route"
)

// Props is what the list shows. It never holds payloads.
type Props struct {
	Page layout.Page // Page.Title says what is shown: "1,284 open dead jobs, production"
	// Filter is what the address says, exactly, valid or not.
	Filter Filter
	// Types and Environments are the choices of their selects.
	Types, Environments []string
	// Problem says what is wrong with the filter, where, and how to put it
	// right; the list is then empty. ProblemAt is the word it points at.
	Problem, ProblemAt string
	Rows               []Row
	// Total is how many jobs match; More says that it is only a lower bound.
	Total int
	More  bool
	Pages component.Pages
	// Unnamed is the searched word that names no job; Elsewhere leads to the
	// same search in all environments, when it was made in one.
	Unnamed, Elsewhere string
	// CanPlan offers to plan a replay of ticked rows, or of all that match;
	// Canonical is the filter in words, empty when it would mean everything.
	CanPlan   bool
	Canonical string
	// NothingCaptured is true when the store holds no dead job at all.
	NothingCaptured bool
}

// Filter is the list's filter as it stands in the address. From and To are
// dates (2026-01-31), both inclusive, in UTC.
type Filter struct {
	Query, Status, Type, Category, Environment string
	Class, JobID, Key, From, To                string
}

// FilterFrom reads the filter from a query string.
func FilterFrom(v url.Values) Filter {
	return Filter{
		Query:       v.Get(route.ParamQuery),
		Status:      v.Get(route.ParamStatus),
		Type:        v.Get(route.ParamType),
		Category:    v.Get(route.ParamCategory),
		Environment: v.Get(route.ParamEnvironment),
		Class:       v.Get(route.ParamClass),
		JobID:       v.Get(route.ParamJob),
		Key:         v.Get(route.ParamKey),
		From:        v.Get(route.ParamFrom),
		To:          v.Get(route.ParamTo),
	}
}

// pairs lists the filter as parameter names and values, in display order.
func (f Filter) pairs() []struct{ param, label, value string } {
	return []struct{ param, label, value string }{
		{route.ParamQuery, "search", f.Query},
		{route.ParamEnvironment, "environment", f.Environment},
		{route.ParamStatus, "status", f.Status},
		{route.ParamType, "type", f.Type},
		{route.ParamCategory, "category", f.Category},
		{route.ParamClass, "error class", f.Class},
		{route.ParamJob, "job id", f.JobID},
		{route.ParamKey, "key", f.Key},
		{route.ParamFrom, "died from", f.From},
		{route.ParamTo, "died until", f.To},
	}
}

// Values writes the filter as query parameters, leaving empty ones out.
func (f Filter) Values() url.Values {
	values := url.Values{}
	for _, pair := range f.pairs() {
		if pair.value != "" {
			values.Set(pair.param, pair.value)
		}
	}
	return values
}

func (f Filter) chips() []component.Chip {
	var chips []component.Chip
	here := &url.URL{Path: route.Jobs, RawQuery: f.Values().Encode()}
	for _, pair := range f.pairs() {
		if pair.value == "" || pair.param == route.ParamStatus && pair.value == route.AnyStatus {
			continue
		}
		without := ""
		if pair.param == route.ParamStatus {
			without = route.AnyStatus // no status at all would mean open
		}
		chips = append(chips, component.Chip{
			Label:      pair.label,
			Value:      pair.value,
			RemoveHref: route.Change(here, pair.param, without),
		})
	}
	return chips
}

// Row is one dead job in the list.
type Row struct {
	ID          string // ours, for the link
	JobID       string // the source's
	Type        string
	Environment string
	Source      string
	Status      string // open, snoozed, replaying, recovered, resolved, discarded
	Effect      string // none, done or unknown; only unknown is shown
	Category    string
	ErrorClass  string
	Error       string // the redacted message; the list shows its first line
	Entity      string
	Tenant      string
	Attempts    int
	MaxAttempts int // 0: not known
	Generation  int
	// DiedAt is shown; when the source's time was implausible it is the time
	// of capture and Implausible is true.
	DiedAt      time.Time
	Implausible bool
}

func (p Props) pagerText() string {
	total := component.Count(p.Total)
	if p.More {
		total = "more than " + total
	}
	return component.Count(len(p.Rows)) + " shown of " + total
}

// columns are the list's, with one for ticks where rows can be selected.
func (p Props) columns(list ...component.Column) []component.Column {
	if !p.CanPlan {
		return list
	}
	return append([]component.Column{{Title: "Tick"}}, list...)
}

// matching is how many jobs match, in words.
func (p Props) matching() string {
	if p.More {
		return "more than " + component.Count(p.Total)
	}
	return component.Count(p.Total)
}
