package dlq

import (
	"github.com/redrive-dlq/redrive/dlq/category"
	"github.com/redrive-dlq/redrive/dlq/failure"
	"github.com/redrive-dlq/redrive/dlq/group"
)

// judged is what Redrive makes of a failure. All of it is made from redacted
// text: neither a group's template nor a fingerprint that one could guess at
// may tell a hidden value.
type judged struct {
	class       string // of the root cause
	message     string // of the root cause where it has one, one line
	category    string
	categoryBy  string // worker or redrive
	fingerprint string
	template    string
	status      int // HTTP status, 0 for none
}

// judge reads the last attempt; the attempts of d are prepared already. A job
// without attempts is judged by the reason it gave.
func judge(doc *Document, d *death) judged {
	f := failure.Failure{JobType: doc.JobType, GaveUp: doc.GaveUp, Class: d.reasonCode, Message: d.reasonText}
	if n := len(d.attempts); n > 0 {
		last := &d.attempts[n-1]
		f.Class, f.Message, f.Stack = last.class, last.message, last.stack
		for _, c := range last.causeViews {
			f.Causes = append(f.Causes, failure.Cause{Class: c.ErrorClass, Message: c.Message})
		}
	}
	j := judged{class: f.RootClass(), message: f.RootMessage(), categoryBy: "redrive"}
	j.class, j.message = listText(j.class, maxClass), listText(j.message, maxMessage)
	j.status = statusOf(f)
	if doc.Category != "" {
		j.category, j.categoryBy = doc.Category, "worker"
	} else {
		c, _ := category.Classify(f)
		j.category = string(c)
	}
	j.fingerprint, j.template = group.Fingerprint(doc.JobType, f)
	j.template = listText(j.template, maxMessage)
	for i := range d.attempts {
		a := &d.attempts[i]
		if a.status = category.Status(a.class); a.status == 0 {
			a.status = category.Status(a.message)
		}
	}
	return j
}

// statusOf is the HTTP status of a failure, the root cause's first.
func statusOf(f failure.Failure) int {
	for i := len(f.Causes) - 1; i >= 0; i-- {
		if s := firstStatus(f.Causes[i].Class, f.Causes[i].Message); s != 0 {
			return s
		}
	}
	return firstStatus(f.Class, f.Message)
}

func firstStatus(class, message string) int {
	if s := category.Status(class); s != 0 {
		return s
	}
	return category.Status(message)
}
