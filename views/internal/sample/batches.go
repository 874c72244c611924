package sample

import (
	"time"

	"github.com/redrive-dlq/redrive/views/batches"
	"github.com/redrive-dlq/redrive/views/component"
	"github.com/redrive-dlq/redrive/views/holds"
	"github.com/redrive-dlq/redrive/views/layout"
	"github.com/redrive-dlq/redrive/views/route"
)

const planHash = "60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752"

// Ran is a batch of e-mails that is under way.
func Ran(theme string) batches.RunProps {
	return batches.RunProps{
		Head: batches.Head{Page: onBatch("1,260 of 4,000 replays of send_welcome_email have ended, production", theme, "production"),
			Row: batches.Row{ID: "41", Type: "send_welcome_email", Environment: "production", State: "running", Planned: 4112, Eligible: 4000, Ended: 1260, Failed: 36, By: "oncall@demo.test", Reason: "The provider is back.", At: ago(14 * time.Minute)}},
		Progress: batches.Progress{Succeeded: 1180, AlreadyDone: 30, Failed: 36, Skipped: 14, Out: 60, Left: 2680},
		Figures: []batches.Figure{{Label: "Leaving now", Value: "1.9 a second", Note: "at most 2 a second (120 a minute)"}, {Label: "Time left", Value: "about 22 min", Note: "at 120 a minute"},
			{Label: "Canary of 10", Value: "passed", Note: "9 succeeded, 1 failed, at 02:51 UTC"}, {Label: "Failed of those judged", Value: "2 %", Note: "36 of 1,246; it stops above 20 %"}},
		Waits: []batches.Wait{{Tone: "warning", Icon: "pause", Bold: "River app-production, queue mail has been failing for 12 min.", Text: "3 replays at most try it at 03:05 UTC; what waits keeps its place.", Href: route.Targets, Link: "See targets"}},
		Failures: []batches.Failure{{Fingerprint: "a1", Message: "502 from the mail provider after ‹number› ms", Count: 31, Same: true, Href: route.Group("a1")},
			{Fingerprint: "b2", Message: "no template ‹id› for locale ‹text›", Count: 5, Href: route.Group("b2")}},
		Skips: []batches.Reason{{Word: "an earlier one of its entity failed", Count: 11}, {Word: "the job changed since the plan", Count: 3}},
		Items: sampleItems(),
		Who:   sampleWho(),
		Trail: Entries()[:1],
		Can:   batches.Can{Pause: true, Rate: true, Cancel: true, Hold: []batches.HoldOffer{{Target: holds.Target{Environment: "production", Type: "send_welcome_email"}, Word: "Hold all replays of send_welcome_email in production"}, {Target: holds.Target{Environment: "production"}, Word: "Hold all replays in production"}}},
	}
}

func sampleItems() batches.Items {
	return batches.Items{
		Tabs: []batches.Tab{{Word: "All", Href: "/batches/41", Count: 4000, Current: true}, {Word: "Failed", Href: "/batches/41?outcome=failed", Count: 36}, {Word: "Out", Href: "/batches/41?outcome=released", Count: 60}, {Word: "Waiting", Href: "/batches/41?outcome=ready", Count: 2680}},
		Rows: []batches.Item{
			{JobID: "1000", Label: "wel_8821", State: "succeeded", Result: "msg_01HX3", Sent: ago(4 * time.Minute), Ended: ago(4*time.Minute - time.Second), Version: 2, Canary: true},
			{JobID: "1001", Label: "wel_8822", State: "failed", Why: "502 from the mail provider after 1250 ms", Sent: ago(4 * time.Minute), Ended: ago(3 * time.Minute), Version: 1, Next: "open again, generation 3"},
			{JobID: "1002", Label: "wel_8823", State: "skipped", Why: "an earlier replay of customer:77 failed", Version: 1},
			{JobID: "1003", Label: "wel_8824", State: "released", Sent: ago(2 * time.Second), Version: 1},
		},
		Pages: component.Pages{Next: "/batches/41?cursor=x"},
	}
}

func sampleWho() batches.Who {
	return batches.Who{SideEffects: []string{"sends one e-mail to the customer"}, Selected: "type:send_welcome_email status:open env:production", Cutoff: ago(40 * time.Minute), PlannedBy: "operator@demo.test", PlannedAt: ago(39 * time.Minute),
		Reason: "The provider is back; customers wait for these.", ReviewedBy: "oncall@demo.test", ReviewedAt: ago(25 * time.Minute), ConfirmedBy: "oncall@demo.test", ConfirmedAt: ago(24 * time.Minute),
		NeedsWord: "4,000 are above the 1,000 that one person may release in 24 hours", ApprovedBy: "approver@demo.test", ApprovedAt: ago(20 * time.Minute), DueAt: ago(15 * time.Minute), StartedAt: ago(15 * time.Minute),
		Destination: "River app-production, queue mail", Settings: "120 a minute, 10 first", PlanHash: planHash, PlanRevision: 1, ReviewHash: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}
}

