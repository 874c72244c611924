package sample

import (
	"fmt"
	"time"

	"github.com/redrive-dlq/redrive/views/component"
	"github.com/redrive-dlq/redrive/views/jobs"
	"github.com/redrive-dlq/redrive/views/layout"
	"github.com/redrive-dlq/redrive/views/route"
)

type seedRow struct {
	kind, class, message, category, entity string
}

var seeds = []seedRow{
	{"send_welcome_email", "mail.InvalidRecipient", "400 invalid recipient: a•••@@example.com", "invalid_input", "customer:4711"},
	{"charge_card", "payments.Timeout", "context deadline exceeded after 30s waiting for payments.example.test", "unknown", "order:8821"},
	{"send_invoice", "render.Unavailable", "503 Service Unavailable: renderer is restarting", "transient", "invoice:in_8842"},
	{"sync_contact", "crm.NotFound", "404 no contact ‹id› in workspace north", "missing_state", "contact:991"},
	{"deliver_webhook", "http.TooManyRequests", "429 Too Many Requests, Retry-After: 120", "throttled", "endpoint:hooks-2"},
	{"sync_contact", "crm.Unauthorized", "401 key ‹token› was rotated", "auth", "contact:17"},
	{"resize_image", "image.Decode", "unexpected EOF\nwhile reading chunk 7", "unknown", "asset:5512"},
}

var statuses = []string{"open", "open", "open", "replaying", "open", "recovered", "discarded"}

// Rows are sample rows of the job list.
func Rows(n int) []jobs.Row {
	rows := make([]jobs.Row, 0, n)
	for i := range n {
		seed := seeds[i%len(seeds)]
		row := jobs.Row{
			ID: fmt.Sprint(1000 + i), JobID: fmt.Sprintf("job_%d", 88210+i*37), Type: seed.kind,
			Environment: environments[(i/4)%3], Source: "app-" + environments[(i/4)%3], Status: statuses[i%7],
			Category: seed.category, ErrorClass: seed.class, Error: seed.message, Entity: seed.entity,
			Tenant: fmt.Sprintf("tenant-%d", i%5), Attempts: 3 + i%3, MaxAttempts: 5, Generation: 1 + i%9/8,
			DiedAt: ago(time.Duration(i*i*7+4) * time.Minute),
		}
		if seed.kind == "charge_card" {
			row.Effect = "unknown"
		}
		row.Implausible = i == 9
		rows = append(rows, row)
	}
	return rows
}

// Jobs is the sample of the job list.
func Jobs(theme string, n int) jobs.Props {
	return jobs.Props{
		Page:   themed(frame("1,284 open dead jobs, all environments", layout.SectionJobs, "", route.Jobs), theme),
		Filter: jobs.Filter{Status: "open", Type: "send_welcome_email", From: "2026-03-01"},
		Types:  []string{"send_welcome_email", "charge_card", "send_invoice"}, Environments: environments,
		Rows: Rows(n), Total: 1284,
		Pages: component.Pages{Next: route.JobsWhere(route.ParamCursor, "abc")},
	}
}

func lists(theme string) []Page {
	none, broken, fresh := Jobs(theme, 0), Jobs(theme, 0), Jobs(theme, 0)
	none.Total = 0
	broken.Total = 0
	broken.Filter = jobs.Filter{Query: "staus:open"}
	broken.Page.Search = "staus:open"
	broken.Problem, broken.ProblemAt = "There is no filter called staus; did you mean status? Words without a colon search the text.", "staus:open"
	fresh.NothingCaptured, fresh.Filter = true, jobs.Filter{}
	flash := Jobs(theme, 50)
	flash.Page.Flashes = []layout.Flash{{Tone: "success", Text: "send_welcome_email wel_8821 is discarded.", Href: "/jobs/1000", Link: "See it"}}
	return []Page{
		{"jobs", "job list", jobs.List(flash)},
		{"jobs-none", "nothing matches", jobs.List(none)},
		{"jobs-broken", "filter with a mistake", jobs.List(broken)},
		{"jobs-fresh", "empty store", jobs.List(fresh)},
	}
}
