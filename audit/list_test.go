package audit_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/redrive-dlq/redrive/audit"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/migrations/testdb"
)

var start = time.Date(2026, 3, 1, 8, 0, 0, 123000, time.UTC)

func actor(name string) audit.Actor {
	return audit.Actor{Kind: audit.Person, ID: "1", Name: name, Roles: []string{"oncall"}, IP: "192.0.2.1", RequestID: "r"}
}

func add(t *testing.T, pool *pgxpool.Pool, a audit.Actor, e audit.Entry) (id int64) {
	t.Helper()
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) (err error) {
		id, err = audit.Append(t.Context(), tx, a, e)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func ids(p audit.Page) []int64 {
	var out []int64
	for _, r := range p.Records {
		out = append(out, r.ID)
	}
	return out
}

func TestListFiltersAndScopes(t *testing.T) {
	t.Parallel()
	pool := testdb.New(t)
	entry := func(action, kind, id, env, typ string, job, batch int64, minute int) audit.Entry {
		return audit.Entry{Action: action, Object: audit.Object{Kind: kind, ID: id}, Environment: env, JobType: typ,
			DeadJob: job, Batch: batch, Reason: "because", At: start.Add(time.Duration(minute) * time.Minute)}
	}
	resolve := add(t, pool, actor("ann@example.test"), entry("job.resolve", "job", "17", "production", "charge_card", 17, 0, 1))
	order := add(t, pool, actor("bob@example.test"), entry("replay.order", "replay", "4", "production", "send_invoice", 18, 3, 2))
	note := add(t, pool, actor("ann@example.test"), entry("job.note", "job", "19", "staging", "charge_card", 19, 0, 3))
	login := add(t, pool, actor("bob@example.test"), audit.Entry{Action: "session.sign_in", Object: audit.Object{Kind: "session", ID: "s"}, At: start})

	all := audit.Scope{Everywhere: true}
	for _, test := range []struct {
		name  string
		scope audit.Scope
		query audit.Query
		want  []int64
	}{
		{"everything, newest first", all, audit.Query{}, []int64{note, order, resolve, login}},
		{"actor", all, audit.Query{Actor: "ann@example.test"}, []int64{note, resolve}},
		{"part of an actor", all, audit.Query{Actor: "BOB"}, []int64{order, login}},
		{"action", all, audit.Query{Action: "job.note"}, []int64{note}},
		{"family of actions", all, audit.Query{Action: "job."}, []int64{note, resolve}},
		{"object", all, audit.Query{ObjectKind: "job", ObjectID: "17"}, []int64{resolve}},
		{"environment", all, audit.Query{Environment: "staging"}, []int64{note}},
		{"job", all, audit.Query{DeadJob: 18}, []int64{order}},
		{"batch", all, audit.Query{Batch: 3}, []int64{order}},
		{"from is inclusive, to isn't", all, audit.Query{From: start.Add(time.Minute), To: start.Add(3 * time.Minute)}, []int64{order, resolve}},
		{"no scope", audit.Scope{}, audit.Query{}, nil},
		{"own", audit.Scope{Actor: "bob@example.test"}, audit.Query{}, []int64{order, login}},
		{"one environment", audit.Scope{Limits: []audit.Limit{{Environment: "production"}}}, audit.Query{}, []int64{order, resolve}},
		{"environment and type, or own", audit.Scope{Limits: []audit.Limit{{"production", "charge_card"}, {"staging", "none"}}, Actor: "bob@example.test"},
			audit.Query{}, []int64{order, resolve, login}},
	} {
		page, err := audit.List(t.Context(), pool, test.scope, test.query)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if diff := cmp.Diff(test.want, ids(page)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
	own, err := audit.OfJob(t.Context(), pool, 17, 10)
	if err != nil || len(own) != 1 || own[0].ID != resolve {
		t.Fatalf("the entries of job 17: %+v, %v", own, err)
	}
	want := audit.Record{ID: resolve, At: start.Add(time.Minute), Actor: actor("ann@example.test"), Action: "job.resolve",
		Object: audit.Object{Kind: "job", ID: "17"}, Environment: "production", JobType: "charge_card", DeadJob: 17, Reason: "because"}
	if diff := cmp.Diff(want, own[0]); diff != "" {
		t.Errorf("as written (-want +got):\n%s", diff)
	}
}

func TestListPages(t *testing.T) {
	t.Parallel()
	pool := testdb.New(t)
	var want []int64
	for i := range 25 { // several entries share a moment
		id := add(t, pool, actor("ann@example.test"), audit.Entry{Action: "job.note", Object: audit.Object{Kind: "job", ID: fmt.Sprint(i)}, At: start.Add(time.Duration(i/4) * time.Second)})
		want = append([]int64{id}, want...)
	}
	q := audit.Query{Limit: 7, Action: "job."}
	var got []int64
	var pages []audit.Page
	for {
		page, err := audit.List(t.Context(), pool, audit.Scope{Everywhere: true}, q)
		if err != nil {
			t.Fatal(err)
		}
		got, pages = append(got, ids(page)...), append(pages, page)
		if q.Cursor = page.Next; q.Cursor == "" {
			break
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("through all pages (-want +got):\n%s", diff)
	}
	q.Cursor = pages[2].Prev
	back, err := audit.List(t.Context(), pool, audit.Scope{Everywhere: true}, q)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(pages[1], back); diff != "" {
		t.Errorf("back to the second page (-want +got):\n%s", diff)
	}
	q.Action = "job.note"
	if _, err := audit.List(t.Context(), pool, audit.Scope{Everywhere: true}, q); !problem.Is(err, problem.Invalid) {
		t.Errorf("the cursor of another query: %v, want Invalid", err)
	}
	if _, err := audit.List(t.Context(), pool, audit.Scope{Everywhere: true}, audit.Query{Limit: 501}); !problem.Is(err, problem.Invalid) {
		t.Errorf("limit 501: %v, want Invalid", err)
	}
}

func TestSentence(t *testing.T) {
	t.Parallel()
	person, system := actor("ann@example.test"), audit.SystemActor()
	for want, r := range map[string]audit.Record{
		"ann@example.test resolved job 17 (charge_card) in production. Reason: paid by hand": {Actor: person, Action: "job.resolve",
			Object: audit.Object{Kind: "job", ID: "17"}, JobType: "charge_card", Environment: "production", Reason: "paid by hand"},
		"ann@example.test edited /to_email, /cc in the payload of job 17.": {Actor: person, Action: "job.edit",
			Object: audit.Object{Kind: "job", ID: "17"}, Details: map[string]any{"pointers": []any{"/to_email", "/cc"}}},
		"ann@example.test declared a fix (ticket OPS-12) for job 17.": {Actor: person, Action: "job.declare_fix",
			Object: audit.Object{Kind: "job", ID: "17"}, Details: map[string]any{"kind": "ticket", "reference": "OPS-12"}},
		"ann@example.test assigned job 17 to bob@example.test.": {Actor: person, Action: "job.assign",
			Object: audit.Object{Kind: "job", ID: "17"}, Details: map[string]any{"to": "bob@example.test"}},
		"ann@example.test took the owner off job 17.": {Actor: person, Action: "job.assign", Object: audit.Object{Kind: "job", ID: "17"}},
		"ann@example.test signed in.":                 {Actor: person, Action: "session.sign_in", Object: audit.Object{Kind: "session", ID: "x"}},
		"Redrive skipped replay 4 of job 18 (send_invoice) in staging. Reason: the key is done": {Actor: system, Action: "replay.skipped",
			Object: audit.Object{Kind: "replay", ID: "4"}, DeadJob: 18, JobType: "send_invoice", Environment: "staging", Reason: "the key is done"},
		"ann@example.test gave a role to bob@example.test.": {Actor: person, Action: "grant.add",
			Object: audit.Object{Kind: "user", ID: "2"}, Details: map[string]any{"email": "bob@example.test"}},
		"ann@example.test confirmed batch 41: 28 send_invoice in production. Reason: fixed": {Actor: person, Action: "batch.confirm", Environment: "production",
			Object: audit.Object{Kind: "batch", ID: "41"}, JobType: "send_invoice", Reason: "fixed", Details: map[string]any{"eligible": json.Number("28")}},
		"ann@example.test asked a second person to approve batch 41: 28 charge_card in production.": {Actor: person, Action: "batch.confirm", Environment: "production",
			Object: audit.Object{Kind: "batch", ID: "41"}, JobType: "charge_card", Details: map[string]any{"eligible": json.Number("28"), "needs_approval": "it may move money"}},
		"ann@example.test confirmed, to wait instead of a second person, batch 41: 28 send_invoice in production.": {Actor: person, Action: "batch.confirm", Environment: "production",
			Object: audit.Object{Kind: "batch", ID: "41"}, JobType: "send_invoice", Details: map[string]any{"eligible": json.Number("28"), "no_second_person": "more than 20"}},
		"ann@example.test lowered the rate from 60 to 30 a minute of batch 41 (send_invoice) in staging.": {Actor: person, Action: "batch.rate", Environment: "staging",
			Object: audit.Object{Kind: "batch", ID: "41"}, JobType: "send_invoice", Details: map[string]any{"from": json.Number("60"), "to": json.Number("30")}},
		"ann@example.test held all replays of charge_card in production.": {Actor: person, Action: "hold.place", Environment: "production",
			Object: audit.Object{Kind: "hold", ID: "3"}, JobType: "charge_card"},
		"ann@example.test lifted the hold of all replays to river:app/mail in production. Reason: it is back": {Actor: person, Action: "hold.lift", Environment: "production",
			Object: audit.Object{Kind: "hold", ID: "4"}, Reason: "it is back", Details: map[string]any{"destination": "river:app/mail"}},
		"Redrive stopped batch 41 (send_invoice) in staging. Reason: 6 of 20 failed (limit 20 %)": {Actor: system, Action: "batch.stop", Environment: "staging",
			Object: audit.Object{Kind: "batch", ID: "41"}, JobType: "send_invoice", Reason: "6 of 20 failed (limit 20 %)"},
		"Redrive stopped releases to destination river:app/mail in staging. Reason: 5 of the last 20 replays failed": {Actor: system, Action: "breaker.open",
			Environment: "staging", Object: audit.Object{Kind: "destination", ID: "river:app/mail"}, Reason: "5 of the last 20 replays failed"},
		"ann@example.test held all replays in staging.": {Actor: person, Action: "hold.place", Environment: "staging", Object: audit.Object{Kind: "hold", ID: "5"}},
		`ann@example.test did "door.open" on door.`:     {Actor: person, Action: "door.open", Object: audit.Object{Kind: "door"}},
	} {
		if got := audit.Sentence(r); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	codes, phrases := audit.Actions()
	for i, code := range codes {
		if phrases[i] == "" || !strings.Contains(code, ".") {
			t.Errorf("action %q reads %q", code, phrases[i])
		}
	}
}

func TestParseObject(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]string{
		"job 17": {"job", "17"}, "job:17": {"job", "17"}, "#17": {"", "17"}, "17": {"", "17"}, "welcome:r_1": {"", "welcome:r_1"}, "key welcome:r_1": {"key", "welcome:r_1"},
	} {
		if kind, id := audit.ParseObject(text); kind != want[0] || id != want[1] {
			t.Errorf("ParseObject(%q) = %q, %q, want %q", text, kind, id, want)
		}
	}
}
