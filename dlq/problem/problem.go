// Package problem holds the one error type of Redrive: a code that programs
// branch on, a message for people, and the wrapped cause for the log.
package problem

import (
	"errors"
	"fmt"
)

// Code says what kind of thing went wrong. The web layer maps it to a status.
type Code string

// The codes. Each names what the caller can do about it.
const (
	Invalid       Code = "invalid"        // the request is wrong; the message says where and what to do (422)
	Malformed     Code = "malformed"      // the request can't be read at all (400)
	TooLarge      Code = "too_large"      // over a limit that the message names (413)
	Unsupported   Code = "unsupported"    // a content type or encoding we don't take (415)
	Unauthorized  Code = "unauthorized"   // nobody is signed in (401)
	Forbidden     Code = "forbidden"      // signed in, but without the right (403)
	NotFound      Code = "not_found"      // not there, or not in the caller's scope (404)
	Conflict      Code = "conflict"       // the state doesn't allow it now (409)
	TooMany       Code = "too_many"       // a rate limit (429)
	Unavailable   Code = "unavailable"    // the database or a target is away (503)
	Internal      Code = "internal"       // our fault (500)
	StepUpMissing Code = "step_up_needed" // the passphrase is needed again (403)
)

// Error is what every package returns for a failure that a person may read.
// Message is plain text for people and never holds a raw payload or secret.
type Error struct {
	Code    Code
	Message string
	Field   string // the form field, JSON pointer or parameter at fault; may be empty
	Err     error  // wrapped cause, logged with a request id, never shown
}

// Error implements error; it includes the cause and is meant for the log.
func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %s: %v", e.Code, e.Message, e.Err)
	}
	return fmt.Sprintf("%s: %s", e.Code, e.Message)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// New returns an error with a formatted message for people.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// At returns an error that points at a field.
func At(code Code, field, format string, args ...any) *Error {
	return &Error{Code: code, Field: field, Message: fmt.Sprintf(format, args...)}
}

// Wrap returns an error with a cause that is logged and not shown.
func Wrap(err error, code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Err: err}
}

// CodeOf returns the code of the first *Error in err's chain, Internal for any
// other error and "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return Internal
}

// Is reports whether err carries the code.
func Is(err error, code Code) bool { return err != nil && CodeOf(err) == code }
