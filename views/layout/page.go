// Package layout is the frame around every page of the console: head,
// environment band, search, navigation, flash messages, help.
package layout

import (
	"net/url"
	"strings"
	"time"

	"github.com/redrive-dlq/redrive/views/route"
)

// Section is an entry of the navigation.
type Section string

// The sections of the console.
const (
	SectionOverview Section = "overview"
	SectionGroups   Section = "groups"
	SectionJobs     Section = "jobs"
	SectionBatches  Section = "batches"
	SectionTypes    Section = "types"
	SectionSources  Section = "sources"
	SectionTargets  Section = "targets"
	SectionAudit    Section = "audit"
	SectionUsers    Section = "users"
	SectionTokens   Section = "tokens"
	SectionAccount  Section = "account"
)

// Page is what the frame shows. The zero value is a signed-out page without
// environment.
type Page struct {
	// Title is the heading of the page, as a sentence that says what is shown.
	Title string
	// Section is the entry of the navigation that is lit.
	Section Section
	// Viewer is who is signed in; nil when nobody is.
	Viewer *Viewer
	// Environment is the one the page is about; empty means all of them.
	Environment string
	// Environments are the choices of the switch; see EnvironmentLinks.
	Environments []EnvironmentLink
	// Search is what stands in the search box.
	Search string
	// Theme is the value of the theme cookie: "light", "dark", or empty for
	// what the system prefers. Anything else counts as empty.
	Theme string
	// Flashes are messages about what was just done, newest first.
	Flashes []Flash
	// Live is the event stream that tells when the page changed; empty: none.
	Live string
	// Holds are the stops of replays in force that the person may see; those of
	// the page's environment are shown on top.
	Holds []Hold
	// OpenJobs is shown beside Jobs in the navigation when it isn't zero.
	OpenJobs int
	// Demo says on every page that the data are invented.
	Demo bool
	// Now is the time that ages are counted to.
	Now time.Time
}

// Viewer is the signed-in person and what the navigation may offer them.
type Viewer struct {
	Email string
	Roles []string
	// MayAudit opens the audit log, MayAdmin users and tokens.
	MayAudit, MayAdmin bool
}

// RoleWords lists the roles in words: "operator, on-call".
func (v *Viewer) RoleWords() string {
	words := make([]string, 0, len(v.Roles))
	for _, role := range v.Roles {
		if role == "oncall" {
			role = "on-call"
		}
		words = append(words, role)
	}
	if len(words) == 0 {
		return "no role"
	}
	return strings.Join(words, ", ")
}

// Flash is a message about what was just done. Tone is info, success, warning
// or error; Href and Link, when set, lead on.
type Flash struct {
	Tone string
	Text string
	Href string
	Link string
}

func (f Flash) icon() string {
	switch f.Tone {
	case "success":
		return "check"
	case "warning", "error":
		return "alert"
	}
	return "info"
}

// EnvironmentLink is one choice of the environment switch.
type EnvironmentLink struct {
	Name    string // empty: all environments
	Href    string
	Current bool
}

// Word is how the choice reads.
func (l EnvironmentLink) Word() string {
	if l.Name == "" {
		return "All environments"
	}
	return l.Name
}

// EnvironmentLinks makes the switch for a page whose address has the env
// parameter: every other filter in the address stays.
func EnvironmentLinks(u *url.URL, names []string, current string) []EnvironmentLink {
	links := make([]EnvironmentLink, 0, len(names)+1)
	for _, name := range append([]string{""}, names...) {
		links = append(links, EnvironmentLink{
			Name:    name,
			Href:    route.Change(u, route.ParamEnvironment, name),
			Current: name == current,
		})
	}
	return links
}

func (p Page) theme() string {
	if p.Theme == "light" || p.Theme == "dark" {
		return p.Theme
	}
	return ""
}

// band is the text beside the environment's name.
func (p Page) band() string {
	switch p.Environment {
	case "":
		return ""
	case "production":
		return "Replays here reach real customers"
	}
	return "Replays here stay in " + p.Environment
}

type navEntry struct {
	section Section
	href    string
	icon    string
	word    string
	key     string
}

// navigation lists only what the person may open.
func (p Page) navigation() []navEntry {
	entries := []navEntry{
		{SectionOverview, route.Overview, "activity", "Overview", "o"},
		{SectionGroups, route.Groups, "layers", "Groups", "f"},
		{SectionJobs, route.Jobs, "list", "Jobs", "j"},
		{SectionBatches, route.Batches, "stack", "Batches", "b"},
		{SectionTypes, route.Types, "tag", "Types", "t"},
		{SectionSources, route.Sources, "plug", "Sources", "s"},
		{SectionTargets, route.Targets, "target", "Targets", "d"},
	}
	if p.Viewer.MayAudit {
		entries = append(entries, navEntry{SectionAudit, route.Audit, "shield", "Audit", "a"})
	}
	return entries
}

func (p Page) administration() []navEntry {
	if !p.Viewer.MayAdmin {
		return nil
	}
	return []navEntry{
		{SectionUsers, route.Users, "users", "Users", "u"},
		{SectionTokens, route.Tokens, "key", "Tokens", "k"},
	}
}

// withEnvironment keeps the chosen environment when one moves between
// sections that filter by it.
func (p Page) withEnvironment(e navEntry) string {
	if p.Environment == "" || e.section == SectionUsers || e.section == SectionTokens {
		return e.href
	}
	return e.href + "?" + url.Values{route.ParamEnvironment: {p.Environment}}.Encode()
}
