package web

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redrive-dlq/redrive/dlq/board"
	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/views/component"
	"github.com/redrive-dlq/redrive/views/types"
)

// policyWords is a type's whole policy, defaults included.
func policyWords(c *jobtype.Catalogue, t *jobtype.Type, proofs []board.Proof) []types.Policy {
	one := func(name, text string) types.Policy { return types.Policy{Name: name, Texts: []string{text}} }
	rows := []types.Policy{
		one("Owner", orWord(t.Owner, "nobody")),
		{Name: "A run", Texts: orList(sideEffects(t), "does nothing outside"), Money: t.MoneyRisk()},
		one("Kept from doing it twice", idempotencyWords(t)),
	}
	proven := []string{"never; redrive types prove replays one job twice to show it"}
	if found := provenWords(t, proofs); len(found) > 0 {
		proven = nil
		for _, p := range found {
			proven = append(proven, p.Text)
		}
	}
	rows = append(rows, types.Policy{Name: "Proven", Texts: proven},
		one("Rate", rateWords(t.Limit())),
		types.Policy{Name: "Second person", Texts: secondWords(c, t)},
		one("Canary", fmt.Sprintf("the first %s of a batch leave alone; the rest follows if no more than %d %% of them fail", component.Count(t.Canary()), t.StopAtFailurePct())),
		one("Stops by itself", fmt.Sprintf("when more than %d %% of a batch's replays fail", t.StopAtFailurePct())),
		one("After a failure", entityWords(t)),
		one("Valid", validWords(t)))
	for _, check := range t.Checks {
		text := check.SQL
		if len(check.Args) > 0 {
			text += " with " + strings.Join(check.Args, ", ")
		}
		rows = append(rows, one("Check: "+check.Name, text))
	}
	rows = append(rows, types.Policy{Name: "Payload", Texts: []string{schemaWords(t)}},
		types.Policy{Name: "May be edited", Texts: orList(t.Edits.Payload, "nothing")})
	return rows
}

func secondWords(c *jobtype.Catalogue, t *jobtype.Type) []string {
	if t.ApprovalAbove() == 0 {
		return []string{"always, because it moves money"}
	}
	words := []string{"when one person releases more than " + component.Count(t.ApprovalAbove()) + " in 24 hours"}
	if cooling := coolingWords(c, t); cooling != "" {
		words = append(words, cooling)
	}
	return words
}

func entityWords(t *jobtype.Type) string {
	if t.Batch.ContinueEntity {
		return "the later replays of the same entity go on"
	}
	return "the later replays of the same entity in the batch are skipped"
}

func validWords(t *jobtype.Type) string {
	switch {
	case t.ValidFor == 0:
		return "for ever"
	case len(t.Checks) > 0:
		return days(t.ValidFor) + " after the death; an older job is taken along when its checks pass"
	}
	return days(t.ValidFor) + " after the death; an older job is taken along only with a reason"
}

func days(d time.Duration) string {
	if day := 24 * time.Hour; d > day && d%day == 0 {
		return component.Plural(int(d/day), "day", "days")
	}
	return component.Duration(d)
}

func schemaWords(t *jobtype.Type) string {
	if len(t.SchemaFiles) == 0 {
		return "any; no schema is declared"
	}
	var versions []string
	for _, v := range slices.Sorted(maps.Keys(t.SchemaFiles)) {
		versions = append(versions, fmt.Sprintf("version %d by %s", v, t.SchemaFiles[v]))
	}
	return strings.Join(versions, ", ")
}

// idle are the declared words that nothing acts on yet.
func idle(t *jobtype.Type) []string {
	var out []string
	for _, w := range []struct {
		name string
		set  bool
	}{
		{"redact", len(t.Redact.Show)+len(t.Redact.Mask) > 0},
		{"edits.target", t.Edits.Target},
		{"edits.options", len(t.Edits.Options) > 0},
		{"triage_within", t.TriageIn > 0},
		{"retention", t.Retention != jobtype.Retention{}},
	} {
		if w.set {
			out = append(out, w.name)
		}
	}
	return out
}

func orWord(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func orList(list []string, other string) []string {
	if len(list) == 0 {
		return []string{other}
	}
	return list
}