func onBatch(title, theme, environment string) layout.Page {
	return themed(frame(title, layout.SectionBatches, environment, route.Batches), theme)
}

// StoppedRun is a batch that stopped by itself.
func StoppedRun(theme string) batches.RunProps {
	p := Ran(theme)
	p.Page.Title, p.State, p.Waits = "Replays of send_welcome_email stopped by themselves: 6 of 20 failed, production", "paused", nil
	p.Progress = batches.Progress{Succeeded: 14, Failed: 6, Left: 3980}
	p.Figures = []batches.Figure{p.Figures[1], {Label: "Canary of 10", Value: "stopped it", Note: "4 succeeded, 6 failed"}, {Label: "Failed of those judged", Value: "30 %", Note: "6 of 20; it stops by itself above 20 %"}}
	p.Failures, p.Skips = []batches.Failure{{Message: p.Failures[0].Message, Count: 6, Same: true, Href: p.Failures[0].Href}}, nil
	p.Stopped = &batches.Stopped{Why: "6 of 20 failed (limit 20 %)", Canary: 10, Groups: p.Failures}
	p.Can = batches.Can{Resume: true, Rate: true, Cancel: true, Hold: p.Can.Hold}
	return p
}

// Reported is the report of a batch that has ended.
func Reported(theme string) batches.ReportProps {
	return batches.ReportProps{
		Head: batches.Head{Page: onBatch("3,760 of 4,000 send_welcome_email are done, 112 failed, production", theme, "production"),
			Row: batches.Row{ID: "40", Type: "send_welcome_email", Environment: "production", State: "done", Planned: 4112, Eligible: 4000, Ended: 4000, Failed: 112, By: "oncall@demo.test", At: ago(3 * time.Hour)}},
		Final: true, Planned: 4112,
		Progress: batches.Progress{Succeeded: 3700, AlreadyDone: 60, Failed: 112, Unconfirmed: 4, Skipped: 124},
		Sums: []batches.Sum{{State: "succeeded", Means: "The effect happened by this replay.", Count: 3700, Href: "/batches/40?outcome=succeeded"}, {State: "already_done", Means: "The effect was in place: nothing was done twice.", Count: 60},
			{State: "failed", Means: "The job is open again, one generation further.", Count: 112, Href: "/batches/40?outcome=failed"}, {State: "skipped", Means: "Not sent: something changed since the plan.", Count: 124},
			{State: "unconfirmed", Means: "No outcome came: whether the effect happened is unknown.", Count: 4}, {State: "cancelled", Means: "Ended before it left.", Count: 0}, {State: "blocked", Means: "The plan left it out.", Count: 112}},
		SameWay: []batches.Failure{{Message: "502 from the mail provider after ‹number› ms", Count: 100, Same: true, Href: route.Group("a1")}},
		NewWay:  []batches.Failure{{Message: "no template ‹id› for locale ‹text›", Count: 12, Href: route.Group("b2")}},
		Skips:   []batches.Reason{{Word: "an earlier one of its entity failed", Count: 120}, {Word: "the job changed since the plan", Count: 4}},
		Blocked: []batches.Reason{{Word: "invalid input", Lift: "an edit of the payload, or a declared fix", Count: 90, Href: "/batches/40?verdict=invalid_input"}, {Word: "its effect is done already", Lift: "nothing to do", Count: 22}},
		Items:   sampleItems(), Who: sampleWho(), Trail: Entries()[:2], CanExport: true, CanPlanFailed: true,
	}
}

