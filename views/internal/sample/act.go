package sample

import (
	"github.com/redrive-dlq/redrive/views/job"
	"github.com/redrive-dlq/redrive/views/layout"
	"github.com/redrive-dlq/redrive/views/route"
)

func act(theme, title, consequence string) job.Act {
	return job.Act{
		Page:  themed(frame(title, layout.SectionJobs, "production", route.Job("1000")), theme),
		Brief: brief, Consequence: consequence, Version: "7",
	}
}

func actPages(theme string) []Page {
	edit := job.EditProps{Act: act(theme, "Edit the payload of wel_8821", ""), From: 1, Fields: []job.EditField{
		{Pointer: "/to_email", Now: "a•••@@example.com", Hidden: true, Value: "alex@@example", Kind: "string", Hint: "an e-mail address", Error: "This is not an e-mail address: it has two at signs."},
		{Pointer: "/locale", Now: "de", Value: "de", Kind: "string"},
		{Pointer: "/attributes", Now: `{"plan":"team"}`, Value: `{"plan":"team"}`, Kind: "json"},
	}}
	edit.ReasonError = "A reason is needed."
	diff := job.EditDiffProps{Act: act(theme, "Look at the difference before saving", ""), Fields: edit.Fields, Diff: diffLines, Size: 317, From: 1}
	diff.Reason = "The customer typed two at signs; support confirmed the address."
	replay := job.ReplayProps{
		Act:         act(theme, "Replay send_welcome_email wel_8821 in production", "The job runs again under its own job id and key."),
		SideEffects: []string{"sends one e-mail to the customer"}, Idempotency: "If this key's e-mail was already sent, the worker finds that out and sends nothing.",
		Target: "River app-production, queue mail", PayloadNote: "version 2, edited by oncall@demo.test (317 bytes)",
		Warnings: []string{"An older open job of customer:4711 is left out: sync_contact crm_118."}, Now: Now, CanReplay: true,
	}
	refused := replay
	refused.Page.Title = "A replay of wel_8821 is refused"
	refused.Earlier = "msg_01HX3, sent 2026-03-14 02:58:11 UTC by replay 41/1"
	refused.Blocks = []job.Block{{Reason: "The effect of this key is done.", Lift: "Nothing lifts this: sending again would repeat it."}}
	settle := job.SettleProps{Act: act(theme, "Was the card charged?", ""), Question: "Was the card charged for order_8821?", Provider: "payments.example.test"}
	settle.Problem = "Nothing was recorded: say how it ended."
	settle.EndedError = "Choose one."
	conflict := act(theme, "wel_8821 can't be replayed now", "")
	conflict.Problem = "This job is being replayed; wait for its end."
	return []Page{
		{"act-edit", "edit", job.EditForm(edit)},
		{"act-edit-diff", "edit, difference", job.EditDiff(diff)},
		{"act-fix", "declare a fix", job.Fix(job.FixProps{Act: act(theme, "Declare a fix for wel_8821", "The job may then be replayed with its payload as it is. Nothing is sent now."), Kind: "ticket"})},
		{"act-settle", "settle the effect", job.Settle(settle)},
		{"act-replay", "replay", job.Replay(replay)},
		{"act-replay-refused", "replay refused", job.Replay(refused)},
		{"act-resolve", "resolve", job.Resolve(job.ResolveProps{Act: act(theme, "Resolve wel_8821", "The job counts as settled elsewhere. Nothing is sent.")})},
		{"act-discard", "discard", job.Discard(act(theme, "Discard wel_8821", "The job will not be fixed. Its customer gets no welcome e-mail. It can be reopened until it is purged."))},
		{"act-reopen", "reopen", job.Reopen(act(theme, "Reopen wel_8821", "The job is open again. Nothing is sent."))},
		{"act-snooze", "snooze", job.Snooze(job.SnoozeProps{Act: act(theme, "Snooze wel_8821", "The job opens again by itself. Nothing is sent."), Now: Now})},
		{"act-assign", "assign", job.Assign(job.AssignProps{Act: act(theme, "Who looks after wel_8821", ""), Assignee: "nobody@demo.test", AssigneeError: "Nobody here has this address."})},
		{"act-conflict", "refused", job.Refused(conflict, route.Job("1000"), "See its replay")},
		{"act-note", "note", job.NoteForm(act(theme, "Add a note to wel_8821", ""), "")},
	}
}
