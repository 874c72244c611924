// Package filter is the query language of dead jobs: the same in the search
// box, the API and saved views. It reads text or a page's address into a
// Filter, writes a Filter back, and turns it into the one WHERE clause that
// list, count and plan share.
package filter

import (
	"slices"
	"time"
)

// Filter selects dead jobs. Values of one field mean or, fields mean and; what
// is empty doesn't limit. The zero Filter selects everything.
type Filter struct {
	Status, Types, Classes, Categories, Environments []string

	JobIDs, Keys, Fingerprints, Tenants, Entities, Sources, EffectIDs []string

	// Not holds what is excluded.
	Not Not

	// From is the earliest time of death, To the first one that is too late.
	From, To time.Time
	// Newer and Older are ages of the death relative to now: younger than
	// Newer, at least Older.
	Newer, Older time.Duration
}

// Not holds the excluded values of each field.
type Not struct {
	Status, Types, Classes, Categories, Environments       []string
	JobIDs, Keys, Fingerprints, Tenants, Entities, Sources []string
	EffectIDs                                              []string
}

// Field is a word of the language that takes values.
type Field string

// The fields.
const (
	Type        Field = "type"
	Class       Field = "class"
	Category    Field = "category"
	Environment Field = "env"
	Status      Field = "status"
	Source      Field = "source"
	Tenant      Field = "tenant"
	Entity      Field = "entity"
	Key         Field = "key"
	Job         Field = "job"
	Group       Field = "group"
	EffectID    Field = "effect_id" // the provider's id of the effect
)

// Words of time, which take an age or a moment.
const (
	wordOlder = "older"
	wordNewer = "newer"
)

// fieldInfo is what is known of a field. The columns are this list's: no
// column name ever comes from a request.
type fieldInfo struct {
	field   Field
	column  string
	words   []string // the only values there are; nil: any
	partial bool     // its index leaves the empty value out
	counted bool     // a dimension of the counters
	param   string   // its own query parameter; empty: only in q
	is      func(*Filter) *[]string
	not     func(*Filter) *[]string
}

// Statuses and Categories are the words of these two fields.
var (
	Statuses   = []string{"open", "snoozed", "replaying", "recovered", "resolved", "discarded"}
	Categories = []string{"transient", "throttled", "missing_state", "invalid_input", "auth", "unknown"}
)

// fields is in the order in which a filter is written out.
var fields = []fieldInfo{
	{Environment, "environment", nil, false, true, "env",
		func(f *Filter) *[]string { return &f.Environments }, func(f *Filter) *[]string { return &f.Not.Environments }},
	{Status, "status", Statuses, false, true, "status",
		func(f *Filter) *[]string { return &f.Status }, func(f *Filter) *[]string { return &f.Not.Status }},
	{Type, "job_type", nil, false, true, "type",
		func(f *Filter) *[]string { return &f.Types }, func(f *Filter) *[]string { return &f.Not.Types }},
	{Category, "category", Categories, false, true, "category",
		func(f *Filter) *[]string { return &f.Categories }, func(f *Filter) *[]string { return &f.Not.Categories }},
	{Class, "error_class", nil, false, false, "class",
		func(f *Filter) *[]string { return &f.Classes }, func(f *Filter) *[]string { return &f.Not.Classes }},
	{Group, "fingerprint", nil, false, true, "",
		func(f *Filter) *[]string { return &f.Fingerprints }, func(f *Filter) *[]string { return &f.Not.Fingerprints }},
	{Source, "source", nil, false, false, "",
		func(f *Filter) *[]string { return &f.Sources }, func(f *Filter) *[]string { return &f.Not.Sources }},
	{Tenant, "tenant", nil, true, false, "",
		func(f *Filter) *[]string { return &f.Tenants }, func(f *Filter) *[]string { return &f.Not.Tenants }},
	{Entity, "entity", nil, true, false, "",
		func(f *Filter) *[]string { return &f.Entities }, func(f *Filter) *[]string { return &f.Not.Entities }},
	{EffectID, "effect_id", nil, true, false, "",
		func(f *Filter) *[]string { return &f.EffectIDs }, func(f *Filter) *[]string { return &f.Not.EffectIDs }},
	{Job, "job_id", nil, false, false, "job",
		func(f *Filter) *[]string { return &f.JobIDs }, func(f *Filter) *[]string { return &f.Not.JobIDs }},
	{Key, "idempotency_key", nil, true, false, "key",
		func(f *Filter) *[]string { return &f.Keys }, func(f *Filter) *[]string { return &f.Not.Keys }},
}

func infoOf(name string) (fieldInfo, bool) {
	i := slices.IndexFunc(fields, func(f fieldInfo) bool { return string(f.field) == name })
	if i < 0 {
		return fieldInfo{}, false
	}
	return fields[i], true
}

// Named is the filter of what has one value in one field.
func Named(field Field, value string) Filter {
	var f Filter
	if info, ok := infoOf(string(field)); ok {
		*info.is(&f) = []string{value}
	}
	return f
}

// Is returns the distinct values that the field must have one of.
func (f Filter) Is(field Field) []string {
	f = f.normal()
	if info, ok := infoOf(string(field)); ok {
		return *info.is(&f)
	}
	return nil
}

// Empty reports whether the filter selects everything.
func (f Filter) Empty() bool { return f.String() == "" }

// Possible returns the statuses that the filter leaves possible, in their
// usual order.
func (f Filter) Possible() []string {
	var left []string
	for _, s := range Statuses {
		if (len(f.Status) == 0 || slices.Contains(f.Status, s)) && !slices.Contains(f.Not.Status, s) {
			left = append(left, s)
		}
	}
	return left
}

// Counted reports whether the filter looks only at what the counters count by,
// so that its total is known without reading the rows.
func (f Filter) Counted() bool {
	if !f.From.IsZero() || !f.To.IsZero() || f.Newer != 0 || f.Older != 0 {
		return false
	}
	for _, info := range fields {
		if !info.counted && (len(*info.is(&f)) > 0 || len(*info.not(&f)) > 0) {
			return false
		}
	}
	return true
}

// ByFingerprint reports whether the filter looks at fingerprints: the small
// counters know nothing of those.
func (f Filter) ByFingerprint() bool {
	return len(f.Fingerprints) > 0 || len(f.Not.Fingerprints) > 0
}

// normal returns the filter with sorted, distinct values and times in UTC, in
// lists of its own.
func (f Filter) normal() Filter {
	for _, info := range fields {
		for _, list := range []*[]string{info.is(&f), info.not(&f)} {
			if len(*list) == 0 {
				*list = nil
				continue
			}
			values := slices.Clone(*list)
			slices.Sort(values)
			*list = slices.Compact(values)
		}
	}
	if !f.From.IsZero() {
		f.From = f.From.UTC()
	}
	if !f.To.IsZero() {
		f.To = f.To.UTC()
	}
	return f
}
