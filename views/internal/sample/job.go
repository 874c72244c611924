package sample

import (
	"strings"
	"time"

	"github.com/redrive-dlq/redrive/views/component"
	"github.com/redrive-dlq/redrive/views/job"
	"github.com/redrive-dlq/redrive/views/layout"
	"github.com/redrive-dlq/redrive/views/route"
)

var brief = job.Brief{ID: "1000", JobID: "wel_8821", Type: "send_welcome_email", Environment: "production", Status: "open", Key: "send_welcome_email:welcome:snd_5f2a"}

const payloadText = `{
  "send_id": "snd_5f2a",
  "user_id": 9007199254740993,
  "to_email": "a•••@@example.com",
  "template_id": "welcome-3",
  "retries": 1E3,
  "ratio": -0.0,
  "api_token": "‹token›",
  "locale": "de",
  "attributes": {"plan": "team", "seats": 12, "trial": false, "coupon": null, "tags": ["new", "eu"]},
  "empty": {}
}`

const stackText = `mail.(*Client).Send(0xc000112000, {0x1, 0x2})
	/app/internal/mail/client.go:88
main.(*WelcomeWorker).Work(0xc0000b4000)
	/app/cmd/worker/welcome.go:41
github.com/riverqueue/river.(*jobExecutor).execute(0xc0001)
	/build/go/pkg/mod/github.com/riverqueue/river/job_executor.go:211
runtime.goexit()
	/usr/local/go/src/runtime/asm_amd64.s:1700`

