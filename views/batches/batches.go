// Package batches is the list of batches and the pages of one: its plan, its
// run and its report. A single replay is a batch of one.
package batches

import (
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
	Note        string // "stopped by itself: 6 of 20 failed"; empty: nothing to add
	By          string
	Reason      string
	At          time.Time
}

// Canary says how the replays that leave first fare.
type Canary struct {
	Size, Succeeded, Failed, Other, Awaited int
	PassedAt                                time.Time // zero: it is out or waits
}

// Words says how many of the canary stand where.
func (c Canary) Words() string {
	var words []string
	if c.Succeeded > 0 || c.Awaited == 0 {
		words = append(words, component.Count(c.Succeeded)+" succeeded")
	}
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
