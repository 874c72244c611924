package component

import "strings"

// Look is how a state is shown: an icon, a word and a tone, never one alone.
type Look struct {
	Word string
	Icon string
	Tone string // neutral, info, success, warning, error, secondary, accent
}

var statusLooks = map[string]Look{
	"open":      {"Open", "circle", "warning"},
	"snoozed":   {"Snoozed", "moon", "secondary"},
	"replaying": {"Replaying", "replay", "info"},
	"recovered": {"Recovered", "check", "success"},
	"resolved":  {"Resolved", "check-double", "success"},
	"discarded": {"Discarded", "bin", "neutral"},
}

var categoryLooks = map[string]Look{
	"transient":     {"Transient", "wave", "info"},
	"throttled":     {"Throttled", "gauge", "secondary"},
	"missing_state": {"Missing state", "search-off", "accent"},
	"invalid_input": {"Invalid input", "pencil", "warning"},
	"auth":          {"Auth", "key", "error"},
	"unknown":       {"Unknown", "question", "neutral"},
}

var effectLooks = map[string]Look{
	"none":    {"No effect", "dash", "neutral"},
	"done":    {"Effect done", "check", "success"},
	"unknown": {"Effect unknown", "alert", "error"},
}

var replayLooks = map[string]Look{
	"planned":      {"Planned", "clock", "neutral"},
	"confirmed":    {"Confirmed", "clock", "info"},
	"scheduled":    {"Scheduled", "clock", "info"},
	"ready":        {"Waiting to leave", "clock", "info"},
	"pending":      {"Waiting to leave", "clock", "info"},
	"waiting":      {"Waiting to leave", "clock", "info"},
	"released":     {"Sent", "replay", "info"},
	"running":      {"Running", "replay", "info"},
	"paused":       {"Paused", "pause", "warning"},
	"succeeded":    {"Succeeded", "check", "success"},
	"done":         {"Done", "check", "success"},
	"finished":     {"Finished", "check", "success"},
	"already_done": {"Already done", "check-double", "success"},
	"failed":       {"Failed", "cross", "error"},
	"skipped":      {"Skipped", "skip", "warning"},
	"unconfirmed":  {"Unconfirmed", "alert", "error"},
	"cancelled":    {"Cancelled", "cross", "neutral"},
	"blocked":      {"Blocked", "block", "warning"},
	"eligible":     {"Eligible", "check", "success"},
}

// batchLooks are states of a batch that read otherwise than a replay's.
var batchLooks = map[string]Look{
	"planning":   {"Being planned", "hourglass", "info"},
	"planned":    {"Planned", "list", "neutral"},
	"waiting":    {"Waits for approval", "person", "warning"},
	"cancelling": {"Being cancelled", "hourglass", "neutral"},
}

var ledgerLooks = map[string]Look{
	"begun":  {"Begun, no end known", "alert", "error"},
	"done":   {"Done", "check", "success"},
	"failed": {"Failed, no effect", "cross", "neutral"},
	"none":   {"No entry", "dash", "neutral"},
}

var healthLooks = map[string]Look{
	"healthy":  {"Healthy", "check", "success"},
	"degraded": {"Degraded", "alert", "warning"},
	"failing":  {"Failing", "cross", "error"},
	"unknown":  {"Not known yet", "question", "neutral"},
	"off":      {"Off", "dash", "neutral"},
}

var attemptLooks = map[string]Look{
	"failed":    {"Failed", "cross", "error"},
	"succeeded": {"Succeeded", "check", "success"},
	"timeout":   {"Timed out", "clock", "warning"},
}

var environmentIcons = map[string]string{
	"production":  "flame",
	"staging":     "flask",
	"development": "wrench",
}

// Categories lists the failure categories in the order they are shown.
var Categories = []string{"transient", "throttled", "missing_state", "invalid_input", "auth", "unknown"}

// Statuses lists the statuses of a dead job in the order they are shown.
var Statuses = []string{"open", "snoozed", "replaying", "recovered", "resolved", "discarded"}

// look finds how a word is shown; a word nobody knows is shown as it is.
func look(looks map[string]Look, word string) Look {
	if l, ok := looks[word]; ok {
		return l
	}
	return Look{Word: Sentence(word), Icon: "question", Tone: "neutral"}
}

// StatusLook returns how a dead job's status is shown.
func StatusLook(status string) Look { return look(statusLooks, status) }

// CategoryLook returns how a failure's category is shown.
func CategoryLook(category string) Look { return look(categoryLooks, category) }

// EffectLook returns how a dead job's effect is shown.
func EffectLook(effect string) Look { return look(effectLooks, effect) }

// ReplayLook returns how the state or outcome of a replay or batch is shown.
func ReplayLook(state string) Look { return look(replayLooks, state) }

// BatchLook returns how the state of a batch is shown, or how its one replay
// ended.
func BatchLook(state string) Look {
	if l, ok := batchLooks[state]; ok {
		return l
	}
	return ReplayLook(state)
}

// LedgerLook returns how a ledger entry's state is shown.
func LedgerLook(state string) Look { return look(ledgerLooks, state) }

// HealthLook returns how the health of a source or destination is shown.
func HealthLook(health string) Look { return look(healthLooks, health) }

// AttemptLook returns how the end of an attempt is shown.
func AttemptLook(end string) Look { return look(attemptLooks, end) }

// EnvironmentIcon returns the icon of an environment.
func EnvironmentIcon(name string) string {
	if icon, ok := environmentIcons[name]; ok {
		return icon
	}
	return "layers"
}

// EnvironmentClass returns the class that colours an environment: one of the
// three known names or "other", never a name from outside.
func EnvironmentClass(name string) string {
	if _, ok := environmentIcons[name]; ok {
		return name
	}
	return "other"
}

// Sentence turns a code such as not_retryable into "Not retryable".
func Sentence(code string) string {
	out := []rune(code)
	for i, r := range out {
		if r == '_' {
			out[i] = ' '
		}
	}
	if len(out) > 0 && out[0] >= 'a' && out[0] <= 'z' {
		out[0] -= 'a' - 'A'
	}
	return string(out)
}

// WebLink reports whether an address is one that a page may link to: only web
// addresses are, never javascript: or data:.
func WebLink(address string) bool {
	return strings.HasPrefix(address, "https://") || strings.HasPrefix(address, "http://")
}
