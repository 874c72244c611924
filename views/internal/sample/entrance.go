package sample

import (
	"math"
	"time"

	"github.com/redrive-dlq/redrive/views/layout"
	"github.com/redrive-dlq/redrive/views/login"
	"github.com/redrive-dlq/redrive/views/message"
	"github.com/redrive-dlq/redrive/views/overview"
	"github.com/redrive-dlq/redrive/views/route"
)

func entrance(theme string) []Page {
	alone := layout.Page{Title: "Sign in", Theme: theme, Now: Now}
	accounts := []login.DemoAccount{}
	for _, role := range []string{"viewer", "operator", "oncall", "approver", "auditor", "admin"} {
		accounts = append(accounts, login.DemoAccount{Email: role + "@demo.test", Role: role})
	}
	notFound := themed(frame("There is no such job here", layout.SectionJobs, "", route.Jobs), theme)
	failed := layout.Page{Title: "Something failed on our side", Theme: theme}
	empty := themed(frame("Nothing has died yet", layout.SectionOverview, "", route.Overview), theme)
	return []Page{
		{"login", "sign in", login.View(login.Props{Page: alone, Accounts: accounts, DemoPassphrase: "demo-only-passphrase"})},
		{"login-error", "sign in refused", login.View(login.Props{Page: alone, Email: "lena@example.com", Problem: "That address and passphrase do not belong together. Nothing was changed; try again.", Next: "/jobs/7"})},
		{"overview", "overview", overview.View(Overview(theme))},
		{"overview-empty", "first day", overview.View(overview.Props{Page: empty, Empty: true})},
		{"message-404", "not found", message.View(message.Props{Page: notFound, Status: "404", Text: "No dead job has the id 7, or it is outside of what you may see.", Advice: "Check the link, or search for the job id.", RequestID: "01J9Z3W2C8F4", Tone: "warning", Href: route.Jobs, Link: "Go to the jobs"})},
		{"message-500", "failed", message.View(message.Props{Page: failed, Status: "500", Text: "The page could not be made. Nothing was changed.", Advice: "Try again in a minute. If it stays, give the request id to an administrator.", RequestID: "01J9Z3W2C8F4"})},
	}
}

// Overview is the sample of the overview, with a burst in it.
func Overview(theme string) overview.Props {
	deaths := map[string][]int{}
	for i := range 336 {
		daily := 1 + math.Sin(float64(i%24)/24*2*math.Pi)
		add := func(category string, n int) { deaths[category] = append(deaths[category], n) }
		burst, rotation := 0, 0
		if i > 250 && i < 256 {
			burst = 14 + (i*7)%9
		}
		if i > 120 && i < 129 {
			rotation = 5 + i%4
		}
		add("transient", int(daily*1.4)+burst)
		add("throttled", (i*i)%3/2+burst/5)
		add("missing_state", (i*5)%7/6)
		add("invalid_input", (i*3)%5/3)
		add("auth", rotation)
		add("unknown", (i*11)%13/12)
	}
	types := []string{"send_welcome_email", "charge_card", "send_invoice", "sync_contact", "deliver_webhook", "resize_image"}
	p := overview.Props{
		Page:    themed(frame("1,284 open dead jobs, production", layout.SectionOverview, "production", route.Overview), theme),
		OpenNow: 1284, EffectUnknown: 7, DiedLastHour: 23, UsualPerHour: 6.2,
		OldestOpen: ago(12*24*time.Hour + 5*time.Hour), OldestID: "12", InFlight: 3, Succeeded: 118, Ended: 124,
		ChartStart: Now.Truncate(time.Hour).Add(-335 * time.Hour), Deaths: deaths,
		Unhealthy: []overview.Health{
			{Name: "payments.example.test", State: "failing", Text: "31 of the last 40 replays failed with 503, since 02:41 UTC", Href: route.Targets},
			{Name: "legacy-billing", State: "unknown", Text: "no document arrived for 3 d", Href: route.Sources},
		},
	}
	p.Batches = []overview.BatchRow{
		{ID: "41", Type: "send_welcome_email", Environment: "production", State: "paused", Ended: 20, Total: 4000, Note: "stopped by itself: 6 of 20 failed (limit 20 %)"},
		{ID: "44", Type: "charge_card", Environment: "production", State: "waiting", Total: 32, Asks: true},
		{ID: "43", Type: "send_invoice", Environment: "production", State: "running", Ended: 310, Total: 480},
		{ID: "45", Type: "sync_contact", Environment: "production", State: "scheduled", Total: 1200, Note: "starts at 03:05 UTC"},
	}
	p.Holds = []overview.HoldRow{{What: "All replays of deliver_webhook in production", By: "operator@demo.test", Since: ago(22 * time.Minute), Reason: "Their endpoint answers twice."}}
	p.MayHold = []string{"production"}
	p.Page.Holds = []layout.Hold{{Environment: "production", What: p.Holds[0].What, By: p.Holds[0].By, Since: p.Holds[0].Since, Reason: p.Holds[0].Reason}}
	states := []string{"succeeded", "released", "failed", "already_done", "unconfirmed", "succeeded"}
	for i, name := range types {
		daily := make([]int, 14)
		for d := range daily {
			daily[d] = (i*7 + d*d*3) % 23
		}
		p.ByType = append(p.ByType, overview.TypeRow{Type: name, Open: 611 / (i + 1), Daily: daily, Oldest: ago(time.Duration(i*31+5) * time.Hour)})
		p.Groups = append(p.Groups, overview.GroupRow{Fingerprint: "0f3a", Type: name, Class: "TimeoutError", Message: "no answer from ‹host› within ‹n› s", Open: 90 / (i + 1), Last: ago(time.Duration(i*7) * time.Minute)})
		p.UnderWay = append(p.UnderWay, overview.ReplayRow{JobID: "12", Type: name, Environment: environments[i%3], Label: "job_99" + string(rune('0'+i)), State: []string{"released", "ready", "scheduled"}[i%3], By: "oncall@demo.test", At: ago(time.Duration(-i*9) * time.Minute)})
		p.Replays = append(p.Replays, overview.ReplayRow{JobID: "12", Type: name, Environment: environments[i%3], Label: "job_88" + string(rune('0'+i)), State: states[i], By: "oncall@demo.test", At: ago(time.Duration(i*9) * time.Minute)})
	}
	return p
}
