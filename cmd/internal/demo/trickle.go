package demo

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	mathrand "math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/cmd/internal/demo/providers"
)

// trickle adds a job that will fail every now and then, until ctx ends.
func (w *World) trickle(ctx context.Context) {
	ticker := time.NewTicker(w.opts.Trickle)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if err := w.AddFailing(ctx); err != nil && ctx.Err() == nil {
				w.opts.Logger.Warn("demo: no new job this time", "error", err)
			}
		}
	}
}

// AddFailing inserts one job that a real worker will run, retry and give up
// on. The provider's fault is used up by its attempts, so that a later replay
// succeeds unless the fault is a lasting one.
func (w *World) AddFailing(ctx context.Context) error {
	r := mathrand.New(mathrand.NewPCG(mathrand.Uint64(), mathrand.Uint64())) // invented data, not secrets
	s := draw(r, func(s scenario) bool { return !s.panics })
	environment := environments[0]
	if n := r.IntN(10); n > 7 {
		environment = environments[n-7]
	}
	suffix := make([]byte, 5)
	if _, err := rand.Read(suffix); err != nil {
		return fmt.Errorf("demo: random key: %w", err)
	}
	args := makeTask(r, s.kind, hex.EncodeToString(suffix))
	if s.spoil != nil {
		args = s.spoil(r, args)
	}
	return w.add(ctx, environment, args, s, jobFacts{Tenant: pick(r, tenants), Event: "evt_" + hex.EncodeToString(suffix)})
}

// add inserts a job together with the fault that it will meet.
func (w *World) add(ctx context.Context, environment string, args task, s scenario, facts jobFacts) error {
	e := args.effect()
	facts.Key, facts.Entity, facts.PayloadVersion = e.Key, e.Entity, 1
	return pgx.BeginFunc(ctx, w.app, func(tx pgx.Tx) error {
		if s.fault.Mode != "" {
			f := s.fault
			f.Environment, f.Provider, f.Key = environment, e.Provider, e.Key
			f.Remaining = s.requests(args)
			if err := providers.Plant(ctx, tx, f); err != nil {
				return err
			}
		}
		return w.insert(ctx, tx, environment, args, facts)
	})
}

// requests is how many of a job's requests meet the fault: exactly those that
// its first life makes, so that what follows finds the provider well again.
func (s scenario) requests(t task) int {
	switch {
	case s.lasting:
		return 1_000_000
	case !s.failure(t).Retryable:
		return 1
	}
	return demoPolicy().MaxAttempts
}
