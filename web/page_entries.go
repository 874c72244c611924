package web

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/redrive-dlq/redrive/audit"
	"github.com/redrive-dlq/redrive/dlq/redact"
	"github.com/redrive-dlq/redrive/views/component"
	"github.com/redrive-dlq/redrive/views/route"
)

// entries are audit entries as pages show them.
func entries(records []audit.Record) []component.Entry {
	list := make([]component.Entry, 0, len(records))
	for _, r := range records {
		w := r.Words()
		e := component.Entry{ID: strconv.FormatInt(r.ID, 10), At: r.At, Actor: w.Actor, Text: w.Did, Object: w.Object,
			Environment: r.Environment, Reason: reasonText(r.Reason), From: r.Actor.IP, Refused: strings.HasSuffix(r.Action, ".refused")}
		switch {
		case r.DeadJob != 0:
			e.ObjectHref = route.Job(strconv.FormatInt(r.DeadJob, 10))
		case r.Batch != 0:
			e.ObjectHref = route.Batch(strconv.FormatInt(r.Batch, 10))
		}
		e.Before, e.After = changes(r.Details)
		list = append(list, e)
	}
	return list
}

// reasonText is a reason as people typed it, which may hold a secret.
func reasonText(text string) string { return redact.Readable(text) }

// changes writes an entry's details line by line: what it says was before, and
// the rest.
func changes(details map[string]any) (before, after string) {
	var was, is []string
	for _, name := range slices.Sorted(maps.Keys(details)) {
		line := name + ": " + detailText(details[name])
		switch {
		case name == "before" || name == "from" || strings.HasSuffix(name, "_before") || strings.HasPrefix(name, "old_"):
			was = append(was, line)
		default:
			is = append(is, line)
		}
	}
	return strings.Join(was, "\n"), strings.Join(is, "\n")
}

// detailText writes one detail: an id, a hash or a code, or a list of them.
func detailText(value any) string {
	switch v := value.(type) {
	case string:
		return redact.Readable(v)
	case json.Number:
		return v.String()
	case []any:
		var parts []string
		for _, one := range v {
			parts = append(parts, detailText(one))
		}
		return strings.Join(parts, ", ")
	case map[string]any:
		text, err := json.Marshal(v)
		if err != nil {
			return ""
		}
		return redact.Readable(string(text))
	}
	return fmt.Sprint(value)
}
