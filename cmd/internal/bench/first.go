package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

const (
	firstTries = 9
	firstJobs  = 100
	firstPath  = "/first"
)

// firsts says how long after its due time the first replay of a scheduled batch
// left, and arrived at its destination: by the whole way in a console, from the
// plan to the delivery.
func (b *bench) firsts(ctx context.Context) error {
	var left, arrived []time.Duration
	for i := range firstTries {
		if err := b.planned(ctx, "first", (i+1)*firstJobs); err != nil {
			return err
		}
		batch, err := b.planOpen(ctx, "first")
		if err != nil {
			return err
		}
		if err := b.await(ctx, batch, "planned"); err != nil {
			return err
		}
		b.sink.forget(firstPath)
		due := time.Now().Add(1500*time.Millisecond + rand.N(400*time.Millisecond)).Truncate(time.Microsecond)
		if err := b.confirm(ctx, batch, due); err != nil {
			return err
		}
		late, err := b.firstLeft(ctx, batch)
		if err != nil {
			return err
		}
		if err := b.await(ctx, batch, "done"); err != nil {
			return err
		}
		at, ok := b.sink.arrived(firstPath)
		if !ok {
			return fmt.Errorf("batch %d is done and nothing of it arrived", batch)
		}
		left, arrived = append(left, late), append(arrived, at.Sub(due))
	}
	b.print("first_release_ms", median(left)*1000)
	b.print("first_release_worst_ms", slices.Max(left).Seconds()*1000)
	b.print("first_delivery_ms", median(arrived)*1000)
	b.print("first_delivery_worst_ms", slices.Max(arrived).Seconds()*1000)
	return nil
}

// await waits until a batch is in a state.
func (b *bench) await(ctx context.Context, batch int64, want string) error {
	const patience = 2 * time.Minute
	var state string
	for began := time.Now(); time.Since(began) < patience; {
		var err error
		if state, err = b.stateOf(ctx, batch); err != nil || state == want {
			return err
		}
		if err := wait(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	return fmt.Errorf("batch %d is %s, and not %s after %s", batch, state, want, patience)
}
