package dlq

import (
	"slices"
	"time"
)

// timeline merges what happened to the job. Attempts keep the order in which
// they were sent, whatever their clocks say; a generation's attempts and death
// come before what people did about it.
func (d *Details) timeline() {
	d.Timeline = nil
	told := map[string]bool{}
	for g := 1; g <= d.Job.Generation; g++ {
		for i := range d.Attempts {
			a := &d.Attempts[i]
			if a.Generation != g || d.retold(a, told) {
				continue
			}
			d.Timeline = append(d.Timeline, DetailEvent{At: a.At, Attempt: a})
		}
		for i := range d.Deaths {
			if death := &d.Deaths[i]; death.Generation == g {
				d.Timeline = append(d.Timeline, DetailEvent{At: &death.DiedAt, Death: death})
			}
		}
		d.Timeline = append(d.Timeline, d.answers(g)...)
	}
}

// retold reports whether a source told an attempt of an earlier generation
// once more, as those do that keep a job's whole history.
func (d *Details) retold(a *DetailAttempt, told map[string]bool) bool {
	if a.At == nil {
		return false
	}
	key := a.At.UTC().Format(time.RFC3339Nano) + "\x00" + a.ErrorClass + "\x00" + a.Message
	if told[key] && a.Generation > 1 {
		return true
	}
	told[key] = true
	return false
}

// answers are the replays, their later outcomes and the edits between one death
// and the next, by time.
func (d *Details) answers(generation int) []DetailEvent {
	var events []DetailEvent
	for i := range d.Replays {
		if r := &d.Replays[i]; r.Generation == generation {
			events = append(events, DetailEvent{At: &r.OrderedAt, Replay: r})
			for k := range r.Late {
				events = append(events, DetailEvent{At: &r.Late[k].At, Late: &r.Late[k]})
			}
		}
	}
	for i := range d.Versions {
		if v := &d.Versions[i]; v.Origin == "edit" && d.generationAt(v.CreatedAt) == generation {
			events = append(events, DetailEvent{At: &v.CreatedAt, Edit: v})
		}
	}
	slices.SortStableFunc(events, func(a, b DetailEvent) int { return a.At.Compare(*b.At) })
	return events
}

// generationAt is the generation that the job was in at a time.
func (d *Details) generationAt(at time.Time) int {
	generation := 1
	for _, death := range d.Deaths {
		if !death.CapturedAt.After(at) {
			generation = max(generation, death.Generation)
		}
	}
	return generation
}
