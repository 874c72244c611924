package replay_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq/replay"
)

// frozen is the target of a process that stops in the middle of a release, with
// all its locks, and never goes on.
type frozen struct {
	*departures
	in chan struct{}
}

func (f *frozen) Release(ctx context.Context, _ pgx.Tx, _ []replay.Item) ([]replay.Released, error) {
	close(f.in)
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestAFrozenProcessDelaysNobody for much more than a second: what it holds,
// bucket, destination, keys and jobs, is let go, and another process releases all
// of it, once.
func TestAFrozenProcessDelaysNobody(t *testing.T) {
	t.Parallel()
	l := loopSetup(t, fast, 1000)
	l.batch(t, members{n: 40, key: `'k' || i`, entity: `'order:' || i`})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stopped := &frozen{l.out, make(chan struct{})}
	one := l.service(l.pool)
	one.Targets = map[string]replay.Target{"http": stopped}
	ended := make(chan error, 1)
	go func() {
		_, err := one.ReleaseDue(ctx)
		ended <- err
	}()
	<-stopped.in
	since := time.Now()
	if n, err := l.svc.ReleaseDue(t.Context()); err != nil || n != 0 {
		t.Fatalf("%d left beside a release that holds the bucket: %v", n, err)
	}
	until(t, "another process releases all", func() bool {
		l.release(t)
		return len(l.out.list()) == 40
	})
	// A busy machine is given three more.
	if took := time.Since(since); took > 4*time.Second {
		t.Errorf("a frozen process delayed the others for %s", took)
	}
	cancel()
	if err := <-ended; err == nil {
		t.Error("the frozen process released after all")
	}
	if n := l.count(t, `SELECT count(*) FROM redrive.replays WHERE state = 'released'`); n != 40 {
		t.Errorf("%d are out, want 40", n)
	}
}
