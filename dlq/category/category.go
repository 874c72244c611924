// Package category says what kind of failure a dead job died of, and with it,
// what to do next.
package category

import "strings"

// Category is the kind of a failure. Its text is what the store and the API
// hold.
type Category string

// The categories.
const (
	Transient    Category = "transient"     // passes by itself: timeouts, refused connections, 5xx
	Throttled    Category = "throttled"     // too fast for the other side: 429, quotas
	MissingState Category = "missing_state" // a record that should be there is not
	InvalidInput Category = "invalid_input" // the payload itself is wrong
	Auth         Category = "auth"          // our credentials are refused
	Unknown      Category = "unknown"
)

// All lists the categories in the order in which pages show them.
func All() []Category {
	return []Category{Transient, Throttled, MissingState, InvalidInput, Auth, Unknown}
}

// Parse reads a worker's own word for a category. It takes the six words in
// any case, with a space, hyphen or underscore between two; nothing else.
func Parse(word string) (Category, bool) {
	w := Category(strings.NewReplacer(" ", "_", "-", "_").Replace(strings.ToLower(strings.TrimSpace(word))))
	for _, c := range All() {
		if w == c {
			return c, true
		}
	}
	return "", false
}

// Label is the category's name for people.
func (c Category) Label() string { return strings.ReplaceAll(string(c), "_", " ") }

// Retryable reports whether another attempt without any change may succeed.
func Retryable(c Category) bool { return c == Transient || c == Throttled }

// NeedsFix reports whether a replay is blocked until the payload was edited or
// a fix was declared.
func NeedsFix(c Category) bool { return c == InvalidInput || c == Auth }

// The primary actions of an [Advice].
const (
	ActionReplay      = "replay"
	ActionReplayLater = "replay_later"
	ActionRestore     = "restore_or_discard" // create the missing record, or discard the job
	ActionEdit        = "edit"
	ActionDeclareFix  = "declare_fix"
	ActionInvestigate = "investigate"
)

// Advice is what a person should do next.
type Advice struct {
	Sentence string // one plain sentence
	Action   string // the code of the one primary action
}

// AdviceFor returns the advice of a category.
func AdviceFor(c Category) Advice {
	switch c {
	case Transient:
		return Advice{"The other side failed for a moment: replay it once that has passed.", ActionReplay}
	case Throttled:
		return Advice{"The other side asked for fewer requests: replay it later, at a lower rate.", ActionReplayLater}
	case MissingState:
		return Advice{"A record that this job needs is not there: create it and replay, or discard the job.", ActionRestore}
	case InvalidInput:
		return Advice{"The payload is wrong, so replaying it as it is would fail again: correct it first.", ActionEdit}
	case Auth:
		return Advice{"The credentials were refused, so replaying it now would fail again: fix them and declare the fix.", ActionDeclareFix}
	}
	return Advice{"The error does not say what went wrong: read the stack before you decide.", ActionInvestigate}
}
