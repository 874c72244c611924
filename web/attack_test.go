package web

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/rbac"
)

// prey is a console with something behind every route that names one: a job and
// its group, a hold, and batches in all their states, all in production.
type prey struct {
	*testBundle
	job, group, hold string
	batches          map[string]string // by state
}

func preySetup(t *testing.T) prey {
	t.Helper()
	b := planSetup(t)
	p := prey{testBundle: b, batches: map[string]string{}}
	p.job = b.dead(t, "send_welcome_email", "wel_prey", "")
	p.group = b.groupOf(t, p.job)
	for _, state := range []string{"planning", "planned", "waiting", "scheduled", "running", "paused", "cancelling", "done", "cancelled"} {
		p.batches[state] = b.ran(t, state, map[string]int{"plan.eligible": 2, "failed": 1})
	}
	exec(t, b, `UPDATE redrive.batches SET confirmed_by = '', confirmed_by_id = 0 WHERE state IN ('planning', 'planned')`)
	p.hold = query[string](t, b, `INSERT INTO redrive.holds (environment, placed_by, placed_at) VALUES ('production', 'x', $1) RETURNING id::text`, b.now())
	b.server.orders = newLimiter(1_000_000, time.Second, "ordered")
	b.server.exports = newLimiter(1_000_000, time.Second, "exported")
	return p
}

// paths are the addresses of a route for all that stands behind it; none for a
// route of something else.
func (p prey) paths(r Route) (all []string) {
	fill := func(id string) string { return strings.ReplaceAll(r.Path, ":id", id) }
	switch {
	case strings.HasPrefix(r.Path, "/batches/:id"):
		for _, id := range p.batches {
			all = append(all, fill(id))
		}
	case strings.HasPrefix(r.Path, "/jobs/:id"):
		all = append(all, fill(p.job))
	case strings.HasPrefix(r.Path, "/groups/:id"):
		all = append(all, fill(p.group))
	case strings.HasPrefix(r.Path, "/holds/:id"):
		all = append(all, fill(p.hold))
	case !strings.Contains(r.Path, ":") && r.Audience == Browser:
		all = append(all, r.Path)
	}
	return all
}

// everyRole signs in a new person who holds all roles in one environment.
func (b *testBundle) everyRole(t *testing.T, environment string) *client {
	t.Helper()
	cl := b.grant(t, rbac.Grant{Role: rbac.Viewer, Environment: environment})
	exec(t, b, `
		INSERT INTO redrive.grants (user_id, role, environment, job_type)
		SELECT id, unnest($2::text[]), $3, ''
		FROM redrive.users
		WHERE email = $1`, "viewer-"+environment+"@limited.test", []string{"operator", "oncall", "approver", "auditor"}, environment)
	return cl
}

// TestNothingOfAnotherEnvironmentIsThere: whoever may do everything in one
// environment finds nothing of another, whichever route they try.
func TestNothingOfAnotherEnvironmentIsThere(t *testing.T) {
	t.Parallel()
	p := preySetup(t)
	stranger, own := p.everyRole(t, "staging"), p.everyRole(t, "production")
	tried := 0
	for _, r := range p.server.Routes() {
		if !strings.Contains(r.Path, ":id") {
			continue
		}
		for _, path := range p.paths(r) {
			tried++
			if w := stranger.do(r.Method, path, formType(r), bodyOf(r)); w.Code != http.StatusNotFound {
				t.Errorf("%s %s answers %d to somebody of another environment", r.Method, path, w.Code)
			}
			if r.Stream || r.writes() {
				continue
			}
			if w := own.get(path); w.Code == http.StatusNotFound {
				t.Errorf("%s isn't there for those it belongs to: the test proves nothing", path)
			}
		}
	}
	if tried < 150 {
		t.Errorf("only %d addresses were tried", tried)
	}
	if n := query[int](t, p.testBundle, `SELECT count(*)::int FROM redrive.fixes`); n != 0 {
		t.Errorf("%d fixes were declared from elsewhere", n)
	}
}

// bodyOf is a form that is right for most routes.
func bodyOf(r Route) string {
	if !r.writes() {
		return ""
	}
	return "reason=because&environment=staging&kind=ticket&ref=OPS-1"
}

// hostile are values that no field of a form and no parameter expects.
var hostile = append([]string{"", " ", "0", "-1", "1.5", "NaN", "1e9", "9223372036854775807", "9223372036854775808", "\x00", "a\x00b", "\xff\xfe", "\u202e", "٣",
	"0001-01-01T00:00", "999999-01-01T00:00", strings.Repeat("x", 5000)}, corpus...)

// inForm are the fields that any form of the console has.
var inForm = []string{"q", "ids", "reason", "plan_hash", "review_hash", "nonce", "phrase", "when", "at", "rate_per_minute", "canary", "accept_repeat", "per_minute",
	"environment", "kind", "ref", "job_type", "destination", "next", "version", "reference", "text", "assignee", "until", "ended", "effect_id", "payload", "name", "role", "minutes"}

// signsOut are routes after which a session isn't what it was.
func signsOut(r Route) bool {
	return r.Path == "/login" || r.Path == "/logout" || strings.HasPrefix(r.Path, "/account") && !strings.HasPrefix(r.Path, "/account/tokens")
}

