package dlq

// link tells which replay failed with which death and attempt, and gives each
// replay the outcomes that came late.
func (d *Details) link() {
	for i := range d.Replays {
		r := &d.Replays[i]
		for _, l := range d.late {
			if l.ReplayID == r.ID {
				r.Late = append(r.Late, l)
			}
		}
	}
	for i := range d.Deaths {
		death := &d.Deaths[i]
		if death.Replay = d.failedWith(death); death.Replay == nil {
			continue
		}
		death.Replay.NextGeneration = death.Generation
		if last := d.lastOf(death.Generation); last != nil && last.ReplayID == nil {
			last.ReplayID = &death.Replay.ID
		}
	}
}

// failedWith is the replay whose failure a death was: the last that left while
// the job was one generation younger. One that succeeded died of nothing.
func (d *Details) failedWith(death *DetailDeath) *DetailReplay {
	for i := len(d.Replays) - 1; i >= 0; i-- {
		r := &d.Replays[i]
		if r.Generation != death.Generation-1 || r.ReleasedAt == nil || r.ReleasedAt.After(death.CapturedAt) {
			continue
		}
		if r.Outcome == "" || r.Outcome == "failed" || r.Outcome == "unconfirmed" {
			return r
		}
	}
	return nil
}

// lastOf is the latest attempt of a generation; nil when none is known.
func (d *Details) lastOf(generation int) *DetailAttempt {
	for i := len(d.Attempts) - 1; i >= 0; i-- {
		if a := &d.Attempts[i]; a.Generation == generation {
			return a
		}
	}
	return nil
}
