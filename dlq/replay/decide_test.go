package replay

import (
	"testing"
	"time"

	"github.com/redrive-dlq/redrive/dlq/jobtype"
)

// TestDecide goes through what stands in the way, and which of two things
// speaks first.
func TestDecide(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	target := jobtype.Target{HTTP: &jobtype.HTTPTarget{URL: "http://127.0.0.1:1/"}}
	typ := &jobtype.Type{Name: "mail", ValidFor: 72 * time.Hour, Idempotency: jobtype.Idempotency{By: "key"},
		Targets: map[string]jobtype.Target{"production": target}}
	dedup, editable, checked, homeless := *typ, *typ, *typ, *typ
	dedup.Idempotency.ProviderDeduplicates = true
	editable.Edits.Payload = []string{"/to"}
	checked.Checks = []jobtype.Check{{Name: "there", SQL: "select 1"}}
	homeless.Targets = nil
	for name, c := range map[string]struct {
		change func(*facts, *judging)
		code   string
		lift   Lift
	}{
		"nothing":                    {func(*facts, *judging) {}, Eligible, LiftNone},
		"no right":                   {func(_ *facts, j *judging) { j.InScope = false }, OutOfScope, LiftAskColleague},
		"done in the ledger":         {func(f *facts, _ *judging) { f.LedgerState = "done" }, KeyDone, LiftNone},
		"done by itself":             {func(f *facts, _ *judging) { f.Effect = "done" }, KeyDone, LiftNone},
		"done, and not open":         {func(f *facts, _ *judging) { f.LedgerState, f.Status = "done", "resolved" }, KeyDone, LiftNone},
		"begun":                      {func(f *facts, _ *judging) { f.LedgerState = "begun" }, EffectUnknown, LiftSettle},
		"begun, deduplicated":        {func(f *facts, j *judging) { f.LedgerState, j.Type = "begun", &dedup }, Eligible, LiftNone},
		"failed in the ledger":       {func(f *facts, _ *judging) { f.LedgerState = "failed" }, Eligible, LiftNone},
		"unknown":                    {func(f *facts, _ *judging) { f.Effect = "unknown" }, EffectUnknown, LiftSettle},
		"a twin is done":             {func(f *facts, _ *judging) { f.TwinID, f.TwinDone = 7, true }, KeyDone, LiftNone},
		"a twin is unknown":          {func(f *facts, _ *judging) { f.TwinID = 7 }, EffectUnknown, LiftNone},
		"a twin is unknown, dedup":   {func(f *facts, j *judging) { f.TwinID, j.Type = 7, &dedup }, Eligible, LiftNone},
		"its key is out":             {func(f *facts, _ *judging) { f.InFlight = 9 }, KeyInFlight, LiftWait},
		"it is out":                  {func(f *facts, _ *judging) { f.Status = "replaying" }, NotOpen, LiftWait},
		"snoozed":                    {func(f *facts, _ *judging) { f.Status = "snoozed" }, NotOpen, LiftReopen},
		"discarded":                  {func(f *facts, _ *judging) { f.Status = "discarded" }, NotOpen, LiftReopen},
		"undeclared":                 {func(_ *facts, j *judging) { j.Type = nil }, TypeUnknown, LiftCatalogue},
		"no target here":             {func(_ *facts, j *judging) { j.Type = &homeless }, NotReplayable, LiftCatalogue},
		"a printout":                 {func(f *facts, _ *judging) { f.PayloadKind = "printout" }, PayloadMissing, LiftNone},
		"no payload":                 {func(f *facts, _ *judging) { f.Stored = false }, PayloadMissing, LiftNone},
		"no payload, and invalid":    {func(f *facts, _ *judging) { f.Stored, f.Category = false, "invalid_input" }, PayloadMissing, LiftNone},
		"invalid":                    {func(f *facts, _ *judging) { f.Category = "invalid_input" }, InvalidInput, LiftDeclareFix},
		"invalid, can be edited":     {func(f *facts, j *judging) { f.Category, j.Type = "invalid_input", &editable }, InvalidInput, LiftEdit},
		"invalid, fixed":             {func(f *facts, _ *judging) { f.Category, f.Fixed = "invalid_input", true }, Eligible, LiftNone},
		"auth":                       {func(f *facts, _ *judging) { f.Category = "auth" }, AuthNotFixed, LiftDeclareFix},
		"auth, fixed":                {func(f *facts, _ *judging) { f.Category, f.Fixed = "auth", true }, Eligible, LiftNone},
		"overtaken":                  {func(f *facts, _ *judging) { f.Superseded = 5 }, Superseded, LiftNone},
		"at its age's limit":         {func(f *facts, _ *judging) { f.DiedAt = now.Add(-72 * time.Hour) }, Eligible, LiftNone},
		"too old":                    {func(f *facts, _ *judging) { f.DiedAt = now.Add(-72*time.Hour - 1) }, TooOld, LiftAllowOld},
		"too old, allowed":           {func(f *facts, j *judging) { f.DiedAt, j.AllowOld = now.Add(-80*time.Hour), true }, Eligible, LiftNone},
		"too old, a check will tell": {func(f *facts, j *judging) { f.DiedAt, j.Type = now.Add(-80*time.Hour), &checked }, Eligible, LiftNone},
		"too old and overtaken":      {func(f *facts, j *judging) { f.DiedAt, f.Superseded, j.AllowOld = now.Add(-80*time.Hour), 5, true }, Superseded, LiftNone},
	} {
		f := facts{job: job{ID: 1, Environment: "production", JobType: "mail", Status: "open", Effect: "none", Category: "transient", PayloadKind: "json"},
			DiedAt: now.Add(-time.Hour), Stored: true}
		j := judging{Environment: "production", JobType: "mail", Type: typ, InScope: true, Now: now}
		c.change(&f, &j)
		v := decide(f, j)
		if v.Code != c.code || v.Lift != c.lift {
			t.Errorf("%s: %s lifted by %q, want %s by %q", name, v.Code, v.Lift, c.code, c.lift)
		}
		if v.Detail == "" {
			t.Errorf("%s: %s says nothing", name, v.Code)
		}
		if _, ok := VerdictOf(v.Code); !ok {
			t.Errorf("%s: nobody knows what %s means", name, v.Code)
		}
	}
}

// TestVerdictsAreExplained keeps the words of verdicts complete and single.
func TestVerdictsAreExplained(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, v := range Verdicts() {
		if seen[v.Code] || v.Title == "" || v.Lifts == "" {
			t.Errorf("%s stands twice or says nothing", v.Code)
		}
		seen[v.Code] = true
	}
	for _, code := range []string{Eligible, NotOpen, KeyDone, EffectUnknown, KeyInFlight, InvalidInput, AuthNotFixed, SchemaViolation,
		TypeUnknown, NotReplayable, PayloadMissing, TargetCantCarry, OutOfScope, Duplicate, TooOld, Superseded, DependencyMissing,
		DependencyUnchecked, PayloadUnreadable, JobGone} {
		if !seen[code] {
			t.Errorf("%s isn't explained", code)
		}
	}
	if _, ok := VerdictOf("no_such_code"); ok {
		t.Error("a code of nobody is explained")
	}
}
