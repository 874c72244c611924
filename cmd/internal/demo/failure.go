package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/redrive-dlq/redrive/cmd/internal/demo/providers"
	"github.com/redrive-dlq/redrive/dlq/retry"
)

// failure is why an attempt failed. Its text is "Class: message", with the
// cause on a line of its own: the form a dead job's reader understands.
type failure struct {
	Class      string
	Message    string
	Cause      string // "Class: message" or empty
	Code       string // of the reason, as the provider says it
	Category   string // the worker's own word; empty lets Redrive classify
	RetryAfter string
	Retryable  bool
	// Uncertain: the effect may have happened all the same.
	Uncertain bool
}

func (f *failure) Error() string {
	s := f.Class + ": " + f.Message
	if f.Cause != "" {
		s += "\ncaused by " + f.Cause
	}
	return s
}

// of judges the failure against the effect: one that may have happened is not
// tried again unless the provider itself refuses to repeat it.
func (f *failure) of(e effect) *failure {
	if f.Uncertain && !e.ProviderDedupes {
		f.Retryable = false
	}
	return f
}

// client calls the fake providers for one environment.
type client struct {
	base        string
	environment string
	http        *http.Client
}

// do asks for an effect and returns the provider's id of it.
func (c *client) do(ctx context.Context, e effect) (id string, fail *failure) {
	body, err := json.Marshal(e.Body)
	if err != nil {
		return "", &failure{Class: "EncodeError", Message: "the request can't be written as JSON", Category: "invalid_input"}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+"/"+e.Provider+"/"+e.Resource, bytes.NewReader(body))
	if err != nil {
		return "", &failure{Class: "RequestError", Message: err.Error()}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", e.Key)
	req.Header.Set(providers.EnvironmentHeader, c.environment)
	res, err := c.http.Do(req)
	if err != nil {
		return "", transport(e.Provider, err)
	}
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(res.Body, 1<<16))
	if err != nil {
		return "", transport(e.Provider, err)
	}
	if res.StatusCode/100 == 2 {
		var ok struct {
			ID string `json:"id"`
		}
		if err := json.Unmarshal(answer, &ok); err != nil || ok.ID == "" {
			return "", &failure{Class: "BadAnswer", Message: e.Provider + " accepted the request without an id", Uncertain: true}
		}
		return ok.ID, nil
	}
	var no struct {
		Error struct{ Code, Message string } `json:"error"`
	}
	_ = json.Unmarshal(answer, &no) // an unreadable refusal still has its status
	return "", refused(e.Provider, res.StatusCode, no.Error.Code, no.Error.Message, res.Header.Get("Retry-After"))
}

// transport is a failure without an answer. Only a refused connection proves
// that nothing happened.
func transport(provider string, err error) *failure {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return &failure{Class: "ConnectionRefused", Message: provider + " refused the connection", Code: "connection_refused", Category: "transient", Retryable: true}
	}
	return &failure{
		Class: "TimeoutError", Message: "no answer from " + provider + " within the limit", Code: "timeout",
		Cause:    "DeadlineExceeded: call to " + provider + ": " + context.DeadlineExceeded.Error(),
		Category: "transient", Retryable: true, Uncertain: true,
	}
}

// refused is an error answer, in the worker's own words.
func refused(provider string, status int, code, message, retryAfter string) *failure {
	f := &failure{
		Message: fmt.Sprintf("%s answered %d %s: %s", provider, status, code, message), Code: code,
		RetryAfter: retryAfter, Retryable: retry.RetryableStatus(status),
	}
	switch {
	case code == "invalid_recipient":
		f.Class, f.Category = "InvalidRecipient", "invalid_input"
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		f.Class, f.Category = "Unauthorized", "auth"
	case status == http.StatusNotFound || status == http.StatusGone:
		f.Class, f.Category = "RecordNotFound", "missing_state"
	case status == http.StatusTooManyRequests:
		f.Class, f.Category = "TooManyRequests", "throttled"
	case status == http.StatusServiceUnavailable:
		f.Class, f.Category = "ServiceUnavailable", "transient"
	case status >= 500:
		// Behind a gateway or a crash the request may have gone through.
		f.Class, f.Category, f.Uncertain = "ServerError", "transient", true
	default:
		f.Class, f.Category = "InvalidRequest", "invalid_input"
	}
	return f
}
