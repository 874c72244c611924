package web

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/audit"
	"github.com/redrive-dlq/redrive/dlq/ledger"
	"github.com/redrive-dlq/redrive/rbac"
)

// order makes the batch of one of a job's replay, as a person's order leaves it.
func (b *testBundle) order(t *testing.T, job, outcome, detail string) (batch string) {
	t.Helper()
	err := b.pool.QueryRow(t.Context(), `
		WITH b AS (
			INSERT INTO redrive.batches (environment, job_type, kind, state, cutoff, reason, plan_hash, planned, eligible, created_by, created_at, finished_at)
			SELECT environment, job_type, 'single', 'done', now(), 'the address was <b>corrected</b>', 'abc123', 1, 1, 'oncall@demo.test', $2, $2
			FROM redrive.dead_jobs
			WHERE id = $1
			RETURNING id),
		r AS (
			INSERT INTO redrive.replays (batch_id, dead_job_id, generation, payload_version, environment, source, job_id, job_type, key_scope,
			                             target_kind, destination, state, released_at, outcome, outcome_detail, outcome_at)
			SELECT b.id, d.id, d.generation, 1, d.environment, d.source, d.job_id, d.job_type, d.key_scope, 'http', 'http://127.0.0.1:9010/jobs', 'ended', $2, $3, $4, $2
			FROM redrive.dead_jobs d, b
			WHERE d.id = $1
			RETURNING environment, job_type, destination),
		u AS (
			INSERT INTO redrive.release_buckets (environment, job_type)
			SELECT environment, job_type
			FROM r
			ON CONFLICT DO NOTHING),
		n AS (
			INSERT INTO redrive.destinations (environment, name)
			SELECT environment, destination
			FROM r
			ON CONFLICT DO NOTHING)
		SELECT id::text
		FROM b`, job, b.now(), outcome, detail).Scan(&batch)
	if err != nil {
		t.Fatal(err)
	}
	return batch
}

