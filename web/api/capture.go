package api

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
	"github.com/redrive-dlq/redrive/web"
)

const (
	// maxStream bounds one NDJSON request, in bytes; its documents have their own limit.
	maxStream = 1 << 30
	// maxDocuments bounds the answers that are kept for one request.
	maxDocuments   = 100_000
	captureTimeout = 5 * time.Minute
	// streamTimeout ends the reading of a slow request, with time left to store
	// what came.
	streamTimeout  = captureTimeout - 30*time.Second
	chunkDocuments = 100
	chunkBytes     = 32 << 20
)

// captured says what became of one document.
type captured struct {
	ID         int64  `json:"id,omitempty"`
	Generation int    `json:"generation,omitempty"`
	Result     string `json:"result,omitempty"` // created, updated, unchanged
}

// answer is captured for one of many documents, or why it wasn't taken.
type answer struct {
	Index int `json:"index"` // from 0, empty lines not counted
	captured
	Error *fault `json:"error,omitempty"`
}

// capture takes one document (application/json) or many (application/x-ndjson).
func (a *API) capture(c echo.Context) error {
	kind, err := mediaType(c)
	if err != nil {
		return err
	}
	switch kind {
	case "application/json":
		return a.captureOne(c)
	case "application/x-ndjson", "application/ndjson", "application/jsonl":
		return a.captureMany(c)
	}
	return problem.New(problem.Unsupported, "The content type %q isn't taken. Send one document as application/json, or one a line as application/x-ndjson.", short(kind))
}

func (a *API) captureOne(c echo.Context) error {
	r := c.Request()
	if r.ContentLength > dlq.MaxDocumentBytes {
		return problem.New(problem.TooLarge, "The document has %d bytes; at most %d (16 MiB) are allowed. Nothing was stored. Keep the large part elsewhere and send a reference.", r.ContentLength, dlq.MaxDocumentBytes)
	}
	raw, err := io.ReadAll(io.LimitReader(r.Body, dlq.MaxDocumentBytes+1))
	if err != nil {
		return unreadable(err, "Nothing was stored.")
	}
	if len(raw) > dlq.MaxDocumentBytes {
		return problem.New(problem.TooLarge, "The document has more than %d bytes (16 MiB), the limit for one. Nothing was stored. Keep the large part elsewhere and send a reference.", dlq.MaxDocumentBytes)
	}
	doc, err := parse(web.Principal(c), raw)
	if err != nil {
		return err
	}
	out, err := a.store(r.Context(), []*dlq.Document{doc})
	if err != nil {
		return err
	}
	if out[0].Err != nil {
		return out[0].Err
	}
	status := http.StatusOK
	if out[0].Outcome == dlq.CaptureCreated {
		status = http.StatusCreated
		c.Response().Header().Set(echo.HeaderLocation, "/api/v1/dead-jobs/"+strconv.FormatInt(out[0].ID, 10))
	}
	return c.JSON(status, captured{out[0].ID, out[0].Generation, out[0].Outcome})
}

// captureMany answers for each line; one bad document harms no other. Lines
// are stored in chunks while the rest still comes in.
func (a *API) captureMany(c echo.Context) error {
	p := web.Principal(c)
	// The server's read timeout is meant for small requests.
	_ = http.NewResponseController(c.Response().Writer).SetReadDeadline(time.Now().Add(streamTimeout))
	var answers []answer
	var docs []*dlq.Document
	var at []int // index of each of docs
	size := 0
	flush := func() {
		a.storeChunk(c, docs, at, answers)
		clear(docs) // stored payloads need not be held
		docs, at, size = docs[:0], at[:0], 0
	}
	for raw, err := range dlq.SplitNDJSON(c.Request().Body, dlq.MaxDocumentBytes) {
		i := len(answers)
		answers = append(answers, answer{Index: i})
		if i == maxDocuments {
			answers[i].Error = newFault(problem.TooLarge, "At most %d documents are taken in one request. This one and those after it were not read; send them in another.", maxDocuments)
			break
		}
		if err != nil {
			answers[i].Error = brokenOff(err)
			continue
		}
		doc, err := parse(p, raw)
		if err != nil {
			answers[i].Error = faultOf(err)
			continue
		}
		docs, at, size = append(docs, doc), append(at, i), size+len(raw)
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
			break
		}
	}
	return c.JSON(status, map[string]any{"results": answers})
}

// brokenOff answers in the place of a line that can't be read: one that is too
// large, or the end of a stream that broke.
func brokenOff(err error) *fault {
	var p *problem.Error
	var limit *http.MaxBytesError
	switch {
	case errors.As(err, &p):
		return faultOf(err)
	case errors.As(err, &limit):
		return newFault(problem.TooLarge, "The request is larger than %d bytes. This document and those after it were not read; send them in another.", limit.Limit)
	}
	return newFault(problem.Malformed, "The body broke off here. This document and those after it were not read; send them again.")
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
		return nil, problem.At(problem.Forbidden, "/environment", "This token may not capture in %q.", short(doc.Environment))
	}
	if !p.MayWriteSource(doc.Source) {
		return nil, problem.At(problem.Forbidden, "/source", "This token may not write to the source %q, only to its own.", short(doc.Source))
	}
	return doc, nil
}
