package web

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/dlq/board"
	"github.com/redrive-dlq/redrive/rbac"
	"github.com/redrive-dlq/redrive/views/component"
	"github.com/redrive-dlq/redrive/views/job"
	"github.com/redrive-dlq/redrive/views/route"
)

// diffContext is how many unchanged lines stand around a change.
const diffContext = 3

// diffRows is how many lines of a difference are shown.
const diffRows = 2000

// diffMost is the largest copy, in bytes, that is compared for display.
const diffMost = 1 << 20

// jobPayloadProps is the shown version of the payload, redacted, in one view.
func (s *Server) jobPayloadProps(c echo.Context, p *rbac.Principal, d *dlq.Details, view string) (job.Payload, error) {
	pl := d.Payload
	out := job.Payload{Kind: pl.Kind, View: view, Size: pl.Size, Truncated: pl.Truncated, Hidden: pl.Hidden, Version: pl.Version}
	for _, v := range d.Versions {
		one := job.Version{Number: v.Version, At: v.CreatedAt, By: v.CreatedBy, Reason: reasonText(v.Reason)}
		if v.Origin == "capture" && v.Version > 1 {
			one.By = "the source" // it told the job again with another payload
		}
		out.Versions = append(out.Versions, one)
	}
	if pl.Encoding == "base64" {
		out.Encoding = pl.Encoding
	}
	switch pl.Kind {
	case "binary":
		out.Binary = pl.Text
	case "printout":
		out.Kind, out.Note = "gone", "Only a printout of the arguments is stored, so this job cannot be sent again. The headers show it."
	default:
		out.Text = string(pl.Text)
	}
	if pl.ShownSize > 0 {
		out.Download = route.JobPayload(formatID(d.Job.ID), pl.Version)
	}
	if view != "diff" || pl.Version < 2 {
		return out, nil
	}
	before, err := board.PayloadOf(c.Request().Context(), s.config.Pool, p, d.Job.ID, pl.Version-1)
	if err != nil {
		return out, err
	}
	after, err := board.PayloadOf(c.Request().Context(), s.config.Pool, p, d.Job.ID, pl.Version)
	if err != nil {
		return out, err
	}
	out.Diff = payloadDiff(before.Redacted, after.Redacted)
	return out, nil
}

// payloadDiff compares two redacted copies line by line, JSON laid out with
// one value a line.
func payloadDiff(before, after []byte) []component.DiffLine {
	if len(before) > diffMost || len(after) > diffMost {
		return []component.DiffLine{{Kind: "same", Text: "These versions are too large to be compared here."}}
	}
	if bytes.Equal(before, after) {
		return []component.DiffLine{{Kind: "same", Text: "The copies look the same: what changed is hidden in both."}}
	}
	lines := diffLines(laidOut(before), laidOut(after))
	if len(lines) > diffRows {
		lines = append(lines[:diffRows:diffRows], component.DiffLine{Kind: "same", Text: "… and more that isn't shown."})
	}
	return lines
}

func laidOut(doc []byte) []string {
	var out bytes.Buffer
	if json.Indent(&out, doc, "", "  ") == nil {
		doc = out.Bytes()
	}
	return strings.Split(string(doc), "\n")
}

// diffLines pairs lines where both have as many, as after an edit of values;
// else everything between the common beginning and end counts as changed.
func diffLines(a, b []string) []component.DiffLine {
	changed := func(i int) bool { return a[i] != b[i] }
	if len(a) != len(b) {
		return diffMiddle(a, b)
	}
	var out []component.DiffLine
	last := -1
	for i := range a {
		near := false
		for k := max(0, i-diffContext); k <= min(len(a)-1, i+diffContext); k++ {
			near = near || changed(k)
		}
		if !near {
			continue
		}
		if i > last+1 {
			out = append(out, component.DiffLine{Kind: "same", Text: "…"})
		}
		last = i
		if changed(i) {
			out = append(out, component.DiffLine{Kind: "gone", Text: component.Cut(a[i], 500)}, component.DiffLine{Kind: "come", Text: component.Cut(b[i], 500)})
			continue
		}
		out = append(out, component.DiffLine{Kind: "same", Text: component.Cut(a[i], 500)})
	}
	return out
}

// diffMiddle shows all lines between the common beginning and the common end.
func diffMiddle(a, b []string) []component.DiffLine {
	start := 0
	for start < min(len(a), len(b)) && a[start] == b[start] {
		start++
	}
	end := 0
	for end < min(len(a), len(b))-start && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	var out []component.DiffLine
	for _, side := range []struct {
		kind  string
		lines []string
	}{{"same", a[max(0, start-diffContext):start]}, {"gone", a[start : len(a)-end]}, {"come", b[start : len(b)-end]},
		{"same", a[len(a)-end : min(len(a), len(a)-end+diffContext)]}} {
		for _, line := range side.lines {
			out = append(out, component.DiffLine{Kind: side.kind, Text: component.Cut(line, 500)})
		}
	}
	return out
}
