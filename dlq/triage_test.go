package dlq

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/redrive-dlq/redrive/audit"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
)

// acts are all acts of triage with valid input.
func acts(b *bundle) map[string]func(ctx context.Context, p *rbac.Principal, id int64) error {
	s := TriageSettling{Reason: "settled by hand", Until: testNow.Add(time.Hour)}
	return map[string]func(ctx context.Context, p *rbac.Principal, id int64) error{
		"note": func(ctx context.Context, p *rbac.Principal, id int64) error {
			return TriageNote(ctx, b.pool, p, id, "looks odd")
		},
		"assign": func(ctx context.Context, p *rbac.Principal, id int64) error {
			return TriageAssign(ctx, b.pool, p, id, "")
		},
		"resolve": func(ctx context.Context, p *rbac.Principal, id int64) error {
			return TriageResolve(ctx, b.pool, p, id, s)
		},
		"discard": func(ctx context.Context, p *rbac.Principal, id int64) error {
			return TriageDiscard(ctx, b.pool, p, id, s)
		},
		"reopen": func(ctx context.Context, p *rbac.Principal, id int64) error {
			return TriageReopen(ctx, b.pool, p, id, s)
		},
		"snooze": func(ctx context.Context, p *rbac.Principal, id int64) error {
			return TriageSnooze(ctx, b.pool, p, id, s, testNow)
		},
		"declare_fix": func(ctx context.Context, p *rbac.Principal, id int64) error {
			return TriageDeclareFix(ctx, b.pool, p, id, TriageFix{Kind: "ticket", Reference: "OPS-12", Reason: "fixed it"})
		},
	}
}

func TestTriageStates(t *testing.T) {
	t.Parallel()
	b := setup(t)
	after := map[string]string{"resolve": "resolved", "discard": "discarded", "reopen": "open", "snooze": "snoozed"}
	refused := map[string]string{
		"resolve": "replaying recovered resolved discarded", "discard": "replaying recovered resolved discarded",
		"snooze": "replaying recovered resolved discarded", "declare_fix": "replaying recovered resolved discarded",
		"reopen": "replaying recovered open", "assign": "replaying",
	}
	for name, do := range acts(b) {
		for _, status := range []string{"open", "snoozed", "replaying", "recovered", "resolved", "discarded"} {
			id := b.one(t, job(name+status, 1, 1)).ID
			b.exec(t, `UPDATE redrive.dead_jobs SET status = $2, updated_at = '2020-01-01' WHERE id = $1`, id, status)
			err := do(t.Context(), operator, id)
			entries, readErr := audit.OfJob(t.Context(), b.pool, id, 10)
			if readErr != nil {
				t.Fatal(readErr)
			}
			got := get[string](t, b, `SELECT status FROM redrive.dead_jobs WHERE id = $1`, id)
			if strings.Contains(refused[name], status) {
				if !problem.Is(err, problem.Conflict) || got != status || len(entries) != 0 {
					t.Errorf("%s when %s: %v, then %s with %d entries, want a Conflict and nothing changed", name, status, err, got, len(entries))
				}
				continue
			}
			want := status
			if s, ok := after[name]; ok {
				want = s
			}
			if err != nil || got != want || len(entries) != 1 || entries[0].Action != "job."+name || entries[0].Actor.Name != operator.Email {
				t.Errorf("%s when %s: %v, then %s (want %s), entries %+v", name, status, err, got, want, entries)
			}
			if !get[bool](t, b, `SELECT updated_at > '2020-01-02' FROM redrive.dead_jobs WHERE id = $1`, id) {
				t.Errorf("%s when %s doesn't move updated_at", name, status)
			}
		}
	}
}

func TestTriageScopeAndRights(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.one(t, job("x", 1, 1)).ID
	other := person(rbac.Grant{Role: rbac.Operator, Environment: "elsewhere"})
	elsewhere := person(rbac.Grant{Role: rbac.Viewer}, rbac.Grant{Role: rbac.Operator, Environment: "elsewhere"})
	for name, do := range acts(b) {
		for who, want := range map[*rbac.Principal]problem.Code{other: problem.NotFound, elsewhere: problem.Forbidden, reader: problem.Forbidden} {
			if err := do(t.Context(), who, id); !problem.Is(err, want) {
				t.Errorf("%s by %v: %v, want %s", name, who.Grants, err, want)
			}
		}
		if err := do(t.Context(), operator, id+100); !problem.Is(err, problem.NotFound) {
			t.Errorf("%s on no job: %v, want NotFound", name, err)
		}
	}
	if n := get[int](t, b, `SELECT count(*) FROM redrive.audit_entries`); n != 0 {
		t.Errorf("%d entries of refused acts", n)
	}
}

