package sample

import (
	"time"

	"github.com/redrive-dlq/redrive/views/layout"
	"github.com/redrive-dlq/redrive/views/types"
)

func typesProps(page layout.Page) types.Props {
	return types.Props{Page: page,
		Version: types.Version{ID: "7", LoadedAt: ago(3 * time.Hour), LoadedBy: "SIGHUP on console-1", Sum: "60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752",
			NeedsRestart: []string{"source app-eu"}, Changes: []types.Change{
				{Type: "send_welcome_email", What: "changed", Lines: []string{"rate.per_minute: 120 → 60", "batch.canary: not set → 10"}},
				{Type: "legacy_sync", What: "removed"}}},
		Undeclared: []types.Undeclared{{Name: "legacy_export", Jobs: 4, Missing: "a target, the side effect, how repeats are prevented"}},
		Rows: []types.Row{
			{Name: "send_welcome_email", Owner: "growth", SideEffects: []string{"sends one e-mail to the customer"}, Idempotency: "by key, scope welcome",
				Proven:  []types.Proven{{Environment: "staging", Text: "proven in staging, 2026-03-01"}},
				Limits:  []string{"120 a minute, 20 at once; 30 a minute for each tenant", "a second person above 1,000 a day", "canary of 10, stops above 20 % failures"},
				Targets: []types.Target{{Environment: "production", Text: "River app-production, queue mail; outcome within 15 min"}, {Environment: "staging", Text: "River app-staging, queue mail"}},
				Now:     []types.Now{{Environment: "production", Text: "118 left in the last minute, 3,940 to leave, 60 out"}}, Open: 611},
			{Name: "charge_card", Owner: "billing", SideEffects: []string{"charges the customer's card"}, Money: true, Idempotency: "by key, scope charge",
				Limits:  []string{"60 a minute, 10 at once", "always a second person", "canary of 3, stops above 5 % failures"},
				Targets: []types.Target{{Environment: "production", Text: "River app-production, queue billing"}},
				Now:     []types.Now{{Environment: "production", Held: "by oncall@demo.test since 2026-03-30 14:03 UTC: provider outage"}}, Open: 305},
		}}
}

func typeProps(page layout.Page) types.TypeProps {
	return types.TypeProps{Page: page, Name: "charge_card", Runbook: "https://runbooks.example.com/charge-card", Idle: []string{"redact", "retention"},
		Policy: []types.Policy{
			{Name: "Owner", Texts: []string{"billing"}},
			{Name: "A run", Texts: []string{"charges the customer's card"}, Money: true},
			{Name: "Kept from doing it twice", Texts: []string{"by key, scope charge"}},
			{Name: "Check: customer exists", Texts: []string{"select 1 from customers where id = $1 with /user_id"}},
		},
		Places: []types.Place{
			{Environment: "production", Target: "River app-production, queue billing; outcome within 15 min", Limit: "at most 4 out at once, all its types together",
				Breaker: "replays wait: it fails since 14:02 UTC", Now: "nothing under way", Tokens: "10 of 10 at once", Held: "by oncall@demo.test since 2026-03-30 14:03 UTC", Open: 305},
			{Environment: "staging", Now: "nothing under way", Open: 2},
		}}
}
