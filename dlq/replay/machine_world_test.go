package replay_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"pgregory.net/rapid"

	"github.com/redrive-dlq/redrive/dlq/ledger"
	"github.com/redrive-dlq/redrive/dlq/replay"
)

// worker runs one replay that is out. It writes the ledger and asks it
// nothing: what keeps an effect from happening twice here is Redrive alone.
func (m *machine) worker(t *rapid.T) {
	id := m.pick(t, "replay", `SELECT id FROM redrive.replays WHERE state = 'released' ORDER BY id`)
	if id == 0 || m.out[id] {
		return // it ran, and its outcome was lost
	}
	ctx := context.Background()
	var k ledger.Key
	err := m.pool.QueryRow(ctx, `SELECT environment, key_scope, idempotency_key FROM redrive.replays WHERE id = $1`, id).Scan(&k.Environment, &k.Scope, &k.Key)
	if err != nil {
		t.Fatal(err)
	}
	how := rapid.SampledFrom([]string{"succeeds", "succeeds", "fails", "dies in the middle", "is not heard"}).Draw(t, "how")
	if how != "fails" && k.Key != "" {
		if _, err := ledger.Begin(ctx, m.pool, k); err != nil {
			t.Fatal(err)
		}
		m.effects[fmt.Sprint(k)]++
	}
	if (how == "succeeds" || how == "is not heard") && k.Key != "" {
		if err := ledger.Finish(ctx, m.pool, k, json.RawMessage(`{"id": "x"}`)); err != nil {
			t.Fatal(err)
		}
	}
	m.out[id] = true
	switch how {
	case "succeeds":
		m.try(t, "outcome", func(ctx context.Context) error {
			_, err := m.svc.Record(ctx, id, replay.End{Outcome: replay.Succeeded, EffectID: "x"})
			return err
		})
	case "fails":
		m.try(t, "outcome", func(ctx context.Context) error {
			_, err := m.svc.Record(ctx, id, replay.End{Outcome: replay.Failed, Code: "http_503",
				Failure: &replay.Failure{Class: "HTTP 503", Message: "busy", Category: "transient", Fingerprint: rapid.SampledFrom([]string{"f", "g"}).Draw(t, "print"), StatusCode: 503}})
			return err
		})
	}
}

// steer is a person at a batch's page.
func (m *machine) steer(t *rapid.T) {
	id := m.batch(t)
	if id == 0 {
		return
	}
	what := rapid.SampledFrom([]string{"pause", "pause", "resume", "resume", "slower", "cancel", "judge"}).Draw(t, "what")
	m.try(t, what, func(ctx context.Context) error {
		switch what {
		case "pause":
			return m.svc.Pause(ctx, m.oncall, id, "the machine says so")
		case "resume":
			return m.svc.Resume(ctx, m.oncall, id, "the machine says so")
		case "slower":
			return m.svc.SetRate(ctx, m.oncall, id, 30)
		case "judge":
			return m.svc.Rejudge(ctx, m.oncall, id)
		}
		_, _, err := m.svc.Cancel(ctx, m.oncall, id, "the machine says so")
		return err
	})
}

func (m *machine) holds(t *rapid.T) {
	held := m.pick(t, "hold", `SELECT id FROM redrive.holds WHERE lifted_at IS NULL ORDER BY id`)
	m.try(t, "hold", func(ctx context.Context) error {
		if held != 0 {
			return m.svc.LiftHold(ctx, m.oncall, held, "the machine says so")
		}
		_, err := m.svc.PlaceHold(ctx, m.oncall, replay.Hold{Environment: "production",
			JobType: rapid.SampledFrom([]string{"", "sync_contact"}).Draw(t, "of")})
		return err
	})
}

func (m *machine) single(t *rapid.T) {
	id := m.pick(t, "job", `SELECT id FROM redrive.dead_jobs ORDER BY id`)
	if id == 0 {
		return
	}
	m.try(t, "single", func(ctx context.Context) error {
		o := replay.Order{DeadJobID: id, Reason: "the machine says so"}
		if err := m.pool.QueryRow(ctx, `SELECT generation, payload_version FROM redrive.dead_jobs WHERE id = $1`, id).Scan(&o.Generation, &o.PayloadVersion); err != nil {
			return err
		}
		if rapid.Bool().Draw(t, "later") {
			o.At = m.clock.Add(time.Minute)
		}
		_, err := m.svc.One(ctx, m.oncall, o)
		return err
	})
}

// triage edits, discards or reopens a job beside the batches.
func (m *machine) triage(t *rapid.T) {
	id := m.pick(t, "job", `SELECT id FROM redrive.dead_jobs WHERE status IN ('open', 'discarded') ORDER BY id`)
	if id == 0 {
		return
	}
	edit := rapid.Bool().Draw(t, "edit")
	m.try(t, "triage", func(ctx context.Context) error {
		if !edit {
			_, err := m.pool.Exec(ctx, `
				UPDATE redrive.dead_jobs SET status = CASE status WHEN 'open' THEN 'discarded' ELSE 'open' END
				WHERE id = $1 AND status IN ('open', 'discarded')`, id)
			return err
		}
		_, err := m.pool.Exec(ctx, `
			WITH e AS (
				UPDATE redrive.dead_jobs SET payload_version = payload_version + 1, fix_kind = 'edit' WHERE id = $1 AND status = 'open'
				RETURNING id, payload_version)
			INSERT INTO redrive.payloads (dead_job_id, version, bytes, encoding, size, sha256, redacted, redact_version, origin)
			SELECT e.id, e.payload_version, p.bytes, p.encoding, p.size, p.sha256, p.redacted, p.redact_version, 'edit'
			FROM e JOIN redrive.payloads p ON p.dead_job_id = e.id AND p.version = 1`, id)
		return err
	})
}

