package dlq

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redrive-dlq/redrive/dlq/jobtype"
)

// The actions that an advice may emphasise.
const (
	DetailDoReplay     = "replay"
	DetailDoEdit       = "edit"
	DetailDoDeclareFix = "declare_fix"
	DetailDoSettle     = "settle"
	DetailDoNone       = "none"
)

// DetailAdvice is what to do next: one primary action, or none. It doesn't say
// whether a replay is possible now.
type DetailAdvice struct {
	Action string // one of the DetailDo… actions
	Tone   string // info, success, warning, error
	Title  string
	Text   string
}

func detailType(types DetailTypes, name string) *jobtype.Type {
	if types == nil {
		return nil
	}
	t, _ := types.Type(name)
	return t
}

// sentence says in one line what happened: how it failed, what became of its
// effect, and what follows.
func (d *Details) sentence() string {
	parts := []string{d.failed()}
	for _, part := range []string{d.effectWords(), d.stateWords()} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "; ") + "."
}

// failed is "Failed 3 times in 10 minutes with 400 invalid recipient".
func (d *Details) failed() string {
	j := d.Job
	s := "Failed " + times(j.AttemptCount)
	if j.AttemptCount == 0 {
		s = "Died without any attempt history"
	}
	if j.AttemptCount > 1 && j.FirstFailedAt != nil && j.DiedAtNote == "" {
		if over := j.DiedAt.Sub(*j.FirstFailedAt); over >= time.Second {
			s += " in " + inWords(over)
		}
	}
	what := cut(oneLine(j.ErrorMessage), 160)
	if what == "" {
		what = j.ErrorClass
	}
	code := ""
	if j.StatusCode != 0 {
		code = strconv.Itoa(j.StatusCode)
	}
	switch {
	case what == "" && code == "":
		return s
	case code == "" || strings.Contains(what, code):
		return s + " with " + strings.TrimRight(what, ".")
	}
	return strings.TrimSpace(s + " with " + code + " " + strings.TrimRight(what, "."))
}

func times(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return strconv.Itoa(n) + " times"
}

// inWords is a duration in its largest fitting unit.
func inWords(d time.Duration) string {
	for _, u := range []struct {
		of   time.Duration
		word string
	}{{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}} {
		if n := int64(d.Round(u.of) / u.of); d >= u.of*19/20 && n >= 1 {
			if n == 1 {
				return "1 " + u.word
			}
			return strconv.FormatInt(n, 10) + " " + u.word + "s"
		}
	}
	return "less than a second"
}

func (d *Details) effectWords() string {
	switch {
	case d.done():
		if id := d.doneID(); id != "" {
			return "its effect is in place (" + id + ")"
		}
		return "its effect is in place"
	case d.open() && d.effectUnknown():
		return "nobody knows whether its effect happened"
	case d.Ledger != nil && d.Ledger.State == "failed":
		return "its effect did not happen"
	}
	if last := d.Last(); last != nil {
		switch effect := cut(oneLine(last.SideEffect), 120); strings.ToLower(effect) {
		case "":
		case "none":
			return "it had no effect outside"
		default:
			return effect
		}
	}
	return ""
}

func (d *Details) stateWords() string {
	j := d.Job
	switch j.Status {
	case "replaying":
		if r := d.Waiting(); r != nil {
			return r.waits(d.Job.Entity, d.now)
		}
		return "it is being replayed now"
	case "recovered":
		if len(d.Replays) == 0 {
			return "it recovered at its source"
		}
		return "a replay recovered it"
	case "resolved", "discarded":
		if j.SettledBy != "" {
			return j.Status + " by " + j.SettledBy
		}
		return j.Status
	case "snoozed":
		if j.SnoozedUntil != nil {
			return "put aside until " + j.SnoozedUntil.UTC().Format("2006-01-02 15:04") + " UTC"
		}
	}
	if d.done() || d.effectUnknown() {
		return ""
	}
	switch {
	case j.FixKind == "edit":
		return "its payload was edited since"
	case j.FixKind != "":
		return "a fix was declared since (" + strings.ReplaceAll(j.FixKind, "_", " ") + " " + j.FixRef + ")"
	case j.Category == "invalid_input":
		return "replaying as it is would fail again"
	case j.Category == "auth":
		return "replaying would fail again until the credentials work"
	case j.Category == "missing_state":
		return "it fails again until the record exists"
	}
	return ""
}

func (d *Details) open() bool { return d.Job.Status == "open" || d.Job.Status == "snoozed" }