// TestNoFormIsOurFault: whatever a form holds, nothing fails on our side and
// nothing of it becomes markup.
func TestNoFormIsOurFault(t *testing.T) {
	t.Parallel()
	p := preySetup(t)
	people := []*client{p.as(t, rbac.OnCall), p.as(t, rbac.Approver)}
	for _, r := range p.server.Routes() {
		if !r.writes() || r.Audience != Browser || signsOut(r) || strings.HasPrefix(r.Path, "/odd") {
			continue
		}
		for i, path := range p.paths(r) {
			for j, value := range hostile {
				if i > 0 && (i+j)%6 != 0 {
					continue // one of the batches meets all values, the others some
				}
				form := url.Values{}
				for k, name := range inForm {
					form[name] = []string{value, hostile[(j+k)%len(hostile)]}
				}
				if j%2 == 1 { // past the reason, into what stands behind
					form.Set("reason", "because")
				}
				w := people[j%2].do(r.Method, path, formType(r), form.Encode())
				checkAnswer(t, p.testBundle, fmt.Sprintf("%s %s with %.40q", r.Method, path, value), w.Code, w.Body.String())
			}
		}
	}
}

// TestNoAddressIsOurFault does the same to parameters of addresses.
func TestNoAddressIsOurFault(t *testing.T) {
	t.Parallel()
	p := preySetup(t)
	cl := p.as(t, rbac.OnCall)
	names := []string{"q", "ids", "select", "env", "state", "outcome", "verdict", "cursor", "next", "type", "destination"}
	for _, r := range p.server.Routes() {
		if r.writes() || r.Stream || r.Audience != Browser || signsOut(r) || strings.HasPrefix(r.Path, "/odd") || strings.HasPrefix(r.Path, "/admin") {
			continue
		}
		for i, path := range p.paths(r) {
			for j, value := range hostile {
				some := names[(i+j)%len(names):][:1]
				switch {
				case i == 0 && (strings.ContainsRune(value, 0) || !utf8.ValidString(value)):
					some = names
				case i > 0 && (i+j)%6 != 0:
					continue // one of the batches meets all values, the others some
				}
				for _, name := range some {
					w := cl.get(path + "?" + url.Values{name: {value}}.Encode())
					checkAnswer(t, p.testBundle, fmt.Sprintf("%s?%s=%.40q", path, name, value), w.Code, w.Body.String())
				}
			}
		}
	}
	for _, r := range p.server.Routes() {
		for _, id := range []string{"%00", "%FF", "-1", "0", "9223372036854775808", "%D9%A3", "1%2F2", strings.Repeat("9", 3000), url.PathEscape(corpus[1])} {
			if !strings.Contains(r.Path, ":id") || r.Audience != Browser || signsOut(r) || strings.HasPrefix(r.Path, "/admin") {
				continue
			}
			path := strings.ReplaceAll(r.Path, ":id", id)
			w := cl.do(r.Method, path, formType(r), bodyOf(r))
			checkAnswer(t, p.testBundle, r.Method+" "+path, w.Code, w.Body.String())
			if w.Code < 400 {
				t.Errorf("%s %.80s answers %d", r.Method, path, w.Code)
			}
		}
	}
}

func checkAnswer(t *testing.T, b *testBundle, what string, code int, body string) {
	t.Helper()
	if code >= 500 {
		t.Errorf("%s: %d\n%.1500s", what, code, tail(b.log.String()))
	}
	if strings.Contains(body, "<script>alert") || strings.Contains(body, "<img src=x") || strings.Contains(body, "<svg onload") || strings.Contains(body, `href="javascript:`) {
		t.Errorf("%s: markup", what)
	}
}

// TestFormsWithoutPagesDoNotFillTheSession: a script that posts and never looks
// is answered as the first time, and its person sees the last of the messages.
func TestFormsWithoutPagesDoNotFillTheSession(t *testing.T) {
	t.Parallel()
	p := preySetup(t)
	cl := p.as(t, rbac.OnCall)
	for i := range 120 {
		if w := cl.post("/batches/"+p.batches["planned"]+"/judge", "reason", "again"); w.Code != http.StatusSeeOther {
			t.Fatalf("form %d answers %d\n%s", i, w.Code, tail(p.log.String()))
		}
	}
	if n := strings.Count(text(cl.open(t, "/batches", http.StatusOK).Find("body")), "judged again"); n < 1 || n > maxFlashes {
		t.Errorf("%d messages wait", n)
	}
}

// TestGetsOfWhatIsThereChangeNothing: looking at batches, holds and jobs, also at
// the pages that ask before something is done, changes no row but the session's.
func TestGetsOfWhatIsThereChangeNothing(t *testing.T) {
	t.Parallel()
	p := preySetup(t)
	people := []*client{p.as(t, rbac.OnCall), p.as(t, rbac.Approver), p.as(t, rbac.Admin)}
	before := contents(t, p.testBundle)
	for _, r := range p.server.Routes() {
		if r.writes() || r.Stream {
			continue
		}
		for _, path := range p.paths(r) {
			for _, cl := range people {
				cl.get(path + "?_method=POST&reason=because&confirm=yes")
			}
		}
	}
	after := contents(t, p.testBundle)
	for table, was := range before {
		if after[table] != was {
			t.Errorf("%s changed", table)
		}
	}
	if !maps.Equal(before, after) {
		t.Error("something changed")
	}
}

// contents is a sum of each table's rows; sessions are touched by every request.
func contents(t *testing.T, b *testBundle) map[string]string {
	t.Helper()
	rows, err := b.pool.Query(t.Context(), `
		SELECT quote_ident(table_name)
		FROM information_schema.tables
		WHERE table_schema = 'redrive' AND table_type = 'BASE TABLE' AND table_name <> 'sessions'`)
	if err != nil {
		t.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]string{}
	for _, name := range names {
		sums[name] = query[string](t, b, `SELECT coalesce(md5(string_agg(x::text, '|' ORDER BY x::text)), '') FROM redrive.`+name+` x`)
	}
	return sums
}
