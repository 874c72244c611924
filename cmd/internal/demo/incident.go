package demo

import (
	"math/rand/v2"
	"time"
)

// historyDays is how far the seeded deaths reach back.
const historyDays = 14

// incident is a time in which many jobs died of one cause.
type incident struct {
	name     string
	percent  int // of all seeded jobs
	daysAgo  int
	hour     int // UTC, of its start
	lasts    time.Duration
	scenario func(*rand.Rand) scenario
}

// incidents are the two weeks' bad hours.
var incidents = []incident{
	{"mail provider down for an hour", 16, 3, 14, time.Hour, func(r *rand.Rand) scenario {
		return scenario{kind: pick(r, []string{"send_welcome_email", "send_welcome_email", "send_receipt"}), fault: overload}
	}},
	{"CRM key rotated overnight", 13, 6, 1, 3*time.Hour + 30*time.Minute, func(*rand.Rand) scenario {
		return scenario{kind: "sync_contact", fault: rotated}
	}},
	{"invoice renderer overloaded at month end", 8, 9, 17, 90 * time.Minute, func(*rand.Rand) scenario {
		return scenario{kind: "send_invoice", fault: overload}
	}},
	{"webhook burst throttled", 5, 1, 9, 25 * time.Minute, func(*rand.Rand) scenario {
		return scenario{kind: "deliver_webhook", fault: throttled()}
	}},
}

// moment is when a seeded job died: inside its incident, or in the noise, of
// which working hours see more.
func moment(r *rand.Rand, anchor time.Time, i *incident) time.Time {
	day := anchor.UTC().Truncate(24 * time.Hour)
	if i != nil {
		start := day.AddDate(0, 0, -i.daysAgo).Add(time.Duration(i.hour) * time.Hour)
		return start.Add(time.Duration(r.Int64N(int64(i.lasts))))
	}
	for {
		at := anchor.Add(-5 * time.Minute).Add(-time.Duration(r.Int64N(int64(historyDays*24*time.Hour - time.Hour))))
		hour := at.UTC().Hour()
		if hour >= 7 && hour < 20 || r.IntN(3) == 0 {
			return at
		}
	}
}
