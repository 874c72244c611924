package jobtype

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// explain flattens a validation result into the places a person has to look
// at: the leaves, in document order, without repeats.
func explain(e *jsonschema.ValidationError) []SchemaError {
	var out []SchemaError
	var walk func(*jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		if message := sentence(e.ErrorKind, len(e.Causes) > 0); message != "" {
			out = append(out, SchemaError{pointerTo(e.InstanceLocation), message})
			if _, choice := e.ErrorKind.(*kind.AnyOf); choice {
				return // its branches contradict each other; listing them confuses
			}
			if _, choice := e.ErrorKind.(*kind.OneOf); choice {
				return
			}
		}
		for _, cause := range e.Causes {
			walk(cause)
		}
	}
	walk(e)
	slices.SortStableFunc(out, func(a, b SchemaError) int { return strings.Compare(a.Pointer, b.Pointer) })
	out = slices.Compact(out)
	return out[:min(len(out), maxSchemaErrors)]
}

func pointerTo(location []string) string {
	var b strings.Builder
	for _, part := range location {
		b.WriteByte('/')
		b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(part))
	}
	return b.String()
}

// sentence puts one rule into words, without the payload's value. Kinds that
// only group others say nothing.
func sentence(k jsonschema.ErrorKind, grouped bool) string {
	switch k := k.(type) {
	case *kind.Required:
		return "lacks " + quoteAll(k.Missing)
	case *kind.DependentRequired:
		return "lacks " + quoteAll(k.Missing) + fmt.Sprintf(", needed with %q", k.Prop)
	case *kind.Dependency:
		return "lacks " + quoteAll(k.Missing) + fmt.Sprintf(", needed with %q", k.Prop)
	case *kind.AdditionalProperties:
		return "has unknown " + quoteAll(k.Properties)
	case *kind.Type:
		return fmt.Sprintf("must be %s, not %s", wordsFor(k.Want), wordFor(k.Got))
	case *kind.Enum:
		return "must be one of " + jsonAll(k.Want)
	case *kind.Const:
		return "must be " + jsonAll([]any{k.Want})
	case *kind.Format:
		return formatSentence(k.Want)
	case *kind.Pattern:
		return "doesn't have the form " + k.Want
	case *kind.MinLength:
		if k.Want == 1 {
			return "must not be empty"
		}
		return fmt.Sprintf("must have at least %d characters, not %d", k.Want, k.Got)
	case *kind.MaxLength:
		return fmt.Sprintf("must have at most %d characters, not %d", k.Want, k.Got)
	case *kind.MinItems:
		return fmt.Sprintf("must have at least %d entries, not %d", k.Want, k.Got)
	case *kind.MaxItems:
		return fmt.Sprintf("must have at most %d entries, not %d", k.Want, k.Got)
	case *kind.UniqueItems:
		return fmt.Sprintf("must not repeat entries (%d and %d are equal)", k.Duplicates[0]+1, k.Duplicates[1]+1)
	case *kind.Minimum:
		return "must be at least " + decimal(k.Want)
	case *kind.Maximum:
		return "must be at most " + decimal(k.Want)
	case *kind.ExclusiveMinimum:
		return "must be more than " + decimal(k.Want)
	case *kind.ExclusiveMaximum:
		return "must be less than " + decimal(k.Want)
	case *kind.MultipleOf:
		return "must be a multiple of " + decimal(k.Want)
	case *kind.FalseSchema:
		return "isn't allowed here"
	case *kind.AnyOf, *kind.OneOf:
		return "has none, or more than one, of the allowed forms"
	case *kind.Not:
		return "has a form that isn't allowed"
	}
	if grouped {
		return ""
	}
	return "breaks a rule of its schema"
}

func formatSentence(format string) string {
	words := map[string]string{
		"email": "is no e-mail address", "uri": "is no address (URL)", "date": "is no date (2026-03-01)",
		"date-time": "is no moment (2026-03-01T12:00:00Z)", "uuid": "is no UUID", "ipv4": "is no IPv4 address",
	}
	if s, ok := words[format]; ok {
		return s
	}
	return "is no valid " + format
}

func wordsFor(types []string) string {
	out := make([]string, len(types))
	for i, t := range types {
		out[i] = wordFor(t)
	}
	return strings.Join(out, " or ")
}

func wordFor(t string) string {
	words := map[string]string{
		"string": "text", "integer": "a whole number", "number": "a number", "boolean": "true or false",
		"object": "an object", "array": "a list", "null": "null",
	}
	if s, ok := words[t]; ok {
		return s
	}
	return t
}

// quoteAll lists names, cut so that a hostile payload can't fill a page.
func quoteAll(names []string) string {
	const most = 8
	names = slices.Sorted(slices.Values(names))
	var out []string
	for i, name := range names {
		if i == most {
			out = append(out, fmt.Sprintf("%d more", len(names)-most))
			break
		}
		if r := []rune(name); len(r) > 40 {
			name = string(r[:40]) + "…"
		}
		out = append(out, fmt.Sprintf("%q", name))
	}
	return strings.Join(out, ", ")
}

// jsonAll prints values of the schema (never of the payload).
func jsonAll(values []any) string {
	var out []string
	for _, v := range values {
		b, _ := json.Marshal(v)
		out = append(out, string(b))
	}
	return strings.Join(out, ", ")
}

func decimal(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	return strings.TrimRight(r.FloatString(6), "0")
}
