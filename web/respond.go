package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/dlq/redact"
	"github.com/redrive-dlq/redrive/rbac"
	"github.com/redrive-dlq/redrive/views/layout"
	"github.com/redrive-dlq/redrive/views/message"
	"github.com/redrive-dlq/redrive/views/route"
)

// statuses is the one table from a problem's code to its HTTP status.
var statuses = map[problem.Code]int{
	problem.Invalid:       http.StatusUnprocessableEntity,
	problem.Malformed:     http.StatusBadRequest,
	problem.TooLarge:      http.StatusRequestEntityTooLarge,
	problem.Unsupported:   http.StatusUnsupportedMediaType,
	problem.Unauthorized:  http.StatusUnauthorized,
	problem.Forbidden:     http.StatusForbidden,
	problem.NotFound:      http.StatusNotFound,
	problem.Conflict:      http.StatusConflict,
	problem.TooMany:       http.StatusTooManyRequests,
	problem.Unavailable:   http.StatusServiceUnavailable,
	problem.Internal:      http.StatusInternalServerError,
	problem.StepUpMissing: http.StatusForbidden,
}

// titles head the error pages.
var titles = map[int]string{
	http.StatusBadRequest:            "This request can't be read",
	http.StatusUnauthorized:          "Nobody is signed in",
	http.StatusForbidden:             "This is not allowed",
	http.StatusNotFound:              "There is nothing here",
	http.StatusMethodNotAllowed:      "This address works differently",
	http.StatusConflict:              "This can't be done now",
	http.StatusRequestEntityTooLarge: "This is too large",
	http.StatusUnsupportedMediaType:  "This kind of content isn't taken",
	http.StatusUnprocessableEntity:   "Something in this request is wrong",
	http.StatusTooManyRequests:       "Too many tries",
	http.StatusInternalServerError:   "Something went wrong here",
	http.StatusServiceUnavailable:    "Redrive can't answer right now",
	http.StatusMisdirectedRequest:    "This address is not served here",
}

const (
	internalText    = "Redrive failed at this. The failure was written to its log under the request id below."
	unavailableText = "The database did not answer in time. What you asked for was not done, unless the page you come from shows it."
)

// failTimeout bounds the making of an error page.
const failTimeout = 5 * time.Second

// answer is what a failure becomes for the client.
type answer struct {
	status int
	code   problem.Code
	text   string
	field  string
	retry  time.Duration // 0 = not told
}

// fail is the one responder for failures of every route.
func (s *Server) fail(c echo.Context, err error) {
	a := s.explain(err)
	s.logFailure(c, a, err)
	if c.Response().Committed {
		return // too late to say anything
	}
	h := c.Response().Header()
	for _, name := range []string{echo.HeaderContentEncoding, echo.HeaderContentLength, echo.HeaderContentType} {
		h.Del(name)
	}
	h.Set("Cache-Control", "no-store")
	if a.retry > 0 {
		h.Set("Retry-After", retryAfter(a.retry))
	}
	// The guard's deadline may be why we are here, and its context has ended by
	// now in any case: the answer gets time of its own.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Request().Context()), failTimeout)
	defer cancel()
	c.SetRequest(c.Request().WithContext(ctx))
	var sent error
	if isAPI(c) {
		sent = s.failAPI(c, a)
	} else {
		sent = s.failPage(c, a)
	}
	if sent != nil {
		s.log.Warn("answer not sent", "request_id", RequestID(c), "error", redact.Text(sent.Error()))
	}
}

// explain maps any error to what may be said about it. Errors that are not
// ours say nothing to the client.
func (s *Server) explain(err error) answer {
	var tooBig *http.MaxBytesError
	if errors.As(err, &tooBig) {
		err = tooLarge(tooBig.Limit)
	}
	var p *problem.Error
	if errors.As(err, &p) {
		a := answer{status: statuses[p.Code], code: p.Code, text: p.Message, field: p.Field}
		if a.status == 0 {
			a.status, a.code = http.StatusInternalServerError, problem.Internal
		}
		var throttled *rbac.Throttled
		if errors.As(err, &throttled) {
			a.retry = throttled.After
		}
		switch {
		case p.Code == problem.Internal:
			a.text = internalText
		case p.Code == problem.Unavailable && a.text == "":
			a.text = unavailableText
		}
		return a
	}
	var e *echo.HTTPError
	if errors.As(err, &e) {
		return explainEcho(e)
	}
	if unavailable(err) {
		return answer{status: http.StatusServiceUnavailable, code: problem.Unavailable, text: unavailableText, retry: 5 * time.Second}
	}
	return answer{status: http.StatusInternalServerError, code: problem.Internal, text: internalText}
}

func explainEcho(e *echo.HTTPError) answer {
	a := answer{status: e.Code, code: problem.Malformed, text: "This request can't be read."}
	switch e.Code {
	case http.StatusNotFound:
		a.code, a.text = problem.NotFound, "There is no page at this address. It may have moved, or a part of the address is missing."
	case http.StatusMethodNotAllowed:
		a.code, a.text = problem.NotFound, "This address doesn't take this kind of request. Nothing was done."
	case http.StatusMisdirectedRequest:
		a.text, _ = e.Message.(string)
	default:
		if e.Code >= 500 {
			a.code, a.text = problem.Internal, internalText
		}
	}
	return a
}

