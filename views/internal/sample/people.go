package sample

import (
	"time"

	"github.com/redrive-dlq/redrive/views/account"
	"github.com/redrive-dlq/redrive/views/admin"
	"github.com/redrive-dlq/redrive/views/component"
	"github.com/redrive-dlq/redrive/views/layout"
	"github.com/redrive-dlq/redrive/views/login"
	"github.com/redrive-dlq/redrive/views/route"
)

// people are the forms about passphrases, people and tokens.
func people(theme string) []Page {
	page := func(title string, section layout.Section) layout.Page {
		return themed(frame(title, section, "", route.Users), theme)
	}
	return []Page{
		{"confirm", "confirm the passphrase", login.Confirm(login.ConfirmProps{Page: page("Confirm your passphrase", layout.SectionAccount), Problem: "The passphrase is wrong.", Next: route.NewToken})},
		{"passphrase", "change the passphrase", account.Passphrase(account.PassphraseProps{Page: page("Change your passphrase", layout.SectionAccount), Problem: "The passphrase has 9 characters; it needs at least 15.", AtNew: true})},
		{"user-new", "add a person", admin.NewUser(admin.NewUserProps{Page: page("Add a person", layout.SectionUsers), Environments: environments, Email: "lena@example.com", Problem: "There is already a person with this e-mail address.", At: "email"})},
		{"user", "a person", admin.Person(admin.PersonProps{Page: page("lena@example.com", layout.SectionUsers), ID: "7", Email: "lena@example.com", Name: "Lena", Created: ago(90 * 24 * time.Hour), Environments: environments, Grants: []admin.Grant{{Word: "operator", Role: "operator"}, {Word: "oncall in staging", Role: "oncall", Environment: "staging"}}})},
		{"user-disabled", "a disabled person", admin.Person(admin.PersonProps{Page: page("old@demo.test", layout.SectionUsers), ID: "8", Email: "old@demo.test", Created: ago(900 * 24 * time.Hour), Disabled: true, Environments: environments})},
		{"token-new", "make a token", admin.NewToken(admin.NewTokenProps{Page: page("Make an API token", layout.SectionTokens), Owners: []component.Choice{{Value: "1", Word: "admin@demo.test"}}, Environments: environments, Days: "90", Capture: true, Sources: "billing, cron"})},
		{"token-minted", "a token was made", admin.Minted(admin.MintedProps{Page: page("The token was made", layout.SectionTokens), Name: "billing workers", Secret: "rdt_sample_only_sample_only_sample_only_sample1"})},
		{"token-revoke", "revoke a token", admin.Revoke(admin.RevokeProps{Page: page("Revoke this token?", layout.SectionTokens), ID: "3", Name: "billing workers", Owner: "admin@demo.test"})},
	}
}
