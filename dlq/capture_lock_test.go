package dlq

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Two callers that bring types in opposite order neither wait nor deadlock.
func TestCaptureOppositeOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	one, err := b.pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = one.Rollback(context.WithoutCancel(ctx)) }()
	two, err := b.pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = two.Rollback(context.WithoutCancel(ctx)) }()
	doc := func(jobType, id string) *Document {
		d := job(id, 1, 1)
		d.JobType = jobType
		return d
	}
	// A wait would end in this timeout, as both are open until the end.
	for _, tx := range []pgx.Tx{one, two} {
		if _, err := tx.Exec(ctx, `SET LOCAL lock_timeout = '2s'`); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		tx  pgx.Tx
		doc *Document
	}{
		{one, doc("charge_card", "1")}, {two, doc("send_invoice", "2")},
		{one, doc("send_invoice", "3")}, {two, doc("charge_card", "4")},
	} {
		if _, err := b.c.Capture(ctx, step.tx, []*Document{step.doc}); err != nil {
			t.Fatalf("capture of %s: %v", step.doc.JobType, err)
		}
	}
	if err := errors.Join(two.Commit(ctx), one.Commit(ctx)); err != nil {
		t.Fatal(err)
	}
	if n := get[int](t, b, `SELECT count(*) FROM redrive.dead_jobs`); n != 4 {
		t.Errorf("%d jobs", n)
	}
}

// Callers that bring the same jobs in opposite order wait, and don't deadlock.
func TestCaptureSameJobsOppositeOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const jobs, rounds = 20, 10
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for r := range rounds {
				docs := make([]*Document, jobs)
				for i := range docs {
					n := i
					if w%2 == 1 {
						n = jobs - 1 - i
					}
					docs[i] = job(fmt.Sprint(n), r+1, r+1)
				}
				b.capture(t, docs...)
			}
		})
	}
	wg.Wait()
	if n := get[int](t, b, `SELECT count(*) FROM redrive.dead_jobs WHERE generation BETWEEN 1 AND 10 AND last_death_attempt = 10`); n != jobs {
		t.Errorf("%d jobs have their last death", n)
	}
	if n := get[int](t, b, `SELECT count(*) FROM redrive.deaths`); n != jobs*rounds {
		t.Errorf("%d deaths", n)
	}
}
