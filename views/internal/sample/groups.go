package sample

import (
	"time"

	"github.com/redrive-dlq/redrive/views/groups"
	"github.com/redrive-dlq/redrive/views/layout"
	"github.com/redrive-dlq/redrive/views/route"
)

// groupPages are the list of groups and the page of one.
func groupPages(theme string) []Page {
	page := func(title, path string) layout.Page {
		return themed(frame(title, layout.SectionGroups, "", path), theme)
	}
	row := groups.Row{
		Fingerprint: "8f14e45fceea167a5a36dedd4bea2543", Type: "send_welcome_email", Category: "invalid_input",
		Class: "mail.InvalidRecipient", Template: "400 invalid recipient: ‹e-mail›", Open: 28, Jobs: 41,
		First: ago(300 * time.Hour), Last: ago(4 * time.Minute),
	}
	return []Page{
		{"groups", "groups", groups.List(groups.ListProps{Page: page("1 failure has open jobs", route.Groups), Rows: []groups.Row{row}})},
		{"groups-none", "no groups", groups.List(groups.ListProps{Page: page("No failure has open jobs", route.Groups)})},
		{"group", "group", groups.View(groups.Props{
			Page: page("28 open jobs failed with 400 invalid recipient", route.Group(row.Fingerprint)), Row: row,
			Diagnosis: "400s: the input is wrong, so retrying will not help.",
			Statuses:  []groups.Status{{Status: "open", Count: 28}, {Status: "recovered", Count: 13}},
			Owner:     "growth", Runbook: "https://runbooks.example.com/welcome-email",
			Latest: []groups.Job{{ID: "1000", JobID: "wel_8821", Environment: "production", Status: "open", Error: "400 invalid recipient: a•••@@example.com", DiedAt: ago(4 * time.Minute)}},
		})},
	}
}
