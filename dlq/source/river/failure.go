package river

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/redrive-dlq/redrive/dlq"
)

// cancelPrefix is how River writes an error that a worker returned through
// river.JobCancel: no retry makes sense.
const cancelPrefix = "JobCancelError: "

// remoteCancel is River's text when a person or program cancelled a running job.
const remoteCancel = "job cancelled remotely"

// ownTexts are errors that River itself writes, and the classes we give them.
var ownTexts = []struct{ text, class string }{
	{"Stuck job rescued by", "StuckJobRescued"}, // its worker crashed or hung: nobody knows the end
	{"job kind is not registered in the client's Workers bundle", "UnknownJobKindError"},
	{remoteCancel, "JobCancelledRemotely"},
}

// failure is what one error text says.
type failure struct {
	class, message, stack string
	causes                []dlq.CauseDoc
	notRetryable          bool // the worker cancelled the job itself
	said                  said
}

// said are words of a worker that writes its errors as JSON.
type said struct {
	WorkerVersion string `json:"worker_version"`
	DurationMS    *int64 `json:"duration_ms"`
	SideEffect    string `json:"side_effect"`
	Effect        string `json:"effect"`
	EffectID      string `json:"effect_id"`
	Category      string `json:"category"`
	GaveUp        string `json:"gave_up"`
	Reason        struct {
		Code string `json:"code"`
		Text string `json:"text"`
	} `json:"reason"`
}

// add fills what is not said yet.
func (s *said) add(o said) {
	s.WorkerVersion = firstOf(s.WorkerVersion, o.WorkerVersion)
	s.SideEffect = firstOf(s.SideEffect, o.SideEffect)
	s.Effect, s.EffectID = firstOf(s.Effect, o.Effect), firstOf(s.EffectID, o.EffectID)
	s.Category, s.GaveUp = firstOf(s.Category, o.Category), firstOf(s.GaveUp, o.GaveUp)
	s.Reason.Code = firstOf(s.Reason.Code, o.Reason.Code)
	s.Reason.Text = firstOf(s.Reason.Text, o.Reason.Text)
	if s.DurationMS == nil {
		s.DurationMS = o.DurationMS
	}
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// told is the error of a worker that writes JSON, with the names of the ingest
// document and shorter ones.
type told struct {
	Class      string `json:"class"`
	ErrorClass string `json:"error_class"`
	Message    string `json:"message"`
	Stack      string `json:"stack"`
	Cause      *told  `json:"cause"`
	Causes     []told `json:"causes"`
}

// maxCauses bounds a chain, whose links may be nested.
const maxCauses = 32

// causedBy stands before each cause in a text, outermost first.
const causedBy = "\ncaused by "

// readError takes an error text apart: a JSON object, or "CLASS: message" with
// causes on lines of their own, or plain text. Trace is not empty when the worker
// panicked.
func readError(text, trace string) failure {
	f := failure{stack: trace}
	text, f.notRetryable = strings.CutPrefix(text, cancelPrefix)
	if text == remoteCancel {
		f.notRetryable = false // somebody else's decision
	}
	if strings.HasPrefix(text, "{") && f.readJSON(text) {
		return f
	}
	chain := strings.Split(text, causedBy)
	f.class, f.message = splitClass(chain[0])
	for _, cause := range chain[1:min(len(chain), maxCauses+1)] {
		class, message := splitClass(cause)
		f.causes = append(f.causes, dlq.CauseDoc{ErrorClass: class, Message: message})
	}
	if f.class == "" && trace != "" {
		f.class = "panic"
	}
	return f
}

// readJSON reports whether the text was an object that names an error.
func (f *failure) readJSON(text string) bool {
	var t told
	if json.Unmarshal([]byte(text), &t) != nil {
		return false
	}
	if t.name() == "" && t.Message == "" {
		return false
	}
	// A field of an unexpected type must not lose the others.
	_ = json.Unmarshal([]byte(text), &f.said)
	f.class, f.message = t.name(), t.Message
	if t.Stack != "" {
		f.stack = t.Stack
	}
	f.causes = t.chain()
	return true
}

func (t *told) name() string {
	if t.ErrorClass != "" {
		return t.ErrorClass
	}
	return t.Class
}

// chain is the list of causes, outermost first, from a list or from nesting.
func (t *told) chain() []dlq.CauseDoc {
	var list []dlq.CauseDoc
	for _, c := range t.Causes {
		list = append(list, dlq.CauseDoc{ErrorClass: c.name(), Message: c.Message})
	}
	for c := t.Cause; c != nil; c = c.Cause {
		list = append(list, dlq.CauseDoc{ErrorClass: c.name(), Message: c.Message})
	}
	return list[:min(len(list), maxCauses)]
}

// splitClass cuts "CLASS: message". A class is one word that looks like a name
// of a type or code (it has a capital, an underscore or ::), because Go's
// wrapping writes "sync: dial tcp: …", too, where sync is no class.
func splitClass(text string) (class, message string) {
	for _, own := range ownTexts {
		if strings.HasPrefix(text, own.text) {
			return own.class, text
		}
	}
	head, rest, found := strings.Cut(text, ": ")
	if !found || !looksLikeClass(head) || strings.TrimSpace(rest) == "" {
		return "", text
	}
	return head, rest
}

func looksLikeClass(s string) bool {
	if s == "" || len(s) > 255 {
		return false
	}
	name := strings.TrimLeft(s, "*&")
	if name == "" || !letter(name[0]) {
		return false
	}
	marked := strings.Contains(name, "::")
	for i := range len(name) {
		c := name[i]
		switch {
		case c >= 'A' && c <= 'Z' || c == '_':
			marked = true
		case letter(c) || c >= '0' && c <= '9' || strings.IndexByte(".:$-[]", c) >= 0:
		default:
			return false
		}
	}
	return marked
}

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// Words that the store accepts; others of a worker are ignored, or its death
// could not be captured for a word.
var (
	gaveUpWords   = []string{"attempts", "window", "not_retryable", "poison", "cancelled"}
	effectWords   = []string{"none", "done", "unknown"}
	categoryWords = []string{"transient", "throttled", "missing_state", "invalid_input", "auth", "unknown"}
)

// oneOf returns the first candidate that is one of the words, else "".
func oneOf(words []string, candidates ...string) string {
	for _, c := range candidates {
		if slices.Contains(words, c) {
			return c
		}
	}
	return ""
}
