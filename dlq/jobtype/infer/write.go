package infer

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/redrive-dlq/redrive/dlq/jobtype"
)

const head = `# Drafted from the dead jobs that were seen: a beginning, not a policy. What a
# run does outside can't be seen in a dead job, so side_effects are left for you
# to fill in; "redrive types check FILE" refuses the file until they are.
`

const policy = `    # What keeps a second run from repeating the effect. This is a guess until
    # "redrive types prove" has shown it: key | unique_constraint | marker | none
    idempotency: {by: %s} # %s
    # Slow on purpose; raise it when you know what its destination bears.
    rate: {per_minute: 60, burst: 5}
    batch: {approval_above: 50, canary: 3, stop_at_failure_pct: 10}
    # How long after its death a job is still wanted:
    # valid_for: 72h
`

// Write prints the draft as YAML. It holds names that workers chose, and of
// payloads only places, never a value.
func Write(out io.Writer, w World) error {
	var b strings.Builder
	b.WriteString(head)
	environments := w.environments()
	fmt.Fprintf(&b, "environments: [%s] # the most careful one first\n", words(environments))
	if rivers := w.rivers(); len(rivers) > 0 {
		b.WriteString("\nsources:\n")
		for _, s := range rivers {
			fmt.Fprintf(&b, "  - {name: %s, environment: %s, kind: river%s}\n", word(s.Name), word(s.Environment), w.rest(s.Name))
		}
	}
	if len(w.Types) == 0 {
		b.WriteString("\n# Every type that was seen is declared, so there is nothing to add.\ntypes: {}\n")
	} else {
		b.WriteString("\ntypes:\n")
	}
	for i, t := range w.Types {
		if i > 0 {
			b.WriteByte('\n')
		}
		w.writeType(&b, t, environments)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func (w World) writeType(b *strings.Builder, t *Seen, environments []string) {
	fmt.Fprintf(b, "  %s: # %d dead jobs looked at\n", word(t.Name), t.Jobs)
	b.WriteString("    owner: \"?\"\n")
	b.WriteString("    # What one run does to the world, like {kind: email, text: sends one e-mail}; kinds: email, money, webhook, write, none\n")
	b.WriteString("    side_effects: []\n")
	by, why := "none", fmt.Sprintf("%d of %d jobs carry a key", t.WithKey, t.Jobs)
	if t.WithKey == t.Jobs {
		by, why = "key", "all jobs seen carry a key; whether the worker heeds it isn't known"
	}
	fmt.Fprintf(b, policy, by, why)
	if f := t.Fields(); len(f) > 0 {
		fmt.Fprintf(b, "    # Places seen in payloads; let people see those that hold nothing secret:\n    # redact: {show: [%s]}\n", words(f))
	}
	writeTargets(b, t, environments)
}

// writeTargets guesses: what died in a River goes back there.
func writeTargets(b *strings.Builder, t *Seen, environments []string) {
	var lines []string
	for _, environment := range environments {
		p := t.Environments[environment]
		if p == nil {
			continue
		}
		queue := "default"
		for _, q := range slices.Sorted(maps.Keys(p.Queues)) {
			if p.Queues[q] > p.Queues[queue] {
				queue = q
			}
		}
		river := ""
		for _, s := range slices.Sorted(maps.Keys(p.Sources)) {
			if p.Sources[s] == "river" && river == "" {
				river = s
			}
		}
		if river != "" {
			lines = append(lines, fmt.Sprintf("      %s: {river: {client: %s, queue: %s}, outcome_within: 15m}", word(environment), word(river), word(queue)))
		} else {
			lines = append(lines, fmt.Sprintf("      # %s: {http: {url: \"http://127.0.0.1:9010/jobs\"}, outcome_within: 15m} # died at %s",
				comment(environment), comment(strings.Join(slices.Sorted(maps.Keys(p.Sources)), ", "))))
		}
	}
	b.WriteString("    # Where replays go; without a target they can't be replayed there.\n")
	if !slices.ContainsFunc(lines, func(l string) bool { return !strings.HasPrefix(l, "      #") }) {
		b.WriteString("    # targets:\n")
	} else {
		b.WriteString("    targets:\n")
	}
	for _, l := range lines {
		b.WriteString(l + "\n")
	}
}

// environments are those of the catalogue in force, then those seen beside it,
// production first.
func (w World) environments() []string {
	var out, more []string
	if w.Catalogue != nil {
		out = slices.Clone(w.Catalogue.Environments)
	}
	for _, t := range w.Types {
		more = append(more, slices.Collect(maps.Keys(t.Environments))...)
	}
	for _, s := range w.Sources {
		more = append(more, s.Environment)
	}
	usual := []string{"production", "staging", "development"}
	slices.SortFunc(more, func(a, b string) int {
		return cmp.Or(cmp.Compare(place(usual, a), place(usual, b)), strings.Compare(a, b))
	})
	for _, e := range more {
		if !slices.Contains(out, e) {
			out = append(out, e)
		}
	}
	if len(out) == 0 {
		return usual
	}
	return out
}

func place(list []string, s string) int {
	if i := slices.Index(list, s); i >= 0 {
		return i
	}
	return len(list)
}

func (w World) rivers() []Source {
	return slices.DeleteFunc(slices.Clone(w.Sources), func(s Source) bool { return s.Kind != "river" })
}

// rest is what the catalogue in force says of a source besides its name.
func (w World) rest(name string) string {
	var s jobtype.Source
	if w.Catalogue != nil {
		s, _ = w.Catalogue.Source(name)
	}
	out := ""
	if s.Schema != "" {
		out += ", schema: " + word(s.Schema)
	}
	if s.URL != "" {
		out += ", url: " + word(s.URL)
	}
	return out
}

// plain is a word that YAML reads as itself.
var plain = regexp.MustCompile(`^[A-Za-z/][A-Za-z0-9_/.-]*$`)

// word writes a text so that YAML reads it back: JSON's strings are YAML's.
func word(s string) string {
	if plain.MatchString(s) && !slices.Contains([]string{"null", "true", "false", "yes", "no", "on", "off", "y", "n"}, strings.ToLower(s)) {
		return s
	}
	b, err := json.Marshal(s)
	if err != nil {
		panic("infer: a text can't be encoded: " + err.Error())
	}
	return string(b)
}

func words(list []string) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = word(s)
	}
	return strings.Join(out, ", ")
}

// comment keeps a text on its line.
func comment(s string) string { return strings.Join(strings.Fields(s), " ") }
