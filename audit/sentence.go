package audit

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Words is an entry in plain English, in its parts: "ann@example.com" "resolved"
// "job 17 (send_welcome_email)" "in production".
type Words struct {
	Actor  string
	Did    string // the verb phrase
	Object string
	Where  string // "in production"; empty: nowhere in particular
}

// actions are the verb phrases by action. An action that isn't here is read as
// it is written.
var actions = map[string]string{
	"job.note":              "noted something on",
	"job.assign":            "assigned",
	"job.resolve":           "resolved",
	"job.discard":           "discarded",
	"job.reopen":            "reopened",
	"job.snooze":            "snoozed",
	"job.declare_fix":       "declared a fix for",
	"job.edit":              "edited the payload of",
	"effect.happened":       "settled that the effect happened for",
	"effect.did_not_happen": "settled that the effect did not happen for",
	"key.done":              "closed what waited for",
	"batch.plan":            "planned",
	"batch.judge":           "judged again the jobs of",
	"batch.allow_old":       "took along the old jobs of",
	"fix.declare":           "declared a fix for",
	"batch.review":          "reviewed",
	"batch.confirm":         "confirmed",
	"batch.approve":         "approved",
	"batch.pause":           "paused",
	"batch.resume":          "resumed",
	"batch.rate":            "lowered the rate of",
	"batch.cancel":          "cancelled",
	"batch.start":           "began",
	"batch.canary_passed":   "let the rest follow the canary of",
	"batch.stop":            "stopped",
	"batch.skip":            "skipped replays of",
	"batch.export":          "exported",
	"batch.expire":          "let age out",
	"breaker.open":          "stopped releases to",
	"breaker.close":         "let releases go on to",
	"hold.place":            "held",
	"hold.explain":          "explained the hold of",
	"hold.lift":             "lifted the hold of",
	"replay.order":          "ordered",
	"replay.cancel":         "took back",
	"replay.skipped":        "skipped",
	"replay.cancelled":      "cancelled",
	"session.sign_in":       "signed in",
	"session.sign_out":      "signed out",
	"session.refused":       "refused a sign-in of",
	"session.step_up":       "confirmed their passphrase",
	"session.end":           "ended",
	"session.end_others":    "ended all other sessions of",
	"user.create":           "created",
	"user.disable":          "disabled",
	"user.enable":           "enabled",
	"user.passphrase":       "changed the passphrase of",
	"grant.add":             "gave a role to",
	"grant.remove":          "took a role from",
	"token.mint":            "minted",
	"token.revoke":          "revoked",
	"catalogue.load":        "put into force",
	"type.prove":            "ordered a second run to prove",
	"type.proven":           "proved that the effect happens once for",
	"type.not_proven":       "could not prove",
}

// alone are the actions whose object is only the actor's own session.
var alone = []string{"session.sign_in", "session.sign_out", "session.step_up"}

// Actions lists the known actions with their phrases, sorted by action, for a
// filter's choices.
func Actions() (codes, phrases []string) {
	for _, code := range slices.Sorted(maps.Keys(actions)) {
		codes, phrases = append(codes, code), append(phrases, actions[code])
	}
	return codes, phrases
}

// Words returns the entry's words.
func (r Record) Words() Words {
	w := Words{Actor: r.Actor.Name, Did: actions[r.Action], Object: r.object()}
	if r.Actor.Kind == System && r.Actor.Name == "redrive" {
		w.Actor = "Redrive"
	}
	if w.Did == "" {
		w.Did = fmt.Sprintf("did %q on", r.Action)
	}
	if slices.Contains(alone, r.Action) {
		w.Object = ""
	}
	switch r.Action {
	case "job.assign":
		if to := r.detail("to"); to != "" {
			w.Object += " to " + to
		} else {
			w.Did = "took the owner off"
		}
	case "job.snooze":
		if until := r.detail("until"); until != "" {
			w.Object += " until " + until
		}
	case "job.edit":
		if places := r.list("pointers"); len(places) > 0 {
			w.Did = "edited " + strings.Join(places, ", ") + " in the payload of"
		}
	case "job.declare_fix":
		if kind, ref := r.detail("kind"), r.detail("reference"); ref != "" {
			w.Did = fmt.Sprintf("declared a fix (%s %s) for", strings.ReplaceAll(kind, "_", " "), ref)
		}
	case "batch.confirm":
		if r.detail("needs_approval") != "" {
			w.Did = "asked a second person to approve"
		}
		if r.detail("no_second_person") != "" {
			w.Did = "confirmed, to wait instead of a second person,"
		}
	case "batch.rate":
		if from, to := r.number("from"), r.number("to"); to != "" {
			w.Did = "lowered the rate from " + from + " to " + to + " a minute of"
		}
	case "effect.happened":
		if id := r.detail("effect_id"); id != "" {
			w.Did = "settled that the effect happened, id " + id + ", for"
		}
	}
	if r.Environment != "" {
		w.Where = "in " + r.Environment
	}
	return w
}

// object names what was acted on: "job 17 (send_welcome_email)".
func (r Record) object() string {
	name, about := r.Object.Kind, r.JobType
	if r.Object.ID != "" {
		name += " " + r.Object.ID
	}
	switch r.Object.Kind {
	case "batch":
		// "batch 41: 28 send_welcome_email", where the act was about so many.
		if n := r.number("eligible"); n != "" && about != "" {
			return name + ": " + n + " " + about
		}
	case "catalogue":
		return "version " + r.Object.ID + " of the catalogue"
	case "hold":
		return r.held()
	case "type":
		return name
	case "replay":
		if r.DeadJob != 0 {
			name += " of job " + number(r.DeadJob)
		}
	case "user":
		if email := r.detail("email"); email != "" {
			return email
		}
	case "token":
		about = r.detail("name")
	}
	if about != "" {
		name += " (" + about + ")"
	}
	return name
}

// detail is a detail that is text; empty when there is none.
func (r Record) detail(name string) string {
	s, _ := r.Details[name].(string)
	return s
}

// number is a detail that is a number; empty when there is none.
func (r Record) number(name string) string {
	n, _ := r.Details[name].(json.Number)
	return n.String()
}

// held names what a hold stops.
func (r Record) held() string {
	switch to := r.detail("destination"); {
	case to != "":
		return "all replays to " + to
	case r.JobType != "":
		return "all replays of " + r.JobType
	}
	return "all replays"
}

func (r Record) list(name string) []string {
	items, _ := r.Details[name].([]any)
	var out []string
	for _, item := range items {
		if s, ok := item.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// Sentence is the entry as one plain sentence, its reason behind it:
// "ann@example.com resolved job 17 (send_welcome_email) in production. Reason: …"
func Sentence(r Record) string {
	w := r.Words()
	parts := []string{w.Actor, w.Did}
	for _, part := range []string{w.Object, w.Where} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	s := strings.Join(parts, " ") + "."
	if r.Reason != "" {
		s += " Reason: " + r.Reason
	}
	return s
}
