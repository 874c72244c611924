package web

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
)

// Rhythm of event streams.
const (
	streamPoll  = time.Second      // how often a page's version is looked at
	streamBeat  = 15 * time.Second // a comment, so that proxies keep the line
	streamWrite = 10 * time.Second // for one event; a client that doesn't read is cut off
)

// recheck asks again whether the request's person may go on, for streams that
// stay open: the session lives, nobody was disabled, the roles still allow it.
// It returns the person as they are now. It doesn't count as use of the session.
func (s *Server) recheck(c echo.Context, perms ...rbac.Permission) (*rbac.Principal, error) {
	x, err := s.session(c)
	if err != nil {
		return nil, err
	}
	ctx := c.Request().Context()
	alive, err := s.sessions.Alive(ctx, x)
	if err != nil {
		return nil, err
	}
	if !alive {
		return nil, problem.New(problem.Unauthorized, "Your session has ended.")
	}
	p, err := s.people.Person(ctx, x)
	if err != nil {
		return nil, err
	}
	return p, p.Require("", "", perms...)
}

// stream is a handler body for live pages. It calls version about once a second
// and sends an event "change" whenever the answer differs from the last; the
// page then fetches itself. It ends when the client goes, the server stops, or
// the person may no longer look: version gets them as they are at that moment
// and checks the scope itself.
func (s *Server) stream(c echo.Context, version func(ctx context.Context, p *rbac.Principal) (string, error), perms ...rbac.Permission) error {
	ctx := c.Request().Context()
	last, err := version(ctx, s.principal(c))
	if err != nil {
		return err
	}
	h := c.Response().Header()
	h.Set(echo.HeaderContentType, "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // nginx
	c.Response().WriteHeader(http.StatusOK)
	// 2 s until the browser asks again after a cut.
	if err := send(c, "retry: 2000\n\n"); err != nil {
		return nil //nolint:nilerr // the client went away
	}
	tick := time.NewTicker(streamPoll)
	defer tick.Stop()
	beat := time.Now()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.draining:
			return nil
		case <-tick.C:
		}
		p, err := s.recheck(c, perms...)
		if err != nil {
			return nil //nolint:nilerr // the stream ends; asking again says why
		}
		now, err := version(ctx, p)
		if err != nil {
			return nil //nolint:nilerr // likewise
		}
		switch {
		case now != last:
			err = send(c, fmt.Sprintf("event: change\ndata: %q\n\n", now))
			last, beat = now, time.Now()
		case time.Since(beat) > streamBeat:
			err = send(c, ": still here\n\n")
			beat = time.Now()
		}
		if err != nil {
			return nil //nolint:nilerr // the client went away
		}
	}
}

func send(c echo.Context, text string) error {
	rc := http.NewResponseController(c.Response().Writer)
	_ = rc.SetWriteDeadline(time.Now().Add(streamWrite)) // writers of tests have none
	if _, err := c.Response().Write([]byte(text)); err != nil {
		return err
	}
	return rc.Flush()
}
