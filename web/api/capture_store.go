package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/dlq/redact"
	"github.com/redrive-dlq/redrive/web"
)

// fault is why one document wasn't taken: problem details (RFC 9457) inside an
// answer for many.
type fault struct {
	Type    string `json:"type"`
	Title   string `json:"title"`
	Status  int    `json:"status"`
	Detail  string `json:"detail"`
	Code    string `json:"code"`
	Pointer string `json:"pointer,omitempty"` // JSON Pointer into the document
}

func newFault(code problem.Code, format string, args ...any) *fault {
	status := web.Status(code)
	return &fault{Type: "about:blank", Title: http.StatusText(status), Status: status, Code: string(code), Detail: fmt.Sprintf(format, args...)}
}

// faultOf is what may be said about one document's failure. What isn't ours to
// explain stands in the log only.
func faultOf(err error) *fault {
	var p *problem.Error
	switch {
	case errors.As(err, &p) && p.Code != problem.Internal:
		f := newFault(p.Code, "%s", p.Message)
		f.Pointer = p.Field
		return f
	case passing(err):
		return newFault(problem.Unavailable, "The database did not take this document now. It was not stored; send it again.")
	}
	return newFault(problem.Internal, "Redrive failed at this document. It was not stored; the cause stands in Redrive's log.")
}

// passing reports whether an error says nothing about the document: the
// database is away, busy or stopping. Classes of SQLSTATE: PostgreSQL, appendix A.
func passing(err error) bool {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return true // it didn't get as far as an answer
	}
	for _, class := range []string{"08", "25", "40", "53", "55", "57"} {
		if strings.HasPrefix(pg.Code, class) {
			return true
		}
	}
	return false
}

// store captures in one transaction.
func (a *API) store(ctx context.Context, docs []*dlq.Document) (out []dlq.Captured, err error) {
	if err := a.sawSources(ctx, docs); err != nil {
		return nil, err
	}
	err = pgx.BeginFunc(ctx, a.Pool, func(tx pgx.Tx) error {
		out, err = a.Capturer.Capture(ctx, tx, docs)
		return err
	})
	return out, err
}

// storeChunk captures together; when the database answers that it can't take
// the chunk, each document stands for itself.
func (a *API) storeChunk(c echo.Context, docs []*dlq.Document, at []int, answers []answer) {
	if len(docs) == 0 {
		return
	}
	out, err := a.store(c.Request().Context(), docs)
	var refused *pgconn.PgError
	if len(docs) > 1 && errors.As(err, &refused) {
		for i := range docs {
			a.storeChunk(c, docs[i:i+1], at[i:i+1], answers)
		}
		return
	}
	if err != nil {
		a.Log.ErrorContext(c.Request().Context(), "documents not stored", "request_id", web.RequestID(c),
			"first", at[0], "documents", len(docs), "error", redact.Text(err.Error()))
	}
	for i := range docs {
		x := &answers[at[i]]
		switch {
		case err != nil:
			x.Error = faultOf(err)
		case out[i].Err != nil:
			x.Error = faultOf(out[i].Err)
		default:
			x.captured = captured{out[i].ID, out[i].Generation, out[i].Outcome}
		}
	}
}
