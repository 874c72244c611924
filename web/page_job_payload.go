package web

import (
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq/board"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/views/route"
)

// jobPayload is the download of a payload version's redacted copy: always a
// file and never a page, whatever it holds.
func (s *Server) jobPayload(c echo.Context) error {
	id, err := idParam(c, "id")
	if err != nil {
		return err
	}
	version, err := versionParam(c)
	if err != nil {
		return err
	}
	p, err := board.PayloadOf(c.Request().Context(), s.config.Pool, s.principal(c), id, version)
	if err != nil {
		return err
	}
	kind, extension := "application/octet-stream", ".bin"
	switch p.Kind {
	case "json":
		kind, extension = "application/json", ".json"
	case "text", "printout", "empty":
		kind, extension = "text/plain; charset=utf-8", ".txt"
	}
	name := fileName(p.JobID) + "-v" + strconv.Itoa(p.Version) + "-redacted" + extension
	h := c.Response().Header()
	h.Set(echo.HeaderContentDisposition, mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	return c.Blob(http.StatusOK, kind, p.Redacted)
}

// versionParam reads the payload version of an address; 0 when it names none.
// Errors: Invalid.
func versionParam(c echo.Context) (int, error) {
	text := c.QueryParam(route.ParamVersion)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 1 {
		return 0, problem.At(problem.Invalid, route.ParamVersion, "A payload version is a whole number from 1 on.")
	}
	return int(n), nil
}

// fileName keeps of an id what every file system takes.
func fileName(id string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, id)
	if len(name) > 80 {
		name = name[:80]
	}
	return "payload-" + name
}
