package sample

import (
	"time"

	"github.com/redrive-dlq/redrive/views/account"
	"github.com/redrive-dlq/redrive/views/admin"
	"github.com/redrive-dlq/redrive/views/audit"
	"github.com/redrive-dlq/redrive/views/component"
	"github.com/redrive-dlq/redrive/views/layout"
	"github.com/redrive-dlq/redrive/views/route"
	"github.com/redrive-dlq/redrive/views/sources"
	"github.com/redrive-dlq/redrive/views/targets"
	"github.com/redrive-dlq/redrive/views/types"
)

// Entries are sample audit entries.
func Entries() []component.Entry {
	return []component.Entry{
		{ID: "91", At: ago(4 * time.Minute), Actor: "oncall@demo.test", Text: "ordered the replay of", Object: "send_welcome_email wel_8821", ObjectHref: route.Job("1000"), Environment: "production", Reason: "Address corrected, the customer waits.", From: "127.0.0.1", Before: "status open, payload version 2", After: "status replaying, replay 41/1"},
		{ID: "90", At: ago(5 * time.Minute), Actor: "oncall@demo.test", Text: "edited the payload of", Object: "send_welcome_email wel_8821", ObjectHref: route.Job("1000"), Environment: "production", Reason: "The customer typed two at signs.", From: "127.0.0.1", Before: "version 1, sha256 9f86d081884c7d65", After: "version 2 (/to_email), sha256 60303ae22b998861"},
		{ID: "89", At: ago(9 * time.Minute), Actor: "viewer@demo.test", Text: "tried to discard", Object: "charge_card chg_5510", ObjectHref: route.Job("1001"), Environment: "production", From: "127.0.0.1", Refused: true},
		{ID: "88", At: ago(2 * time.Hour), Actor: "Redrive", Text: "marked as already done", Object: "send_invoice inv_77", ObjectHref: route.Job("1002"), Environment: "staging", Reason: "Its key was done by send_invoice inv_76."},
	}
}

func tables(theme string) []Page {
	page := func(title string, section layout.Section, environment, path string) layout.Page {
		return themed(frame(title, section, environment, path), theme)
	}
	sessions := []account.Session{
		{ID: "s1", Agent: "Firefox on Linux", Address: "127.0.0.1", Created: ago(2 * time.Hour), LastSeen: ago(20 * time.Second), Expires: ago(-10 * time.Hour), Current: true},
		{ID: "s2", Agent: "Chrome on Android", Address: "192.0.2.14", Created: ago(7 * time.Hour), LastSeen: ago(25 * time.Minute), Expires: ago(-5 * time.Hour)},
	}
	return []Page{
		{"types", "types", types.View(typesProps(page("10 job types are declared, 1 is not", layout.SectionTypes, "", route.Types)))},
		{"type", "type", types.One(typeProps(page("charge_card", layout.SectionTypes, "", route.Type("charge_card"))))},
		{"sources", "sources", sources.View(sources.Props{Page: page("4 sources, 1 needs a look", layout.SectionSources, "", route.Sources), Quarantined: 1, Quarantine: []sources.Quarantined{{At: ago(time.Hour), Source: "legacy-billing", Problem: "byte 114 is not UTF-8: send payload_encoding base64", Size: 4410}}, Rows: []sources.Row{
			{Name: "app-production", Environment: "production", Kind: "River", Health: "healthy", LastSeen: ago(2 * time.Second), Jobs: 1604, Promise: "nothing, by the trigger"},
			{Name: "legacy-billing", Environment: "production", Kind: "HTTP", Health: "degraded", Text: "no document for 3 d", LastSeen: ago(72 * time.Hour), Jobs: 12, Promise: "what its workers don't send"},
		}})},
		{"targets", "targets", targets.View(targets.Props{Page: page("3 targets, 1 is failing", layout.SectionTargets, "", route.Targets), Rows: []targets.Row{
			{Name: "River app-production, queue mail", Environment: "production", Kind: "River", Types: []string{"send_welcome_email", "send_invoice"}, Health: "healthy", InFlight: 4, Limit: 8, Undelivered: 1, Succeeded: 88, Failed: 2, LastSent: ago(4 * time.Minute), Within: 15 * time.Minute},
			{Name: "River app-production, queue billing", Environment: "production", Kind: "River", Types: []string{"charge_card"}, Health: "failing", Text: "replays wait: it fails since 14:02 UTC; a few try again at 14:31 UTC; 31 of the last 40 failed with 503", Limit: 4, Held: "by oncall@demo.test since 2026-03-30 14:03 UTC: provider outage", HeldTypes: []string{"charge_card"}, Succeeded: 9, Failed: 31, LastSent: ago(11 * time.Minute)},
		}})},
		{"audit", "audit", audit.View(audit.Props{Page: page("4 audit entries, newest first", layout.SectionAudit, "", route.Audit), Filter: audit.Filter{Object: "wel_8821"}, Actions: []component.Choice{{Value: "replay.order", Word: "Ordered a replay"}, {Value: "job.edit", Word: "Edited a payload"}}, Entries: Entries(), Pages: component.Pages{Next: "/audit?cursor=x"}})},
		{"account", "account", account.View(account.Props{Page: page("Your account and its 2 sessions", layout.SectionAccount, "", route.Account), Sessions: sessions, Scope: "production and staging, all types"})},
		{"users", "users", admin.Users(admin.UsersProps{Page: page("2 users", layout.SectionUsers, "", route.Users), Rows: []admin.User{{Email: "oncall@demo.test", Roles: []string{"oncall", "admin"}, LastSeen: ago(time.Minute), Sessions: 2}, {Email: "old@demo.test", Roles: []string{"viewer"}, Scope: "staging", Disabled: true}}})},
		{"tokens", "tokens", admin.Tokens(admin.TokensProps{Page: page("2 tokens", layout.SectionTokens, "", route.Tokens), Rows: []admin.Token{{Name: "ingest", Owner: "admin@demo.test", Grants: []string{"capture"}, Scope: "source app-production", LastUsed: ago(time.Second)}, {Name: "nightly", Owner: "oncall@demo.test", Grants: []string{"read"}, Revoked: true, Expires: ago(-48 * time.Hour)}}})},
	}
}
