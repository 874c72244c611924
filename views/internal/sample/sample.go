// Package sample makes one page of every kind with invented content, for the
// preview and for tests.
package sample

import (
	"net/url"
	"time"

	"github.com/a-h/templ"

	"github.com/redrive-dlq/redrive/views/layout"
)

// Now is the time at which the samples are looked at.
var Now = time.Date(2026, 3, 14, 3, 2, 7, 0, time.UTC)

func ago(d time.Duration) time.Time { return Now.Add(-d) }

// Page is a sample of one page. Name is part of a file's name.
type Page struct {
	Name  string
	Title string
	View  templ.Component
}

var environments = []string{"production", "staging", "development"}

// frame is the frame of a sample, for an on-call engineer who is also admin.
func frame(title string, section layout.Section, environment, path string) layout.Page {
	return layout.Page{
		Title:        title,
		Section:      section,
		Viewer:       &layout.Viewer{Email: "oncall@demo.test", Roles: []string{"oncall", "admin"}, MayAudit: true, MayAdmin: true},
		Environment:  environment,
		Environments: layout.EnvironmentLinks(&url.URL{Path: path}, environments, environment),
		OpenJobs:     1284,
		Demo:         true,
		Now:          Now,
	}
}

// All makes every sample with the given theme ("" for the system's).
func All(theme string) []Page {
	var all []Page
	for _, group := range [][]Page{entrance(theme), lists(theme), jobPages(theme), actPages(theme), tables(theme), people(theme), groupPages(theme), batchPages(theme), holdPages(theme)} {
		all = append(all, group...)
	}
	return all
}

func themed(p layout.Page, theme string) layout.Page {
	p.Theme = theme
	return p
}