// Detail is the sample of a job's page: the article's own example.
func Detail(theme string) job.Props {
	died := ago(51 * time.Minute)
	page := themed(frame("send_welcome_email wel_8821 is dead, production", layout.SectionJobs, "production", route.Job("1000")), theme)
	return job.Props{
		Page: page, Brief: brief,
		Source: "app-production", Queue: "mail", Tenant: "tenant-2", Entity: "customer:4711", Event: "evt_user_signed_up_77", Destination: "mail.example.test",
		Owner: "growth", Runbook: "https://runbooks.example.com/welcome-email",
		Effect: "none", Category: "invalid_input", GaveUp: "not_retryable",
		Fingerprint: "8f14e45fceea167a5a36dedd4bea2543", GroupSize: 28,
		Generation: 1, Attempts: 3, MaxAttempts: 3,
		EnqueuedAt: job.Moment{At: died.Add(-10 * time.Minute)}, DiedAt: job.Moment{At: died},
		CapturedAt: job.Moment{At: died.Add(2 * time.Second)},
		Summary:    "Failed 3 times in 10 minutes with 400 invalid recipient: the provider refused the address a•••@@example.com and sent nothing. Replaying it as it is would fail again.",
		Advice: job.Advice{
			Tone: "warning", Title: "Correct the payload, then replay",
			Text: "The input is invalid, so no number of retries helps. Correct the address, look at the difference, and replay the corrected version.", Primary: route.Edit,
		},
		Blocks: []job.Block{{Reason: "The input is invalid and has not been edited.", Lift: "Edit the payload, or declare that the cause was fixed elsewhere.", Href: route.JobAction("1000", route.Fix), Link: "Declare a fix"}},
		Payload: job.Payload{
			Kind: "json", View: "tree", Text: payloadText, Size: 318, MediaType: "application/json", Hidden: 2, Version: 1,
			Versions: []job.Version{{Number: 1, At: died}},
		},
		Headers: []job.Header{
			{Name: "traceparent", Value: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", Kind: "text"},
			{Name: "authorization", Value: "Bearer ‹token›", Kind: "text"},
			{Name: "x-empty", Kind: "empty"}, {Name: "x-null", Kind: "null"}, {Name: "trace", Value: "00ff80", Kind: "bytes"},
		},
		Error: &job.Error{
			Class: "worker.PermanentError", Message: "send welcome mail: giving up",
			Causes: []job.Cause{{Class: "mail.SendError", Message: "POST /messages: 400 Bad Request"}, {Class: "mail.InvalidRecipient", Message: "invalid recipient: a•••@@example.com"}},
			Stack:  stackText,
		},
		Timeline: timelineEvents(died),
		Ledger:   &job.Ledger{Scope: "welcome", State: "failed", By: "worker mailer-7 2.3.9", At: died},
		Related: []job.Related{
			{Title: "Same entity, customer:4711", Total: 1, Jobs: []job.RelatedJob{{ID: "1003", JobID: "crm_118", Type: "sync_contact", Status: "recovered", DiedAt: ago(30 * time.Hour)}}},
			{Title: "Same failure", Total: 28, Href: route.Jobs, Jobs: []job.RelatedJob{{ID: "1007", JobID: "wel_8833", Type: "send_welcome_email", Status: "open", DiedAt: ago(2 * time.Hour)}}},
		},
		Trail: Entries()[:2],
		Notes: []job.Note{{At: ago(20 * time.Minute), By: "operator@demo.test", Text: "Support confirmed the address with the customer.\nTicket 4412."}},
		Extra: []job.Header{{Name: "x_team_hint", Value: "growth", Kind: "text"}},
		Can:   job.Can{Edit: true, Fix: true, Resolve: true, Discard: true, Note: true},
	}
}

func timelineEvents(died time.Time) []job.Event {
	event := func(n string, at time.Time, took time.Duration) job.Event {
		return job.Event{Kind: "attempt", Title: "Attempt " + n, At: job.Moment{At: at}, State: "failed", Worker: "mailer-7", WorkerVersion: "2.3.9", Duration: took, Code: "400", ErrorClass: "mail.InvalidRecipient", Message: "invalid recipient: a•••@@example.com"}
	}
	return []job.Event{
		event("1", died.Add(-10*time.Minute), 212*time.Millisecond),
		event("2", died.Add(-8*time.Minute), 187*time.Millisecond),
		event("3", died, 4310*time.Millisecond),
		{Kind: "death", Title: "Moved to the dead-letter queue", At: job.Moment{At: died}},
		{Kind: "attempt", Title: "Attempt with a strange clock", At: job.Moment{Raw: "6261859200", Note: "implausible"}, State: "timeout", SideEffect: "began to send one e-mail"},
	}
}

// Unknown is a job whose effect nobody knows.
func Unknown(theme string) job.Props {
	p := Detail(theme)
	p.Brief = job.Brief{ID: "1001", JobID: "chg_5510", Type: "charge_card", Environment: "production", Status: "open", Key: "charge_card:order_8821"}
	p.Page.Title = "charge_card chg_5510 is dead, production"
	p.Effect, p.Category = "unknown", "unknown"
	p.Summary = "Timed out after 30 s while the payment provider was charging the card. We don't know whether the card was charged."
	p.Trouble = "payments.example.test has been failing for 12 minutes: 31 of 40 requests got 503."
	p.Advice = job.Advice{Tone: "error", Title: "Find out whether the card was charged", Text: "Look up the key charge_card:order_8821 at the provider, then record that it happened, with its id, or that it did not. Until then nothing is sent.", Primary: route.Settle}
	p.Blocks = []job.Block{{Reason: "Its effect is unknown.", Lift: "Settle the effect."}}
	p.Ledger = &job.Ledger{Scope: "charge", State: "begun", By: "worker billing-2 5.0.1", At: ago(time.Hour)}
	p.Can = job.Can{Settle: true, Discard: true, Note: true}
	p.Payload = job.Payload{Kind: "binary", View: "hex", Binary: []byte("\x08\x96\x01\x12\x07order-9\x00\xff\xfe\x1a\x05hello\x22\x02"), Size: 27, Encoding: "base64", MediaType: "application/x-protobuf", Version: 1}
	return p
}

// Recovered is an edited job that was replayed and recovered.
func Recovered(theme string) job.Props {
	p := Detail(theme)
	p.Status, p.Effect = "recovered", "done"
	p.Page.Title = "send_welcome_email wel_8821 recovered, production"
	p.Summary = "Failed 3 times with 400 invalid recipient; recovered by the replay of version 2 on 2026-03-14 02:58:11 UTC."
	p.Advice = job.Advice{Tone: "success", Title: "Nothing to do", Text: "The effect of its key happened exactly once. Replaying it again is refused."}
	p.Settled, p.Blocks = "msg_01HX3 sent", nil
	p.Payload.View, p.Payload.Version = "diff", 2
	p.Payload.Versions = append(p.Payload.Versions, job.Version{Number: 2, At: ago(5 * time.Minute), By: "oncall@demo.test", Reason: "The customer typed two at signs; support confirmed the address."})
	p.Payload.Diff = diffLines
	p.Timeline = append(p.Timeline[:4], job.Event{Kind: "edit", Title: "Version 2 by oncall@demo.test", At: job.Moment{At: ago(5 * time.Minute)}, Reason: "Support confirmed the address."},
		job.Event{Kind: "replay", Title: "Replay by oncall@demo.test", At: job.Moment{At: ago(4 * time.Minute)}, State: "succeeded", Duration: 320 * time.Millisecond, Href: route.Batch("41"), SideEffect: "sent one e-mail: msg_01HX3"})
	p.Ledger = &job.Ledger{Scope: "welcome", State: "done", Result: "msg_01HX3", By: "replay 41/1", At: ago(4 * time.Minute)}
	p.Can = job.Can{Note: true}
	return p
}

var diffLines = []component.DiffLine{
	{Kind: "place", Text: "/to_email"},
	{Kind: "gone", Text: `"a•••@@example.com"`},
	{Kind: "come", Text: `"a•••@example.com"`},
}

func jobPages(theme string) []Page {
	empty, large := Detail(theme), Detail(theme)
	empty.Payload = job.Payload{Kind: "empty", Version: 1}
	empty.Error, empty.Timeline, empty.Ledger, empty.Headers, empty.Extra = nil, nil, nil, nil, nil
	empty.Related, empty.Trail, empty.Notes, empty.Can = nil, nil, nil, job.Can{}
	empty.Key = ""
	large.Payload.View = "raw"
	large.Payload.Text = `{"rows":["` + strings.Repeat("x", 9000)
	large.Payload.Truncated, large.Payload.Size, large.Payload.Download = true, 10<<20, "/jobs/1000/payload"
	large.Error.Message = strings.Repeat("a long message ", 100)
	live := Recovered(theme)
	return []Page{
		{"job", "job: invalid input", job.Detail(Detail(theme))},
		{"job-unknown", "job: effect unknown", job.Detail(Unknown(theme))},
		{"job-recovered", "job: recovered", job.Detail(live)},
		{"job-empty", "job: nothing known", job.Detail(empty)},
		{"job-large", "job: large payload", job.Detail(large)},
	}
}
