package dlq

import "strings"

// effectTold is the worker's own word about the effect, empty when it has
// none, and whether the effect may have happened all the same.
func (c *Capturer) effectTold(doc *Document, d *death) (word string, maybe bool) {
	if doc.Effect != "" {
		return doc.Effect, false
	}
	if last := doc.last(); last != nil {
		switch last.SideEffect {
		case "", "none":
		case "done", "unknown":
			return last.SideEffect, false
		default:
			// The attempt is known to have had a side effect. Whatever it was,
			// it must not be repeated unasked.
			return "unknown", false
		}
	}
	return "", c.hasSideEffects(doc.JobType) && endUnknown(doc, d)
}

// openEnds are words of failures that leave open whether the other side acted:
// no answer came, or the worker ended in the middle.
var openEnds = []string{
	"timeout", "timed out", "deadline exceeded", "deadlineexceeded", "connection reset", "econnreset", "broken pipe", "epipe",
	"unexpected eof", "server closed", "connection closed", "remote end closed", "socket hang up",
	"sigkill", "signal: killed", "out of memory", "oomkilled", "workerlost", "worker lost", "rescued", "panic", "crash", "stalled",
}

// neverSent are words of failures before anything was sent.
var neverSent = []string{"connection refused", "econnrefused", "connecttimeout", "connect timeout", "dial tcp", "no such host", "enotfound"}

// endUnknown reports whether the failure that killed the job leaves its effect
// open.
func endUnknown(doc *Document, d *death) bool {
	last := doc.last()
	if last == nil {
		return false
	}
	texts := []string{last.ErrorClass, last.Message}
	for _, c := range last.Causes {
		texts = append(texts, c.ErrorClass, c.Message)
	}
	return EndUnknown(d.failure.status, texts...)
}

// EndUnknown reports whether a failure, by its HTTP status (0 for none) and its
// texts, leaves open whether its effect happened.
func EndUnknown(status int, texts ...string) bool {
	if status == 408 || status == 504 {
		return true
	}
	open := false
	for _, t := range texts {
		t = strings.ToLower(t[:min(len(t), 4096)])
		if containsAny(t, neverSent) {
			return false
		}
		open = open || containsAny(t, openEnds)
	}
	return open
}

func containsAny(s string, words []string) bool {
	for _, w := range words {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}