// settle is a person who looks an unknown effect up, and says the truth.
func (m *machine) settle(t *rapid.T) {
	id := m.pick(t, "unknown", `SELECT id FROM redrive.dead_jobs WHERE effect = 'unknown' ORDER BY id`)
	if id == 0 {
		return
	}
	m.try(t, "settle", func(ctx context.Context) error {
		var k ledger.Key
		if err := m.pool.QueryRow(ctx, `SELECT environment, key_scope, idempotency_key FROM redrive.dead_jobs WHERE id = $1`, id).Scan(&k.Environment, &k.Scope, &k.Key); err != nil {
			return err
		}
		s := ledger.Settlement{Reason: "the machine looked it up"}
		if m.effects[fmt.Sprint(k)] > 0 {
			s.Happened, s.EffectID = true, "x"
		}
		return ledger.Settle(ctx, m.pool, m.oncall, id, s)
	})
}

// wait lets time pass: a little, or past a deadline.
func (m *machine) wait(t *rapid.T) {
	m.clock = m.clock.Add(rapid.SampledFrom([]time.Duration{100 * time.Millisecond, time.Second, 10 * time.Second, time.Minute, 6 * time.Minute, 20 * time.Minute}).Draw(t, "for"))
}

func (m *machine) sweep(t *rapid.T) {
	m.try(t, "expire", func(ctx context.Context) error {
		_, err := m.svc.Expire(ctx)
		return err
	})
	m.try(t, "unblock", func(ctx context.Context) error {
		_, err := m.svc.Unblock(ctx)
		return err
	})
	m.try(t, "end batches", func(ctx context.Context) error {
		_, err := m.svc.EndBatches(ctx)
		return err
	})
}

// finish lets everything that was ordered go on, or cancels it: every state
// has an exit.
func (m *machine) finish(t *rapid.T) {
	ctx := context.Background()
	m.must(t, "lift", func() error {
		holds, err := m.svc.Holds(ctx, m.oncall)
		for _, h := range holds {
			if err := m.svc.LiftHold(ctx, m.oncall, h.ID, "the end"); err != nil {
				return err
			}
		}
		return err
	})
	for range 80 {
		for _, id := range m.batches {
			for _, w := range []replay.Work{replay.WorkPlan, replay.WorkStart, replay.WorkCancel} {
				m.must(t, string(w), func() error { _, err := m.svc.Do(ctx, w, id); return err })
			}
		}
		for _, id := range m.ids(t, `SELECT id FROM redrive.batches WHERE state = 'paused'`) {
			m.must(t, "resume", func() error { return m.svc.Resume(ctx, m.oncall, id, "the end") })
		}
		m.must(t, "release", func() error { _, err := m.svc.ReleaseDue(ctx); return err })
		for _, id := range m.ids(t, `SELECT id FROM redrive.replays WHERE state = 'released'`) {
			if !m.out[id] {
				m.must(t, "outcome", func() error {
					_, err := m.svc.Record(ctx, id, replay.End{Outcome: replay.Succeeded, EffectID: "x"})
					return err
				})
			}
		}
		m.must(t, "expire", func() error { _, err := m.svc.Expire(ctx); return err })
		m.must(t, "unblock", func() error { _, err := m.svc.Unblock(ctx); return err })
		m.must(t, "end batches", func() error { _, err := m.svc.EndBatches(ctx); return err })
		m.clock = m.clock.Add(time.Minute)
		if len(m.ids(t, openBatches)) == 0 {
			break
		}
	}
	if open := m.ids(t, openBatches); len(open) > 0 {
		t.Fatalf("these batches never end: %v\n%s", open, m.tell(t, open))
	}
	m.released += len(m.target.left)
	if stuck := m.ids(t, `SELECT id FROM redrive.dead_jobs WHERE status = 'replaying'`); len(stuck) > 0 {
		t.Fatalf("these jobs are replaying for ever: %v", stuck)
	}
	m.invariants(t)
}

// openBatches are those that go on by themselves; planned and waiting ones are
// a person's to decide.
const openBatches = `SELECT id FROM redrive.batches WHERE state NOT IN ('planned', 'waiting', 'done', 'cancelled')`

func (m *machine) ids(t *rapid.T, sql string) (ids []int64) {
	err := m.pool.QueryRow(context.Background(), `SELECT coalesce(array_agg(id ORDER BY id), '{}') FROM (`+sql+`) x`).Scan(&ids)
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

func (m *machine) must(t *rapid.T, what string, act func() error) {
	if err := act(); err != nil && !ledger.IsBusy(err) {
		t.Fatalf("%s: %v", what, err)
	}
}

// tell shows batches whole, for whoever has to find out why.
func (m *machine) tell(t *rapid.T, batches []int64) string {
	var text string
	err := m.pool.QueryRow(context.Background(), `
		SELECT string_agg(x::text, E'\n')
		FROM (SELECT to_jsonb(b) - 'verdicts' AS x FROM redrive.batches b WHERE id = ANY($1)
		      UNION ALL SELECT to_jsonb(u) FROM redrive.runs u
		      UNION ALL SELECT to_jsonb(r) FROM redrive.replays r WHERE state IN ('pending', 'ready', 'released')
		      UNION ALL SELECT to_jsonb(d) FROM redrive.destinations d
		      UNION ALL SELECT to_jsonb(h) FROM redrive.holds h WHERE lifted_at IS NULL) a`, batches).Scan(&text)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
