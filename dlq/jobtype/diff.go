package jobtype

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Setting is one thing that a type's policy says, as the file writes it.
type Setting struct {
	Name  string // rate.per_minute
	Value string // 120
}

// Change is how a type differs between two catalogues.
type Change struct {
	Type  string
	What  string   // added, removed or changed
	Lines []string // of a changed one: "rate.per_minute: 120 → 60"
}

// Diff says what the newer catalogue changes, by type name.
func Diff(old, newer *Catalogue) []Change {
	var out []Change
	names := slices.Concat(old.names, newer.names)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		before, was := old.types[name]
		after, is := newer.types[name]
		switch {
		case !was:
			out = append(out, Change{Type: name, What: "added"})
		case !is:
			out = append(out, Change{Type: name, What: "removed"})
		default:
			if lines := changed(before.Settings(), after.Settings()); len(lines) > 0 {
				out = append(out, Change{Type: name, What: "changed", Lines: lines})
			}
		}
	}
	return out
}

func changed(before, after []Setting) []string {
	const nothing = "not set"
	old := map[string]string{}
	for _, s := range before {
		old[s.Name] = s.Value
	}
	var lines []string
	for _, s := range after {
		was, ok := old[s.Name]
		delete(old, s.Name)
		if !ok {
			was = nothing
		}
		if was != s.Value {
			lines = append(lines, s.Name+": "+was+" → "+s.Value)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(old)) {
		lines = append(lines, name+": "+old[name]+" → "+nothing)
	}
	return lines
}

// Settings are all that is set of the type's policy, in the order of the
// catalogue's own description; what is left to a default isn't among them.
func (t *Type) Settings() []Setting {
	var out []Setting
	set := func(name, value string) {
		if value != "" {
			out = append(out, Setting{name, value})
		}
	}
	set("owner", t.Owner)
	set("runbook", t.Runbook)
	var effects []string
	for _, e := range t.SideEffects {
		effects = append(effects, strings.TrimSpace(e.Kind+" "+e.Text))
	}
	set("side_effects", strings.Join(effects, "; "))
	set("idempotency.by", t.Idempotency.By)
	set("idempotency.scope", t.Idempotency.Scope)
	set("idempotency.provider_deduplicates", yes(t.Idempotency.ProviderDeduplicates))
	for _, version := range slices.Sorted(maps.Keys(t.SchemaFiles)) {
		set("schema."+strconv.Itoa(version), strings.TrimSpace(t.SchemaFiles[version]+" "+t.schemaSums[version]))
	}
	set("redact.show", strings.Join(t.Redact.Show, ", "))
	for _, pointer := range slices.Sorted(maps.Keys(t.Redact.Mask)) {
		set("redact.mask"+pointer, t.Redact.Mask[pointer])
	}
	set("edits.payload", strings.Join(t.Edits.Payload, ", "))
	set("edits.target", yes(t.Edits.Target))
	set("edits.options", strings.Join(t.Edits.Options, ", "))
	set("rate.per_minute", number(t.Rate.PerMinute))
	set("rate.burst", number(t.Rate.Burst))
	set("rate.per_tenant_per_minute", number(t.Rate.PerTenantPerMinute))
	set("batch.approval_above", number(t.Batch.ApprovalAbove))
	set("batch.canary", number(t.Batch.Canary))
	set("batch.stop_at_failure_pct", number(t.Batch.StopAtFailurePct))
	set("batch.continue_entity", yes(t.Batch.ContinueEntity))
	set("valid_for", length(t.ValidFor))
	set("triage_within", length(t.TriageIn))
	set("retention.recovered", length(t.Retention.Recovered))
	set("retention.discarded", length(t.Retention.Discarded))
	for _, environment := range slices.Sorted(maps.Keys(t.Targets)) {
		set("targets."+environment, t.Targets[environment].setting())
	}
	for _, c := range t.Checks {
		set("checks."+c.Name, fmt.Sprintf("%s (%s)", strings.TrimSpace(c.SQL), strings.Join(c.Args, ", ")))
	}
	return out
}

func (t Target) setting() string {
	s := t.Destination() + ", outcome within " + length(t.OutcomeWithin)
	if t.HTTP != nil && t.HTTP.Secret != "" {
		s += ", secret " + t.HTTP.Secret
	}
	if t.Concurrency > 0 {
		s += ", concurrency " + strconv.Itoa(t.Concurrency)
	}
	return s
}

func yes(b bool) string {
	if b {
		return "true"
	}
	return ""
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// length writes a duration as the file may: 30d, 72h, 15m.
func length(d time.Duration) string {
	for _, u := range []struct {
		unit time.Duration
		word string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}} {
		if d > 0 && d%u.unit == 0 {
			return strconv.Itoa(int(d/u.unit)) + u.word
		}
	}
	if d == 0 {
		return ""
	}
	return d.String()
}
