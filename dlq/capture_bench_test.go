package dlq

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// benchDocs are documents of 1 KB each, as the bar in the design has them.
func benchDocs(b testing.TB, from int) []*Document {
	b.Helper()
	docs := make([]*Document, 100)
	for i := range docs {
		n := from + i
		raw := fmt.Appendf(nil, `{"environment":"production","source":"bench","job_type":"send_invoice","job_id":"inv-%d","idempotency_key":"inv:%d",
			"tenant":"t%d","entity":"order:%d","payload":{"invoice_id":%d,"to_email":"lena.hofer%d@example.com","note":"%0400d"},
			"headers":{"content-type":"application/json"},"dead_at":"2026-03-01T00:00:00Z",
			"attempts":[{"at":"2026-03-01T00:00:00Z","error_class":"HttpError","message":"provider answered 503 for invoice %d",
			"stack":"  at mail.Send(worker/mail.go:40)\n  at invoice.Run(worker/invoice.go:41)\n  at river.work(river/work.go:12)","worker":"w1","worker_version":"1.4.2","duration_ms":120}]}`,
			n, n, n%50, n, n, n, n, n)
		docs[i] = mustParse(b, raw)
	}
	return docs
}

// BenchmarkCapture100 compares captures of 100 documents with the yardstick:
// the same rows, finished, inserted into the same tables with the same indexes
// by the plainest multi-row statements. Runs are interleaved and medians
// compared, since machines are noisy. The bar for ratio is 0.55.
func BenchmarkCapture100(b *testing.B) {
	s := setup(b)
	n := 0
	next := func() []*Document {
		n += 100
		return benchDocs(b, n-100)
	}
	for range 5 {
		s.capture(b, next()...)
	}
	// Foreign key checks keep the plan of a small table until it is analysed.
	s.exec(b, `ANALYZE`)
	var capture, plain []time.Duration
	for b.Loop() {
		docs := next()
		started := time.Now()
		s.capture(b, docs...)
		capture = append(capture, time.Since(started))
		plain = append(plain, s.plainInsert(b, next()))
	}
	slices.Sort(capture)
	slices.Sort(plain)
	mid := len(capture) / 2
	b.ReportMetric(float64(100/capture[mid].Seconds()), "rows/s")
	b.ReportMetric(plain[mid].Seconds()/capture[mid].Seconds(), "ratio")
}

// plainInsert times the statements alone, for rows prepared before.
func (s *bundle) plainInsert(b *testing.B, docs []*Document) time.Duration {
	b.Helper()
	rows := make([]*death, len(docs))
	for i, d := range docs {
		rows[i] = s.c.prepare(i, d, testNow)
		rows[i].id = 0
	}
	var sealing time.Duration
	started := time.Now()
	err := pgx.BeginFunc(b.Context(), s.pool, func(tx pgx.Tx) error {
		if err := insertJobs(b.Context(), tx, rows, testNow); err != nil {
			return err
		}
		before := time.Now()
		err := s.c.seal(b.Context(), tx, rows)
		sealing = time.Since(before)
		if err != nil {
			return err
		}
		return writeDeaths(b.Context(), tx, rows, testNow)
	})
	if err != nil {
		b.Fatal(err)
	}
	return time.Since(started) - sealing
}

// BenchmarkPrepare100 is the part that needs no database.
func BenchmarkPrepare100(b *testing.B) {
	c := NewCapturer(testTypes{}, nil, nil)
	docs := benchDocs(b, 0)
	for b.Loop() {
		for i, d := range docs {
			c.prepare(i, d, testNow)
		}
	}
}