// TestTriageNeverWithoutEntry breaks the log and expects that nothing changes.
func TestTriageNeverWithoutEntry(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.one(t, job("x", 1, 1)).ID
	closed := b.one(t, job("y", 1, 1)).ID
	b.exec(t, `UPDATE redrive.dead_jobs SET status = 'resolved' WHERE id = $1`, closed)
	b.exec(t, `ALTER TABLE redrive.audit_entries ADD CONSTRAINT broken CHECK (false)`)
	before := get[string](t, b, `SELECT json_agg(d ORDER BY id)::text FROM redrive.dead_jobs d`)
	for name, do := range acts(b) {
		at := id
		if name == "reopen" {
			at = closed
		}
		if err := do(t.Context(), operator, at); err == nil || problem.Is(err, problem.Conflict) {
			t.Errorf("%s with a broken log: %v", name, err)
		}
	}
	if diff := cmp.Diff(before, get[string](t, b, `SELECT json_agg(d ORDER BY id)::text FROM redrive.dead_jobs d`)); diff != "" {
		t.Errorf("jobs changed without an entry (-before +after):\n%s", diff)
	}
	if n := get[int](t, b, `SELECT count(*) FROM redrive.notes`); n != 0 {
		t.Error("a note was kept without its entry")
	}
}

func TestTriageInput(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.one(t, job("x", 1, 1)).ID
	ctx := t.Context()
	good := TriageSettling{Reason: "a reason"}
	with := func(s TriageSettling, until time.Duration) TriageSettling { s.Until = testNow.Add(until); return s }
	for name, test := range map[string]struct {
		err   error
		field string
	}{
		"no reason":        {TriageResolve(ctx, b.pool, operator, id, TriageSettling{Reason: " ab "}), "reason"},
		"reason too long":  {TriageDiscard(ctx, b.pool, operator, id, TriageSettling{Reason: strings.Repeat("é", 2001)}), "reason"},
		"reason with NUL":  {TriageReopen(ctx, b.pool, operator, id, TriageSettling{Reason: "abc\x00"}), "reason"},
		"reason not UTF-8": {TriageReopen(ctx, b.pool, operator, id, TriageSettling{Reason: "abc\xff"}), "reason"},
		"no time":          {TriageSnooze(ctx, b.pool, operator, id, good, testNow), "until"},
		"time over":        {TriageSnooze(ctx, b.pool, operator, id, with(good, 0), testNow), "until"},
		"time too far":     {TriageSnooze(ctx, b.pool, operator, id, with(good, TriageSnoozeMax+time.Second), testNow), "until"},
		"empty note":       {TriageNote(ctx, b.pool, operator, id, " \n "), "text"},
		"kind of fix":      {TriageDeclareFix(ctx, b.pool, operator, id, TriageFix{Kind: "edit", Reference: "x", Reason: "abc"}), "kind"},
		"no reference":     {TriageDeclareFix(ctx, b.pool, operator, id, TriageFix{Kind: "ticket", Reason: "abc"}), "reference"},
		"unknown assignee": {TriageAssign(ctx, b.pool, operator, id, "nobody@example.test"), "assignee"},
	} {
		var p *problem.Error
		if !errors.As(test.err, &p) || p.Code != problem.Invalid || p.Field != test.field {
			t.Errorf("%s: %v, want Invalid at %s", name, test.err, test.field)
		}
	}
	stale := TriageSettling{Reason: "a reason", Generation: 2}
	if err := TriageResolve(ctx, b.pool, operator, id, stale); !problem.Is(err, problem.Conflict) {
		t.Errorf("another generation: %v, want Conflict", err)
	}
	if err := TriageNote(ctx, b.pool, operator, id, "Authorization: Bearer "+secret); err != nil {
		t.Fatal(err)
	}
	if err := TriageResolve(ctx, b.pool, operator, id, TriageSettling{Reason: "password=" + secret, Reference: "https://x.test/?token=" + secret}); err != nil {
		t.Fatal(err)
	}
	kept := get[string](t, b, `
		SELECT (SELECT json_agg(d) FROM redrive.dead_jobs d)::text || (SELECT json_agg(n) FROM redrive.notes n)::text ||
		       (SELECT json_agg(a) FROM redrive.audit_entries a)::text`)
	if strings.Contains(kept, secret) || !strings.Contains(kept, "https://x.test/") {
		t.Errorf("what was typed is kept unredacted, or not at all: %s", kept)
	}
}

func TestTriageWake(t *testing.T) {
	t.Parallel()
	b := setup(t)
	early, late := b.one(t, job("x", 1, 1)).ID, b.one(t, job("y", 1, 1)).ID
	for id, until := range map[int64]time.Duration{early: time.Hour, late: 2 * time.Hour} {
		s := TriageSettling{Reason: "waits for the provider", Until: testNow.Add(until)}
		if err := TriageSnooze(t.Context(), b.pool, operator, id, s, testNow); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := TriageWake(t.Context(), b.pool, testNow.Add(time.Hour)); n != 1 || err != nil {
		t.Fatalf("woke %d, %v, want 1", n, err)
	}
	if got := get[string](t, b, `SELECT string_agg(status, ' ' ORDER BY id) FROM redrive.dead_jobs`); got != "open snoozed" {
		t.Errorf("after an hour: %s", got)
	}
}