func (d *Details) done() bool {
	return d.Job.Effect == "done" || (d.Ledger != nil && d.Ledger.State == "done")
}

func (d *Details) doneID() string {
	if d.Ledger != nil && d.Ledger.EffectID != "" {
		return d.Ledger.EffectID
	}
	return d.Job.EffectID
}

func (d *Details) effectUnknown() bool {
	return d.Job.Effect == "unknown" || (d.Ledger != nil && d.Ledger.State == "begun")
}

// advise chooses the one next step. What is settled needs none; an unknown
// effect comes before everything else; then what the category asks for.
func (d *Details) advise(t *jobtype.Type) DetailAdvice {
	j := d.Job
	switch {
	case j.Status == "replaying" && d.Waiting() != nil:
		return DetailAdvice{DetailDoNone, "info", "A replay is ordered and has not left yet", "It leaves by itself, and its outcome appears here. Until then it can be taken back."}
	case j.Status == "replaying":
		return DetailAdvice{DetailDoNone, "info", "It is being replayed", "Its outcome appears here by itself."}
	case d.done():
		text := "There is nothing to do."
		if id := d.doneID(); id != "" {
			text = "Its result is " + id + ". There is nothing to do."
		}
		return DetailAdvice{DetailDoNone, "success", "This has already succeeded", text}
	case j.Status == "recovered":
		return DetailAdvice{DetailDoNone, "success", "It has recovered", "There is nothing to do."}
	case j.Status == "resolved" || j.Status == "discarded":
		return DetailAdvice{DetailDoNone, "info", "It was " + j.Status, settledText(j)}
	case d.effectUnknown() && (t == nil || !t.Idempotency.ProviderDeduplicates):
		return DetailAdvice{DetailDoSettle, "error", "Nobody knows whether its effect happened", settleText(j, t)}
	case j.PayloadKind == "printout":
		return DetailAdvice{DetailDoNone, "warning", "It can't be sent again",
			"Only a printout of the arguments is stored, so this job cannot be sent again. Settle it elsewhere, then resolve or discard it."}
	case j.FixKind != "":
		return DetailAdvice{DetailDoReplay, "info", "A fix is in place", "Replay it to see whether the fix holds."}
	}
	return d.adviseCategory(t)
}

func (d *Details) adviseCategory(t *jobtype.Type) DetailAdvice {
	switch d.Job.Category {
	case "transient":
		return DetailAdvice{DetailDoReplay, "info", "The other side failed for a moment", "Replay it once that has passed."}
	case "throttled":
		return DetailAdvice{DetailDoReplay, "info", "The other side asked for fewer requests", "Replay it later, not all of them at once."}
	case "missing_state":
		return DetailAdvice{DetailDoReplay, "warning", "A record that it needs is not there", "Create the record, then replay; or discard the job."}
	case "invalid_input":
		if t != nil && len(t.Edits.Payload) > 0 && d.Job.PayloadKind == "json" {
			return DetailAdvice{DetailDoEdit, "warning", "The payload was refused",
				"Replaying it as it is would fail again. Correct " + strings.Join(t.Edits.Payload, ", ") + " first."}
		}
		return DetailAdvice{DetailDoDeclareFix, "warning", "The payload was refused",
			"Replaying it as it is would fail again, and nothing of it may be edited here. Have the cause fixed, then declare the fix."}
	case "auth":
		return DetailAdvice{DetailDoDeclareFix, "warning", "The credentials were refused", "Fix the key first, then declare the fix."}
	}
	return DetailAdvice{DetailDoNone, "info", "The error doesn't say what to do", "Read the error and its stack before you decide: replay, declare a fix, or discard."}
}

func settledText(j DetailJob) string {
	if j.SettledReason == "" {
		return "Reopen it if that was wrong."
	}
	text := "Reason: " + j.SettledReason
	if j.SettledRef != "" {
		text += " (" + j.SettledRef + ")"
	}
	return text
}

func settleText(j DetailJob, t *jobtype.Type) string {
	effect := "had its effect"
	if t != nil {
		for _, e := range t.SideEffects {
			if e.Kind != "none" && e.Text != "" {
				effect = "did this: " + e.Text
				break
			}
		}
	}
	where := "at the provider"
	if j.IdempotencyKey != "" {
		where = fmt.Sprintf("the key %s at the provider", cut(j.IdempotencyKey, 120))
	} else {
		where = "the job " + where
	}
	return fmt.Sprintf("We don't know whether the last attempt %s. Look up %s, then say: it happened, with its id, or it did not. Until then it isn't replayed.", effect, where)
}
