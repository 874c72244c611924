package batches

import (
	"strconv"
	"strings"

	"github.com/redrive-dlq/redrive/views/component"
)

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
// is left out, but for what one asks first.
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
		if one.n > 0 || i < 2 || one.word == "left" && p.Ended() == 0 {
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
