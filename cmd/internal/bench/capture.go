package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq"
)

const perRequest = 100

// documents returns the next 100 documents of about 1 KB, as NDJSON.
func (b *bench) documents() []byte {
	var out bytes.Buffer
	for range perRequest {
		n := b.next
		b.next++
		fmt.Fprintf(&out, `{"environment":"production","source":"ingest","job_type":"send_invoice","job_id":"inv-%d","idempotency_key":"inv:%d",`+
			`"tenant":"t%d","entity":"order:%d","payload":{"invoice_id":%d,"to_email":"lena.hofer%d@example.com","note":"%0400d"},`+
			`"headers":{"content-type":"application/json"},"dead_at":"2026-03-01T00:00:00Z",`+
			`"attempts":[{"at":"2026-03-01T00:00:00Z","error_class":"HttpError","message":"provider answered 503 for invoice %d",`+
			`"stack":"  at mail.Send(worker/mail.go:40)\n  at invoice.Run(worker/invoice.go:41)\n  at river.work(river/work.go:12)","worker":"w1","worker_version":"1.4.2","duration_ms":120}]}`+"\n",
			n, n, n%50, n, n, n, n, n)
	}
	return out.Bytes()
}

// captures compares both doors with plain inserts of the same finished rows
// into the same tables with the same indexes. Runs are interleaved.
func (b *bench) captures(ctx context.Context) error {
	var overHTTP, inGo, plain []time.Duration
	for i := range b.Rounds + 5 {
		if i == 5 { // warm: foreign key checks keep the plan of a small table until it is analysed
			if _, err := b.pool.Exec(ctx, `ANALYZE`); err != nil {
				return err
			}
		}
		h, err := b.captureHTTP(ctx)
		if err != nil {
			return err
		}
		g, err := b.captureGo(ctx)
		if err != nil {
			return err
		}
		p, err := b.plainInsert(ctx)
		if err != nil {
			return err
		}
		if i >= 5 {
			overHTTP, inGo, plain = append(overHTTP, h), append(inGo, g), append(plain, p)
		}
	}
	h, g, p := median(overHTTP), median(inGo), median(plain)
	b.print("capture_http_rows_per_s", perRequest/h)
	b.print("capture_go_rows_per_s", perRequest/g)
	b.print("plain_insert_rows_per_s", perRequest/p)
	b.print("capture_http_vs_insert", p/h)
	b.print("capture_go_vs_insert", p/g)
	return nil
}

func (b *bench) captureHTTP(ctx context.Context) (time.Duration, error) {
	docs := b.documents()
	return timed(func() error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.base+"/api/v1/dead-jobs", bytes.NewReader(docs))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/x-ndjson")
		req.Header.Set("Authorization", "Bearer demo-ingest-token")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer func() { _ = res.Body.Close() }() // read whole below
		body, err := io.ReadAll(res.Body)
		if err != nil {
			return err
		}
		if res.StatusCode != http.StatusOK {
			return fmt.Errorf("capture answered %d: %.300s", res.StatusCode, body)
		}
		return nil
	})
}

// captureGo includes parsing, as a caller with documents at hand would do it.
func (b *bench) captureGo(ctx context.Context) (time.Duration, error) {
	lines := bytes.Split(bytes.TrimSpace(b.documents()), []byte("\n"))
	return timed(func() error {
		docs := make([]*dlq.Document, len(lines))
		for i, raw := range lines {
			doc, err := dlq.ParseDocument(raw, dlq.Defaults{})
			if err != nil {
				return err
			}
			docs[i] = doc
		}
		return pgx.BeginFunc(ctx, b.pool, func(tx pgx.Tx) error {
			_, err := b.capturer.Capture(ctx, tx, docs)
			return err
		})
	})
}
