// Package batches is the list of batches and the pages of one: its plan, its
// run and its report. A single replay is a batch of one.
package batches

import (
	"strconv"
	"strings"
	"time"

	"github.com/redrive-dlq/redrive/views/component"
	"github.com/redrive-dlq/redrive/views/holds"
	"github.com/redrive-dlq/redrive/views/layout"
)

// Row is one batch.
type Row struct {
	ID          string
	Type        string
	Environment string
	State       string
	Planned     int
	Eligible    int // of them, as the plan found
	Ended       int
	Failed      int
	By          string
	Reason      string
	At          time.Time
}

// Progress is how many replays of an ordered batch stand where; its parts add
// up to those that were ordered.
type Progress struct {
	Succeeded, AlreadyDone, Failed, Unconfirmed, Skipped, Cancelled int
	Out                                                             int // left, outcome awaited
	Left                                                            int // still to leave
}

// Done is how many have their effect in place.
func (p Progress) Done() int { return p.Succeeded + p.AlreadyDone }

// Ended is how many have an outcome.
func (p Progress) Ended() int {
	return p.Done() + p.Failed + p.Unconfirmed + p.Skipped + p.Cancelled
}

// Total is how many were ordered.
func (p Progress) Total() int { return p.Ended() + p.Out + p.Left }

// part is one part of a bar with its number.
type part struct {
	class, word string
	n           int
}

// parts are the parts of the bar in the order people read them; what is zero
// and rarely isn't is left out.
func (p Progress) parts() []part {
	all := []part{
		{"part-done", "done", p.Done()},
		{"part-failed", "failed", p.Failed},
		{"part-unconfirmed", "unconfirmed", p.Unconfirmed},
		{"part-skipped", "skipped", p.Skipped},
		{"part-cancelled", "cancelled", p.Cancelled},
		{"part-out", "out, outcome awaited", p.Out},
		{"part-left", "left", p.Left},
	}
	var shown []part
	for i, one := range all {
		if one.n > 0 || i < 2 || one.word == "left" {
			shown = append(shown, one)
		}
	}
	return shown
}

// sentence says in words what the bar shows.
func (p Progress) sentence() string {
	words := make([]string, 0, 7)
	for _, one := range p.parts() {
		words = append(words, component.Count(one.n)+" "+one.word)
	}
	return component.Count(p.Ended()) + " of " + component.Plural(p.Total(), "replay has", "replays have") + " ended: " + strings.Join(words, ", ")
}

// segment is a rectangle of the bar.
type segment struct{ class, x, width string }

// barWidth is the width of the bar in units of its drawing.
const barWidth = 1000

// segments lay the parts side by side. A part that is there is seen, however
// small it is.
func (p Progress) segments() []segment {
	var list []segment
	total, x := max(p.Total(), 1), 0
	for _, one := range p.parts() {
		if one.n == 0 || one.word == "left" {
			continue // the ground is what is left
		}
		width := min(max(barWidth*one.n/total, 4), barWidth-x)
		list = append(list, segment{one.class, strconv.Itoa(x), strconv.Itoa(width)})
		x += width
	}
	return list
}

// Canary says how the replays that leave first fare.
type Canary struct {
	Size, Succeeded, Failed, Other, Awaited int
	PassedAt                                time.Time // zero: it is out or waits
}

// Words says how many of the canary stand where.
func (c Canary) Words() string {
	words := []string{component.Count(c.Succeeded) + " succeeded"}
	if c.Failed > 0 {
		words = append(words, component.Count(c.Failed)+" failed")
	}
	if c.Other > 0 {
		words = append(words, component.Count(c.Other)+" left out")
	}
	if c.Awaited > 0 {
		words = append(words, component.Count(c.Awaited)+" awaited")
	}
	return strings.Join(words, ", ")
}

// Wait is one thing that keeps replays back, or that a person should know.
type Wait struct {
	Tone string // info, warning or error
	Icon string
	Bold string // the short of it
	Text string // and what to do
	Href string
	Link string
}

// Failure is one way in which replays of the batch failed.
type Failure struct {
	Fingerprint string
	Message     string // redacted; empty: not known yet
	Count       int
	Same        bool // the failure that it died of before
	Href        string
}

func (f Failure) message() string {
	if f.Message == "" {
		return "the failure has not been told yet"
	}
	return component.OneLine(f.Message, 200)
}

// Reason is why so many replays were skipped or blocked.
type Reason struct {
	Word  string
	Lift  string // what lifts it; empty: nothing to do
	Count int
	Href  string
}

// Can is what the person may do with the batch as it is.
type Can struct {
	Pause, Resume, Rate, Cancel bool
	Hold                        []HoldOffer
}

// HoldOffer is a button that holds more than this batch.
type HoldOffer struct {
	Target holds.Target
	Word   string
}

// Head is what every page of an ordered batch begins with.
type Head struct {
	Page layout.Page // Page.Live: its event stream
	Row
}
