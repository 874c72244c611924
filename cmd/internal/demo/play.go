package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/dlq/replay"
	"github.com/redrive-dlq/redrive/rbac"
)

// played names the setting that tells how many batches of the past there are.
const played = "played_batches"

// Play lets the demo's people order a few batches, as they would in the
// console, so that its pages have something to show: one that is done, one that
// stopped by itself, one that waits for a second person. It happens once in a
// store's life, in the background, and ends with Stop.
func (w *World) Play(ctx context.Context, people *rbac.Service, replays *replay.Service) {
	ctx, cancel := context.WithCancel(ctx)
	w.stopPlay = cancel
	w.trickling.Go(func() {
		p := &play{w: w, people: people, replays: replays}
		if err := p.all(ctx); err != nil && ctx.Err() == nil {
			w.opts.Logger.Warn("demo: not all batches of the past were ordered", "error", err)
		}
	})
}

// play is one run through the batches of the past.
type play struct {
	w                *World
	people           *rbac.Service
	replays          *replay.Service
	operator, oncall *rbac.Principal
}

func (p *play) all(ctx context.Context) error {
	var n int
	err := p.w.pool.QueryRow(ctx, `SELECT coalesce((SELECT value::integer FROM demo_app.settings WHERE name = $1), 0)`, played).Scan(&n)
	if err != nil {
		return fmt.Errorf("demo play: %w", err)
	}
	if n >= len(pastBatches) {
		return nil
	}
	if err := p.captured(ctx); err != nil {
		return err
	}
	end, err := p.signIn(ctx)
	if err != nil {
		return err
	}
	defer end()
	for ; n < len(pastBatches); n++ {
		if err := p.order(ctx, pastBatches[n]); err != nil {
			return err
		}
		if err := keep(ctx, p.w.pool, played, fmt.Sprint(n+1)); err != nil {
			return err
		}
	}
	return nil
}

// captured waits until Redrive has read all that was seeded.
func (p *play) captured(ctx context.Context) error {
	return p.until(ctx, `
		SELECT (SELECT count(*) FROM redrive.dead_jobs) >= (SELECT value::bigint FROM demo_app.settings WHERE name = 'seeded_jobs')`)
}

// signIn is two people sitting down; end is their signing out.
func (p *play) signIn(ctx context.Context) (end func(), err error) {
	var open []func()
	for role, who := range map[rbac.Role]**rbac.Principal{rbac.Operator: &p.operator, rbac.OnCall: &p.oncall} {
		x, err := p.people.SignIn(ctx, rbac.Attempt{Email: rbac.DemoEmail(role), Passphrase: rbac.DemoPassphrase, IP: "127.0.0.1", UserAgent: "Redrive demo"})
		if err != nil {
			return nil, fmt.Errorf("demo play: %w", err)
		}
		if *who, err = p.people.Person(ctx, x); err != nil {
			return nil, fmt.Errorf("demo play: %w", err)
		}
		open = append(open, func() {
			if err := p.people.SignOut(context.WithoutCancel(ctx), *who, x); err != nil {
				p.w.opts.Logger.Warn("demo: a session stays open", "error", err)
			}
		})
	}
	return func() {
		for _, out := range open {
			out()
		}
	}, nil
}

// order takes one batch from its selection to its confirmation. A selection
// that matches nothing, in a small store, is left out.
func (p *play) order(ctx context.Context, b pastBatch) error {
	sel, err := b.selection(ctx, p.w)
	if err != nil {
		return err
	}
	ids, err := p.replays.Plan(ctx, p.operator, sel, b.why)
	if problem.Is(err, problem.Invalid) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("demo play: %w", err)
	}
	for _, id := range ids {
		if err := p.confirm(ctx, id, b); err != nil {
			return fmt.Errorf("demo play: batch %d: %w", id, err)
		}
	}
	return nil
}

func (p *play) confirm(ctx context.Context, id int64, b pastBatch) error {
	if err := p.planned(ctx, id); err != nil {
		return err
	}
	if b.fix.Kind != "" {
		fix := b.fix
		fix.Batch = id
		if err := p.replays.DeclareFix(ctx, p.operator, fix); err != nil {
			return err
		}
		if err := p.planned(ctx, id); err != nil {
			return err
		}
	}
	var jobType, planHash string
	var eligible int
	err := p.w.pool.QueryRow(ctx, `SELECT job_type, plan_hash, eligible FROM redrive.batches WHERE id = $1`, id).
		Scan(&jobType, &planHash, &eligible)
	if err != nil {
		return err
	}
	t, ok := p.replays.Types().Type(jobType)
	if !ok || eligible == 0 {
		return nil
	}
	o := replay.ReviewDefaults(t, eligible)
	o.Batch, o.PlanHash, o.Reason, o.StartAfter, o.AcceptRepeat = id, planHash, b.why, 0, !t.Idempotent()
	reviewHash, err := p.replays.Review(ctx, p.oncall, o)
	if err != nil {
		return err
	}
	page, err := p.replays.Confirming(ctx, p.oncall, id) // a person confirms from the page they see
	if err != nil {
		return err
	}
	_, err = p.replays.Confirm(ctx, p.oncall, replay.ConfirmOrder{Batch: id, PlanHash: planHash, ReviewHash: reviewHash,
		Nonce: page.Nonce, Phrase: page.Phrase})
	return err
}

func (p *play) planned(ctx context.Context, id int64) error {
	return p.until(ctx, `SELECT state = 'planned' FROM redrive.batches WHERE id = $1`, id)
}

// until waits for a condition, five minutes at most.
func (p *play) until(ctx context.Context, sql string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	for {
		var holds bool
		if err := p.w.pool.QueryRow(ctx, sql, args...).Scan(&holds); err != nil {
			return err
		}
		if holds {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(errors.New("waited in vain"), ctx.Err())
		case <-time.After(300 * time.Millisecond):
		}
	}
}
