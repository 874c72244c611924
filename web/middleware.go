package web

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/dlq/redact"
)

// Keys of what middleware leaves in a request's context.
const (
	keyRequestID = "redrive.request_id"
	keyPrincipal = "redrive.principal"
	keyRoute     = "redrive.route"
	keyServer    = "redrive.server"
)

// headerRequestID tells the client which log lines are about its request.
const headerRequestID = "X-Request-Id"

// requestID names the request. One sent by the client is not taken: it would
// stand in the log and in audit entries.
func (s *Server) requestID(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		b := make([]byte, 10)
		_, _ = rand.Read(b)
		id := hex.EncodeToString(b)
		c.Set(keyRequestID, id)
		c.Response().Header().Set(headerRequestID, id)
		return next(c)
	}
}

// RequestID is the id of the request, as log, audit entries and error pages
// have it.
func RequestID(c echo.Context) string {
	id, _ := c.Get(keyRequestID).(string)
	return id
}

// accessLog writes one line a request: never the query, which may hold what
// people searched for, nor headers.
func (s *Server) accessLog(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		start := time.Now()
		if err := next(c); err != nil {
			c.Error(err) // answers now, so that the status is known
		}
		level := slog.LevelInfo
		r, isRoute := c.Get(keyRoute).(Route)
		if isRoute && r.Audience == Probe {
			level = slog.LevelDebug
		}
		attrs := []slog.Attr{
			slog.String("request_id", RequestID(c)),
			slog.String("method", loggable(c.Request().Method)),
			slog.String("path", loggable(c.Request().URL.Path)),
			slog.String("route", r.Name),
			slog.Int("status", c.Response().Status),
			slog.Int64("bytes", c.Response().Size),
			slog.Duration("took", time.Since(start)),
			slog.String("ip", c.RealIP()),
		}
		if p := Principal(c); p != nil {
			attrs = append(attrs, slog.Int64("user", p.UserID), slog.Int64("token", p.TokenID))
		}
		s.log.LogAttrs(c.Request().Context(), level, "request", attrs...)
		return nil
	}
}

// loggable makes client text fit for a log line: redacted, short, on one line.
func loggable(text string) string {
	if len(text) > 300 {
		text = text[:300] + "…"
	}
	return redact.Readable(strings.ToValidUTF8(text, "�"))
}

// recoverPanics turns a panic into a failure that the responder shows as a
// generic page; the stack goes to the log only.
func (s *Server) recoverPanics(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		defer func() {
			r := recover()
			if r == nil {
				return
			}
			if e, ok := r.(error); ok && errors.Is(e, http.ErrAbortHandler) {
				panic(r) // net/http's own way to cut a connection
			}
			s.log.Error("panic", "request_id", RequestID(c), "panic", redact.Text(fmt.Sprint(r)), "stack", redact.Text(string(debug.Stack())))
			err = problem.New(problem.Internal, internalText)
		}()
		return next(c)
	}
}

// securityHeaders sets what every answer carries, and the nonce for the page's
// own script.
func (s *Server) securityHeaders(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		b := make([]byte, 16)
		_, _ = rand.Read(b)
		nonce := base64.RawURLEncoding.EncodeToString(b)
		h := c.Response().Header()
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'nonce-"+nonce+"'; style-src 'self'; "+
			"img-src 'self' data:; font-src 'self'; connect-src 'self'; form-action 'self'; "+
			"frame-ancestors 'none'; base-uri 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		// Not no-referrer: that turns the Origin of our own forms into "null".
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if s.config.TLS || c.Request().TLS != nil {
			h.Set("Strict-Transport-Security", "max-age=31536000")
		}
		r := c.Request()
		c.SetRequest(r.WithContext(templ.WithNonce(r.Context(), nonce)))
		return next(c)
	}
}

// checkHost refuses names that are not ours: a foreign name pointed at a
// loopback console must not reach it.
func (s *Server) checkHost(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if len(s.config.Hosts) == 0 {
			return next(c)
		}
		host := c.Request().Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		host = strings.ToLower(strings.Trim(host, "[]"))
		if !slices.Contains(s.config.Hosts, host) {
			return echo.NewHTTPError(http.StatusMisdirectedRequest, "This address is not served here. Use the one the console was started with.")
		}
		return next(c)
	}
}

// checkOrigin refuses writes that another site asked for. Browsers send
// Sec-Fetch-Site or Origin with each write; a form that comes with neither is
// no browser's, and machines have the API.
func (s *Server) checkOrigin(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		switch r.Method {
		case http.MethodGet, http.MethodHead, http.MethodOptions:
			return next(c)
		}
		if err := s.origins.Check(r); err != nil {
			return problem.Wrap(err, problem.Forbidden, "This request came from another site, so nothing was done. Open the console itself and try there.")
		}
		if !isAPI(c) && r.Header.Get("Origin") == "" && r.Header.Get("Sec-Fetch-Site") == "" {
			return problem.New(problem.Forbidden, "This request doesn't say which site it comes from, so nothing was done. Use a current browser; scripts use %sv1.", apiPrefix)
		}
		return next(c)
	}
}

func isAPI(c echo.Context) bool { return strings.HasPrefix(c.Request().URL.Path, apiPrefix) }
