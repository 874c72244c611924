package console

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/redrive-dlq/redrive/dlq/replay"
	"github.com/redrive-dlq/redrive/rbac"
)

// Run serves on the listener until ctx ends; everything has stopped when it
// returns.
func (c *Console) Run(ctx context.Context, listener net.Listener) error {
	return c.work(ctx, func(ctx context.Context) error { return c.web.Serve(ctx, listener) })
}

// Prove proves a type as [replay.Service.Prove] does; the process works
// meanwhile as any other, and serves no pages.
func (c *Console) Prove(ctx context.Context, p *rbac.Principal, jobType, environment string, job int64, tell func(string)) (proof replay.Proof, err error) {
	err = c.work(ctx, func(ctx context.Context) error {
		proof, err = c.replays.Prove(ctx, p, jobType, environment, job, tell)
		return err
	})
	return proof, err
}

// work runs all that a process does besides, until f returns.
func (c *Console) work(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := c.engine.start(ctx); err != nil {
		return err
	}
	errs := make(chan error, len(c.running)+1)
	var wg sync.WaitGroup
	for _, run := range c.running {
		wg.Go(func() { errs <- run(ctx) })
	}
	err := f(ctx)
	cancel()
	wg.Wait()
	close(errs)
	for e := range errs {
		err = errors.Join(err, e)
	}
	stopCtx, done := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer done()
	return errors.Join(err, c.engine.stop(stopCtx))
}

// Close frees what New opened.
func (c *Console) Close() {
	for _, f := range c.close {
		f()
	}
}

// every runs f again and again until ctx ends; a failure is logged and tried
// again at the next turn.
func every(pause time.Duration, log *slog.Logger, what string, f func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		tick := time.NewTicker(pause)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
				if err := f(ctx); err != nil && ctx.Err() == nil {
					log.WarnContext(ctx, "not done: "+what, "error", err)
				}
			}
		}
	}
}