func batchPages(theme string) []Page {
	row := batches.Row{ID: "41", Type: "send_welcome_email", Environment: "production", State: "succeeded", Planned: 1, Eligible: 1, Ended: 1, By: "oncall@demo.test", Reason: "Address corrected, the customer waits.", At: ago(4 * time.Minute)}
	asked := batches.Row{ID: "44", Type: "charge_card", Environment: "production", State: "waiting", Planned: 34, Eligible: 32, By: "oncall@demo.test", Reason: "The gateway has confirmed that none of these went through.", At: ago(9 * time.Minute)}
	running := Ran("").Row
	page := func(title, environment string) layout.Page { return onBatch(title, theme, environment) }
	tabs := []batches.Tab{{Word: "All", Href: route.Batches, Count: -1, Current: true}, {Word: "Waiting for approval", Href: "/batches?state=waiting", Count: -1}, {Word: "Under way", Href: "/batches?state=running", Count: -1}, {Word: "Ended", Href: "/batches?state=done", Count: -1}}
	return []Page{
		{"batches", "batches", batches.List(batches.ListProps{Page: page("Batches of replays, newest first", ""), Asked: []batches.Row{asked}, Tabs: tabs, Rows: []batches.Row{asked, running, row, {ID: "39", Type: "charge_card", Environment: "staging", State: "planned", Planned: 28, Eligible: 17, By: "operator@demo.test", At: ago(44 * time.Minute)}}})},
		{"batches-none", "no batches", batches.List(batches.ListProps{Page: page("No batches yet", "")})},
		{"batch", "batch", batches.View(batches.Props{Head: batches.Head{Page: page("Replay of one send_welcome_email succeeded, production", "production"), Row: row}, SideEffects: []string{"send one e-mail to the customer"}, EndedAt: ago(3 * time.Minute), PlanHash: planHash, Progress: batches.Progress{Succeeded: 1}, Items: batches.Items{Rows: sampleItems().Rows[:1]}, Trail: Entries()[:1]})},
		{"batch-run", "batch under way", batches.Run(Ran(theme))},
		{"batch-stopped", "batch that stopped", batches.Run(StoppedRun(theme))},
		{"batch-report", "report of a batch", batches.Report(Reported(theme))},
		{"batch-cancel", "cancelling a batch", batches.Command(batches.CommandProps{Page: page("Cancel batch 41, 4,000 send_welcome_email in production?", "production"), Row: running, Here: "Cancel", Progress: Ran("").Progress, Action: route.BatchCancel("41"), Consequence: "This stops 2,680; 60 are out and go on to their outcome. What is stopped never leaves by this batch, and its jobs are open again. A cancelled batch can't be resumed.", ReasonMust: true, Danger: true, Button: "Cancel 2,680 replays", Back: "Keep it, change nothing"})},
		{"batch-rate", "slowing a batch", batches.Command(batches.CommandProps{Page: page("Slow down batch 41, 4,000 send_welcome_email in production?", "production"), Row: running, Here: "Slow down", Progress: Ran("").Progress, Action: route.BatchRate("41"), Consequence: "From the next second on it leaves at this rate.", NoReason: true, Rate: &batches.RateField{Now: 120, Value: "200", Error: "Choose a rate of at least 1 and below the 120 a minute of now.", Hint: "Below the 120 a minute of now."}, Problem: "Nothing was done. Choose a rate of at least 1 and below the 120 a minute of now.", Button: "Slow it down", Back: "Keep the rate"})},
	}
}

func holdPages(theme string) []Page {
	held := func(title string) layout.Page {
		p := themed(frame(title, layout.SectionBatches, "production", route.Holds), theme)
		p.Holds = []layout.Hold{{Environment: "production", What: "All replays of charge_card in production", By: "oncall@demo.test", Since: ago(22 * time.Minute), Reason: "Double charges reported by two customers."},
			{Environment: "production", What: "All replays to River app-production, queue mail in production", By: "operator@demo.test", Since: ago(26 * time.Hour)}}
		return p
	}
	rows := []holds.Row{{ID: "7", What: "All replays of charge_card in production", Environment: "production", Reason: "Double charges reported by two customers.", By: "oncall@demo.test", Since: ago(22 * time.Minute), Waits: 2, CanLift: true},
		{ID: "6", What: "All replays to River app-production, queue mail in production", Environment: "production", By: "operator@demo.test", Since: ago(26 * time.Hour), CanLift: true}}
	return []Page{
		{"holds", "holds", holds.View(holds.Props{Page: held("2 holds are in force, production"), Rows: rows, Offers: []holds.Offer{{Environment: "production", All: true, Types: []string{"send_welcome_email", "send_invoice"}, Destinations: []component.Choice{{Value: "river:app-production/billing", Word: "River app-production, queue billing"}}}}})},
		{"holds-none", "no holds", holds.View(holds.Props{Page: themed(frame("No replay is held", layout.SectionBatches, "", route.Holds), theme)})},
		{"hold-lift", "lifting a hold", holds.Act(holds.ActProps{Page: held("Lift the hold of all replays of charge_card in production?"), Row: rows[0], Lift: true})},
	}
}
