package layout

import "time"

// heldShown is how many holds the frame names; more are only counted.
const heldShown = 2

// Hold is a stop of replays that is in force.
type Hold struct {
	Environment string
	What        string // "All replays of charge_card in production"
	By          string
	Since       time.Time
	Reason      string // redacted; empty: not given yet
}

// since is the time of day, with the date where that isn't today's.
func (h Hold) since(now time.Time) string {
	at, today := h.Since.UTC(), now.UTC()
	if at.Year() == today.Year() && at.YearDay() == today.YearDay() {
		return at.Format("15:04") + " UTC"
	}
	return at.Format("2006-01-02 15:04") + " UTC"
}

// held are the holds of the page's environment, or all of them on a page about
// every environment.
func (p Page) held() []Hold {
	if p.Environment == "" {
		return p.Holds
	}
	var here []Hold
	for _, h := range p.Holds {
		if h.Environment == p.Environment {
			here = append(here, h)
		}
	}
	return here
}