func TestBatchPagesSayHowAReplayEnded(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	ids := b.capture(t, welcome(t, nil), welcome(t, map[string]any{"job_id": "chg_1", "idempotency_key": "k", "job_type": "charge_card"}))
	worked := b.order(t, ids[0], "succeeded", "")
	failed := b.order(t, ids[1], "failed", "503 from the provider, password="+canary)
	cl := b.as(t, rbac.Viewer)
	doc := cl.open(t, "/batches", http.StatusOK)
	if rows := doc.Find("tr[data-row]"); rows.Length() != 2 || !strings.Contains(rows.Text(), "Succeeded") || !strings.Contains(rows.Text(), "Failed") {
		t.Errorf("the list says %q", text(rows))
	}
	if doc.Find("tr[data-row] b").Length() != 0 {
		t.Error("a reason became markup")
	}
	doc = cl.open(t, "/batches/"+worked, http.StatusOK)
	if got := text(doc.Find("h1")); got != "Replay of one send_welcome_email succeeded, production" {
		t.Errorf("titled %q", got)
	}
	for _, want := range []string{"sends one e-mail to the customer", "oncall@demo.test", "the address was <b>corrected</b>", "1 of 1 replay has ended", "abc123"} {
		if !strings.Contains(text(doc.Find("main")), want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	doc = cl.open(t, "/batches/"+failed, http.StatusOK)
	if got := text(doc.Find("h1")); got != "Replay of one charge_card failed: the job is open again, production" {
		t.Errorf("titled %q", got)
	}
	if html, _ := doc.Html(); strings.Contains(html, canary) || !strings.Contains(html, "503 from the provider") {
		t.Error("the outcome isn't shown redacted")
	}
	for _, path := range []string{"/batches/99999", "/batches/x", "/batches/-1", "/batches/99999/events"} {
		cl.open(t, path, http.StatusNotFound)
	}
	limited := b.grant(t, rbac.Grant{Role: rbac.Viewer, JobType: "charge_card"})
	limited.open(t, "/batches/"+worked, http.StatusNotFound)
	if n := limited.open(t, "/batches", http.StatusOK).Find("tr[data-row]").Length(); n != 1 {
		t.Errorf("a person limited to a type sees %d batches", n)
	}
}

// Batches are filtered by state; a request stands on top for those who may
// approve it, never for who made it.
func TestBatchesAreFilteredAndAskForApproval(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	for state, n := range map[string]int{"running": 2, "scheduled": 1, "paused": 1, "done": 3, "cancelled": 1} {
		for range n {
			b.ran(t, state, map[string]int{"succeeded": 1})
		}
	}
	asked := b.ran(t, "running", map[string]int{"plan.eligible": 9})
	exec(t, b, `UPDATE redrive.batches SET state = 'waiting' WHERE id = $1::bigint`, asked)
	cl := b.as(t, rbac.Approver)
	for query, want := range map[string]int{"": 9, "?state=running": 3, "?state=paused": 1, "?state=done": 3, "?state=cancelled": 1, "?state=waiting": 1, "?state=planned": 0, "?state=done&env=staging": 0} {
		doc := cl.open(t, "/batches"+query, http.StatusOK)
		if n := doc.Find("section[aria-label=Batches] tr[data-row]").Length(); n != want {
			t.Errorf("%q lists %d batches, want %d", query, n, want)
		}
		if n := doc.Find("nav[aria-label=States] [aria-current]").Length(); n != 1 {
			t.Errorf("%q marks %d states", query, n)
		}
	}
	cl.open(t, "/batches?state=nope", http.StatusUnprocessableEntity)
	if got := cl.open(t, "/batches", http.StatusOK).Find("#asked tr[data-row] a[href='/batches/" + asked + "']"); got.Length() != 1 {
		t.Error("an approver isn't asked")
	}
	if b.as(t, rbac.OnCall).open(t, "/batches", http.StatusOK).Find("#asked").Length() != 0 {
		t.Error("somebody who may not approve is asked")
	}
	exec(t, b, `UPDATE redrive.batches SET confirmed_by_id = (SELECT id FROM redrive.users WHERE email = $1) WHERE state = 'waiting'`, rbac.DemoEmail(rbac.Approver))
	if cl.open(t, "/batches", http.StatusOK).Find("#asked").Length() != 0 {
		t.Error("a person is asked to approve their own request")
	}
}

func TestGroupPagesCountTheirJobs(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	b.capture(t, welcome(t, nil), welcome(t, map[string]any{"job_id": "wel_2", "idempotency_key": "k2"}),
		welcome(t, map[string]any{"job_id": "wel_3", "idempotency_key": "k3", "environment": "staging", "source": "app-staging"}))
	cl := b.as(t, rbac.Viewer)
	doc := cl.open(t, "/groups", http.StatusOK)
	link, _ := doc.Find("tr[data-row] a[data-open]").Attr("href")
	if rows := doc.Find("tr[data-row]"); rows.Length() != 1 || !strings.Contains(text(rows), "Invalid input") {
		t.Fatalf("groups: %q", text(rows))
	}
	doc = cl.open(t, link, http.StatusOK)
	if got := text(doc.Find("h1")); !strings.HasPrefix(got, "3 open jobs of send_welcome_email: 400 invalid recipient") {
		t.Errorf("titled %q", got)
	}
	jobs, _ := doc.Find(`#about a:contains("All 3 jobs")`).Attr("href")
	if n := cl.open(t, jobs, http.StatusOK).Find("tr[data-row]").Length(); n != 3 {
		t.Errorf("%s lists %d jobs", jobs, n)
	}
	limited := b.grant(t, rbac.Grant{Role: rbac.Viewer, Environment: "staging"})
	if got := text(limited.open(t, link, http.StatusOK).Find("h1")); !strings.HasPrefix(got, "1 open job of") {
		t.Errorf("someone of staging is told %q", got)
	}
	none := b.grant(t, rbac.Grant{Role: rbac.Viewer, Environment: "elsewhere"})
	none.open(t, link, http.StatusNotFound)
	for _, path := range []string{"nothing", "%00", "%ff", "abcd"} {
		cl.open(t, "/groups/"+path, http.StatusNotFound)
	}
	cl.open(t, "/groups?cursor=zzz", http.StatusUnprocessableEntity)
}

func TestTypesPageShowsPoliciesAndWhatIsUndeclared(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	b.capture(t, welcome(t, nil), welcome(t, map[string]any{"job_id": "u", "job_type": "<i>unknown</i>"}),
		welcome(t, map[string]any{"job_id": "s", "environment": "staging", "source": "app-staging", "idempotency_key": "k"}))
	doc := b.as(t, rbac.Viewer).open(t, "/types", http.StatusOK)
	if got := text(doc.Find("h1")); got != "2 job types are declared, 1 arrived undeclared" {
		t.Errorf("titled %q", got)
	}
	for _, want := range []string{"sends one e-mail to the customer", "by key, scope welcome", "http://127.0.0.1:9010/jobs; outcome within 15 min",
		"no target: 1 dead job there can't be replayed", "Moves money", "<i>unknown</i>", "targets) in production."} {
		if !strings.Contains(text(doc.Find("main")), want) {
			t.Errorf("lacks %q", want)
		}
	}
	one := b.as(t, rbac.Viewer).open(t, "/types/send_welcome_email", http.StatusOK)
	if !strings.Contains(text(one.Find("main")), "/to_email") {
		t.Errorf("the type's own page doesn't say what may be edited: %s", text(one.Find("main")))
	}
}

func TestSourcesPageShowsHealthAndQuarantine(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	b.capture(t, welcome(t, nil), welcome(t, map[string]any{"job_id": "s", "environment": "staging", "source": "app-staging", "idempotency_key": "k"}))
	exec(t, b, `
		INSERT INTO redrive.sources (environment, name, kind, last_seen_at, last_error)
		VALUES ('production', 'main-river', 'river', $1::timestamptz - interval '10 minutes', ''),
		       ('production', 'other-river', 'river', $1, 'connect: password=`+canary+` refused')`, b.now())
	exec(t, b, `
		INSERT INTO redrive.quarantine (door, environment, source, error, raw, received_at)
		VALUES ('sql', '', '', 'not JSON at byte 7 <script>alert(1)</script>', 'xx', $1), ('http', 'production', 'app-production', 'no job_type', 'yy', $1)`, b.now())
	doc := b.as(t, rbac.Viewer).open(t, "/sources", http.StatusOK)
	main := text(doc.Find("main"))
	for _, want := range []string{"Dead jobs come from 4 sources: 2 unhealthy", "not read for 10 min", "none, while Redrive runs within River's retention",
		"2 captures could not be read", "not JSON at byte 7 <script>alert(1)</script>", "connect: password="} {
		if !strings.Contains(main, want) {
			t.Errorf("lacks %q in %s", want, main)
		}
	}
	if html, _ := doc.Html(); strings.Contains(html, canary) {
		t.Error("a secret of an error is shown")
	}
	limited := b.grant(t, rbac.Grant{Role: rbac.Viewer, Environment: "staging"}).open(t, "/sources", http.StatusOK)
	if got := limited.Find("tr[data-row]"); got.Length() != 1 || !strings.Contains(text(got), "app-staging") || limited.Find("#quarantine").Length() != 0 {
		t.Errorf("someone of staging sees %q", text(got))
	}
}

func TestTargetsPageCountsReplays(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	ids := b.capture(t, welcome(t, nil), welcome(t, map[string]any{"job_id": "chg_1", "idempotency_key": "k", "job_type": "charge_card"}))
	b.order(t, ids[0], "succeeded", "")
	b.order(t, ids[1], "unconfirmed", "")
	doc := b.as(t, rbac.Viewer).open(t, "/targets", http.StatusOK)
	main := text(doc.Find("main"))
	for _, want := range []string{"Replays go to 1 destination", "send_welcome_email", "charge_card", "1 replay has no known outcome in 24 h", "Degraded"} {
		if !strings.Contains(main, want) {
			t.Errorf("lacks %q in %s", want, main)
		}
	}
	main = text(b.grant(t, rbac.Grant{Role: rbac.Viewer, JobType: "send_welcome_email"}).open(t, "/targets", http.StatusOK).Find("main"))
	if strings.Contains(main, "charge_card") || !strings.Contains(main, "Healthy") {
		t.Errorf("a person limited to a type sees %s", main)
	}
}

func TestAuditPageFilters(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	ids := b.capture(t, welcome(t, nil))
	err := pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) error {
		_, err := audit.Append(t.Context(), tx, audit.Actor{Kind: audit.Person, ID: "1", Name: "operator@demo.test", IP: "192.0.2.7"}, audit.Entry{
			Action: "job.edit", Object: audit.Object{Kind: "job", ID: ids[0]}, Environment: "production", JobType: "send_welcome_email", DeadJob: 1,
			Reason: "<script>alert(1)</script> password=" + canary, Details: map[string]any{"pointers": []string{"/to_email"}, "sha256_before": strings.Repeat("ab", 32), "version": 2}, At: b.now()})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	b.as(t, rbac.Viewer).open(t, "/audit", http.StatusForbidden)
	cl := b.as(t, rbac.Auditor)
	for query, want := range map[string]bool{
		"": true, "actor=operator": true, "actor=viewer%40demo.test": false, "action=job.edit": true, "action=job.discard": false, "object=wel_8821": true,
		"object=" + url.QueryEscape("send_welcome_email:welcome:snd_5f2a"): true, "object=job+" + ids[0]: true, "object=nothing": false,
		"env=production": true, "env=staging": false, "from=2026-05-04&to=2026-05-04": true, "to=2026-05-03": false,
	} {
		doc := cl.open(t, "/audit?"+query, http.StatusOK)
		if got := strings.Contains(text(doc.Find("ol.entries")), "operator@demo.test edited /to_email in the payload of job "+ids[0]+" (send_welcome_email) in"); got != want {
			t.Errorf("%q lists the edit: %v, want %v", query, got, want)
		}
	}
	doc := cl.open(t, "/audit?action=job.edit", http.StatusOK)
	for _, want := range []string{"<script>alert(1)</script>", "192.0.2.7", "sha256_before: " + strings.Repeat("ab", 32), "version: 2"} {
		if !strings.Contains(text(doc.Find("ol.entries")), want) {
			t.Errorf("the entry lacks %q: %s", want, text(doc.Find("ol.entries")))
		}
	}
	if html, _ := doc.Html(); strings.Contains(html, canary) {
		t.Error("a secret of a reason is shown")
	}
	for _, query := range []string{"from=yesterday", "actor=%00", "cursor=zzz"} {
		if got := text(cl.open(t, "/audit?"+query, http.StatusUnprocessableEntity).Find("main [role=alert]")); got == "" {
			t.Errorf("%q isn't explained", query)
		}
	}
}

// A key stands for jobs of several environments, and for the ledger's decision
// about them: an auditor who has only the key finds all of it.
func TestAuditPageFindsAllOfAKey(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	key := "send_welcome_email:welcome:snd_5f2a"
	ids := b.capture(t, welcome(t, nil), welcome(t, map[string]any{"environment": "staging"}))
	err := pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) error {
		for i, environment := range []string{"production", "staging"} {
			id, err := strconv.ParseInt(ids[i], 10, 64)
			if err != nil {
				return err
			}
			if _, err := audit.Append(t.Context(), tx, audit.Actor{Kind: audit.Person, ID: "1", Name: "oncall@demo.test"}, audit.Entry{
				Action: "replay.order", Object: audit.Object{Kind: "replay", ID: ids[i]}, Environment: environment, JobType: "send_welcome_email", DeadJob: id,
				Reason: "ordered in " + environment, At: b.now()}); err != nil {
				return err
			}
		}
		return ledger.Finish(t.Context(), tx, ledger.Key{Environment: "production", Scope: "send_welcome_email", Key: key}, nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	cl := b.as(t, rbac.Auditor)
	for query, want := range map[string][3]bool{ // ordered in production, in staging, the key's own entry
		"object=" + url.QueryEscape(key):                {true, true, true},
		"env=staging&object=" + url.QueryEscape(key):    {false, true, false},
		"env=production&object=" + url.QueryEscape(key): {true, false, true},
		"object=job+" + ids[1]:                          {false, true, false},
	} {
		got := text(cl.open(t, "/audit?"+query, http.StatusOK).Find("ol.entries"))
		for i, words := range []string{"ordered in production", "ordered in staging", "the effect of this key is done"} {
			if strings.Contains(got, words) != want[i] {
				t.Errorf("%s: %q is listed: %v, want %v", query, words, !want[i], want[i])
			}
		}
	}
}