// logFailure writes down what the client isn't told.
func (s *Server) logFailure(c echo.Context, a answer, err error) {
	level := slog.LevelDebug
	if a.status >= 500 {
		level = slog.LevelError
	}
	if clientGone(err) {
		level = slog.LevelDebug
	}
	s.log.LogAttrs(c.Request().Context(), level, "failed",
		slog.String("request_id", RequestID(c)),
		slog.Int("status", a.status),
		slog.String("code", string(a.code)),
		slog.String("error", redact.Text(err.Error())))
}

// failAPI answers a machine with problem details (RFC 9457).
func (s *Server) failAPI(c echo.Context, a answer) error {
	if a.status == http.StatusUnauthorized {
		c.Response().Header().Set("WWW-Authenticate", `Bearer realm="redrive"`)
	}
	var pointer string
	if strings.HasPrefix(a.field, "/") {
		pointer = a.field
	}
	body, err := json.Marshal(struct {
		Type      string `json:"type"`
		Title     string `json:"title"`
		Status    int    `json:"status"`
		Detail    string `json:"detail"`
		Code      string `json:"code"`
		Field     string `json:"field,omitempty"`
		Pointer   string `json:"pointer,omitempty"` // the field, where it is a JSON Pointer into the body
		Instance  string `json:"instance"`
		RequestID string `json:"request_id"`
	}{"about:blank", http.StatusText(a.status), a.status, a.text, string(a.code), a.field, pointer, "urn:redrive:request:" + RequestID(c), RequestID(c)})
	if err != nil {
		return err
	}
	return c.Blob(a.status, "application/problem+json", body)
}

// failPage answers a browser: with the sign-in page where that helps, else with
// the error page.
func (s *Server) failPage(c echo.Context, a answer) error {
	get := c.Request().Method == http.MethodGet
	here := localPath(c.Request().URL.RequestURI())
	if get && a.code == problem.Unauthorized {
		return c.Redirect(http.StatusSeeOther, with(route.Login, route.FieldNext, here))
	}
	props := message.Props{Status: strconv.Itoa(a.status), Text: a.text, RequestID: RequestID(c)}
	switch a.code {
	case problem.Unauthorized:
		props.Advice = "You were not signed in, or your session ended. Nothing was done."
		props.Href, props.Link = route.Login, "Sign in"
	case problem.StepUpMissing:
		if get {
			return c.Redirect(http.StatusSeeOther, with(route.Confirm, route.FieldNext, here))
		}
		props.Advice = "Nothing was done. Confirm your passphrase, then do it again."
		props.Href, props.Link = with(route.Confirm, route.FieldNext, s.pageOf(c)), "Confirm the passphrase"
	}
	title := titles[a.status]
	if title == "" {
		title = http.StatusText(a.status)
	}
	props.Page = s.errorFrame(c, a, title)
	return s.render(c, a.status, message.View(props))
}

// errorFrame is the frame of an error page; without the database it stands
// alone, and a failure while building it changes nothing.
func (s *Server) errorFrame(c echo.Context, a answer, title string) layout.Page {
	alone := layout.Page{Title: title, OpenJobs: -1, Theme: theme(c), Now: s.people.Now()}
	if a.status >= 500 || a.code == problem.Unauthorized {
		return alone
	}
	if p, err := s.identify(c, Browser); err != nil || p == nil {
		return alone
	}
	page, err := s.page(c, title, "")
	if err != nil {
		return alone
	}
	return page
}

// pageOf is the page that a form posted to, where there is one, else the page
// it stood on.
func (s *Server) pageOf(c echo.Context) string {
	if s.pages[c.Path()] {
		return localPath(c.Request().URL.EscapedPath())
	}
	if from, err := url.Parse(c.Request().Referer()); err == nil && from.Host == c.Request().Host {
		return localPath(from.RequestURI())
	}
	return route.Overview
}

// render writes a page: into memory first, so that a failure half-way becomes
// an error page and no half page with status 200.
func (s *Server) render(c echo.Context, status int, component templ.Component) error {
	var buf bytes.Buffer
	if err := component.Render(c.Request().Context(), &buf); err != nil {
		return problem.Wrap(err, problem.Internal, internalText)
	}
	return c.HTMLBlob(status, buf.Bytes())
}

func with(path, name, value string) string {
	if value == "" || value == route.Overview {
		return path
	}
	return path + "?" + url.Values{name: {value}}.Encode()
}

// retryAfter is a wait in whole seconds, rounded up.
func retryAfter(d time.Duration) string { return strconv.Itoa(int(d.Seconds()) + 1) }

// Status is the HTTP status of a problem's code.
func Status(code problem.Code) int {
	if status, ok := statuses[code]; ok {
		return status
	}
	return http.StatusInternalServerError
}
