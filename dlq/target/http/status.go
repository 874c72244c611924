package httptarget

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/redrive-dlq/redrive/dlq/category"
	"github.com/redrive-dlq/redrive/dlq/failure"
	"github.com/redrive-dlq/redrive/dlq/group"
	"github.com/redrive-dlq/redrive/dlq/redact"
	"github.com/redrive-dlq/redrive/dlq/replay"
)

// ambiguous reports whether nobody knows after a status if the effect happened:
// the receiver, or something before it, gave up in the middle (proxies have
// numbers of their own for that), or it answered a POST with another page.
func ambiguous(status int) bool {
	switch status {
	case http.StatusFound, http.StatusSeeOther, http.StatusRequestTimeout, 499:
		return true
	case http.StatusNotImplemented, http.StatusServiceUnavailable, http.StatusHTTPVersionNotSupported, http.StatusNetworkAuthenticationRequired:
		return false
	}
	return status >= 500
}

// outcome reads an answer by its status: 2xx succeeded; all others failed, and
// the ambiguous ones leave the effect unknown. Redirects aren't followed, so
// 3xx failed too.
func outcome(it replay.Item, status int, body []byte, took time.Duration) replay.End {
	if status >= 200 && status < 300 {
		return replay.End{Outcome: replay.Succeeded, Code: fmt.Sprintf("http_%d", status),
			Detail: fmt.Sprintf("the target answered %d", status), EffectID: effectID(body)}
	}
	class := fmt.Sprintf("HTTP %d", status)
	raw := string(body)
	f := failure.Failure{JobType: it.JobType, Class: class, Message: class + " " + raw}
	cat, _ := category.Classify(f)
	print, template := group.Fingerprint(it.JobType, f)
	message := redact.Readable(raw)
	if message == "" {
		message = http.StatusText(status)
	}
	return replay.End{
		Outcome: replay.Failed, Code: fmt.Sprintf("http_%d", status),
		Detail: fmt.Sprintf("the target answered %d: %s", status, cut(message, 300)), EffectUnknown: ambiguous(status),
		Failure: &replay.Failure{Class: class, Message: message, StatusCode: status, Category: string(cat),
			Fingerprint: print, Template: template, DurationMS: took.Milliseconds()},
	}
}

// effectID is the provider's id when the answer is a JSON object with one.
func effectID(body []byte) string {
	var answer struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(body, &answer) != nil {
		return ""
	}
	return redact.Visible(cut(answer.ID, 255))
}

// cut shortens text to at most n characters.
func cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + "…"
	}
	return s
}
