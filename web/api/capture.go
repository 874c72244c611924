package api

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/dlq/source"
	"github.com/redrive-dlq/redrive/rbac"
	"github.com/redrive-dlq/redrive/web"
)

const (
	// maxStream bounds one NDJSON request, in bytes; its documents have their own limit.
	maxStream      = 1 << 30
	captureTimeout = 5 * time.Minute
	chunkDocuments = 100
	chunkBytes     = 32 << 20
)

// captured answers for one document.
type captured struct {
	Index      int    `json:"index"`
	ID         int64  `json:"id,omitempty"`
	Generation int    `json:"generation,omitempty"`
	Result     string `json:"result,omitempty"` // created, updated, unchanged
	Error      *fault `json:"error,omitempty"`
}

// fault is why one document wasn't taken.
type fault struct {
	Status  int    `json:"status"`
	Code    string `json:"code"`
	Detail  string `json:"detail"`
	Pointer string `json:"pointer,omitempty"` // JSON Pointer into the document
}

// capture takes one document (application/json) or many (application/x-ndjson).
func (a *API) capture(c echo.Context) error {
	kind, _, err := mime.ParseMediaType(c.Request().Header.Get(echo.HeaderContentType))
	if err != nil {
		kind = ""
	}
	switch kind {
	case "application/json", "text/json":
		return a.captureOne(c)
	case "application/x-ndjson", "application/ndjson", "application/jsonl":
		return a.captureMany(c)
	}
	return problem.New(problem.Unsupported, "The content type %q isn't taken. Send one document as application/json, or one a line as application/x-ndjson.", kind)
}

func (a *API) captureOne(c echo.Context) error {
	p := web.Principal(c)
	raw, err := io.ReadAll(io.LimitReader(c.Request().Body, dlq.MaxDocumentBytes+1))
	if err != nil {
		return problem.Wrap(err, problem.Malformed, "The body ended before it was whole. Nothing was stored.")
	}
	if len(raw) > dlq.MaxDocumentBytes {
		return problem.New(problem.TooLarge, "The document has more than %d bytes, the limit for one. Nothing was stored.", dlq.MaxDocumentBytes)
	}
	doc, err := parse(p, raw)
	if err != nil {
		return err
	}
	out, err := a.store(c.Request().Context(), []*dlq.Document{doc})
	if err != nil {
		return err
	}
	if out[0].Err != nil {
		return out[0].Err
	}
	status := http.StatusOK
	if out[0].Outcome == dlq.CaptureCreated {
		status = http.StatusCreated
	}
	return c.JSON(status, captured{ID: out[0].ID, Generation: out[0].Generation, Result: out[0].Outcome})
}

// captureMany answers for each line; one bad document harms no other.
func (a *API) captureMany(c echo.Context) error {
	p := web.Principal(c)
	var answers []captured
	var docs []*dlq.Document
	var at []int // index of each of docs
	size := 0
	flush := func() {
		a.storeChunk(c.Request().Context(), docs, at, answers)
		docs, at, size = docs[:0], at[:0], 0
	}
	for raw, err := range dlq.SplitNDJSON(c.Request().Body, dlq.MaxDocumentBytes) {
		i := len(answers)
		answers = append(answers, captured{Index: i})
		if err == nil {
			var doc *dlq.Document
			if doc, err = parse(p, raw); err == nil {
				docs, at, size = append(docs, doc), append(at, i), size+len(raw)
			}
		}
		if err != nil {
			answers[i].Error = faultOf(err)
		}
		if len(docs) == chunkDocuments || size >= chunkBytes {
			flush()
		}
	}
	flush()
	if len(answers) == 0 {
		return problem.New(problem.Malformed, "The body holds no document. Send one a line.")
	}
	status := http.StatusOK
	for _, x := range answers {
		if x.Error != nil {
			status = http.StatusMultiStatus
		}
	}
	return c.JSON(status, map[string]any{"results": answers})
}

// parse reads a document and holds it against what the token may write.
func parse(p *rbac.Principal, raw []byte) (*dlq.Document, error) {
	d := dlq.Defaults{Environment: p.CaptureEnvironment()}
	if len(p.Sources) > 0 {
		d.Source = p.Sources[0]
	}
	doc, err := dlq.ParseDocument(raw, d)
	if err != nil {
		return nil, err
	}
	if !p.Can(rbac.Capture, doc.Environment, doc.JobType) {
		return nil, problem.At(problem.Forbidden, "/environment", "This token may not capture in %q.", doc.Environment)
	}
	if !p.MayWriteSource(doc.Source) {
		return nil, problem.At(problem.Forbidden, "/source", "This token may not write to the source %q, only to its own.", doc.Source)
	}
	return doc, nil
}

// store captures in one transaction.
func (a *API) store(ctx context.Context, docs []*dlq.Document) (out []dlq.Captured, err error) {
	err = pgx.BeginFunc(ctx, a.Pool, func(tx pgx.Tx) error {
		out, err = a.Capturer.Capture(ctx, tx, docs)
		if err != nil {
			return err
		}
		seen := map[source.ID]bool{}
		for _, d := range docs {
			seen[source.ID{Environment: d.Environment, Name: d.Source}] = true
		}
		for id := range seen {
			if err := source.Register(ctx, tx, id, source.KindHTTP); err != nil {
				return err
			}
		}
		return nil
	})
	return out, err
}

// storeChunk captures together; when the database refuses the chunk, each
// document stands for itself.
func (a *API) storeChunk(ctx context.Context, docs []*dlq.Document, at []int, answers []captured) {
	if len(docs) == 0 {
		return
	}
	out, err := a.store(ctx, docs)
	if err != nil && len(docs) > 1 {
		for i := range docs {
			a.storeChunk(ctx, docs[i:i+1], at[i:i+1], answers)
		}
		return
	}
	for i := range docs {
		x := &answers[at[i]]
		switch {
		case err != nil:
			x.Error = faultOf(err)
		case out[i].Err != nil:
			x.Error = faultOf(out[i].Err)
		default:
			x.ID, x.Generation, x.Result = out[i].ID, out[i].Generation, out[i].Outcome
		}
	}
}

// faultOf is what may be said about one document's failure.
func faultOf(err error) *fault {
	var p *problem.Error
	if errors.As(err, &p) && p.Code != problem.Internal {
		return &fault{Status: web.Status(p.Code), Code: string(p.Code), Detail: p.Message, Pointer: p.Field}
	}
	return &fault{Status: http.StatusServiceUnavailable, Code: string(problem.Unavailable),
		Detail: "The database did not take this document. It was not stored; send it again."}
}
