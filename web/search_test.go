package web

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/redrive-dlq/redrive/rbac"
)

func TestSearchLeadsToWhatAWordNames(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	ids := b.capture(t,
		welcome(t, map[string]any{"job_id": "wel_1", "idempotency_key": "send_welcome_email:welcome:snd_1", "entity": "customer:7"}),
		welcome(t, map[string]any{"job_id": "wel_2", "idempotency_key": "welcome-two", "entity": "customer:7"}),
		welcome(t, map[string]any{"job_id": "wel_3", "idempotency_key": "twice", "entity": "wel_2", "environment": "staging", "source": "app-staging"}),
		welcome(t, map[string]any{"job_id": "wel_4", "idempotency_key": "twice"}),
	)
	exec(t, b, `UPDATE redrive.dead_jobs SET effect_id = 'msg_77' WHERE job_id IN ('wel_1', 'wel_4')`)
	cl := b.as(t, rbac.Viewer)
	for query, want := range map[string]string{
		"q=wel_1": "/jobs/" + ids[0], "q=%20wel_1%20": "/jobs/" + ids[0],
		"q=send_welcome_email:welcome:snd_1": "/jobs/" + ids[0],
		"q=welcome-two":                      "/jobs/" + ids[1],
		"q=wel_2":                            "/jobs/" + ids[1], // a job id comes before an entity
		"q=customer:7":                       "/jobs?q=entity%3Acustomer%3A7&status=any",
		"q=twice":                            "/jobs?key=twice&status=any",
		"q=twice&env=staging":                "/jobs/" + ids[2],
		"q=msg_77":                           "/jobs?q=effect_id%3Amsg_77&status=any",
		"q=msg_77&env=production":            "/jobs?env=production&q=effect_id%3Amsg_77&status=any",
	} {
		w := cl.get("/jobs?" + query)
		if w.Code != http.StatusSeeOther || w.Header().Get("Location") != want {
			t.Errorf("%s: %d to %q, want 303 to %q", query, w.Code, w.Header().Get("Location"), want)
			continue
		}
		cl.open(t, want, http.StatusOK)
	}
	if rows := cl.open(t, "/jobs?q=effect_id%3Amsg_77&status=any", http.StatusOK).Find("tr[data-row]").Length(); rows != 2 {
		t.Errorf("the provider's id lists %d jobs, want 2", rows)
	}
}

func TestSearchStaysWithinTheScope(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	ids := b.capture(t, welcome(t, map[string]any{"job_id": "both"}),
		welcome(t, map[string]any{"job_id": "both", "environment": "staging", "source": "app-staging"}),
		welcome(t, map[string]any{"job_id": "only_production", "idempotency_key": ""}))
	cl := b.grant(t, rbac.Grant{Role: rbac.Viewer, Environment: "staging"})
	if to := cl.get("/jobs?q=both").Header().Get("Location"); to != "/jobs/"+ids[1] {
		t.Errorf("leads to %q, want staging's job", to)
	}
	if got := text(cl.open(t, "/jobs?q=only_production", http.StatusOK).Find("main")); !strings.Contains(got, "No dead job that you may see has this name") {
		t.Errorf("a job out of scope: %q", got)
	}
}

func TestSearchSaysThatNothingHasTheName(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	b.capture(t, welcome(t, nil))
	cl := b.as(t, rbac.Viewer)
	doc := cl.open(t, "/jobs?q=wel_9999&env=staging", http.StatusOK)
	got := text(doc.Find("main"))
	for _, want := range []string{"No dead job is named wel_9999, staging", "class:TimeoutError"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
	if href, _ := doc.Find(`main a:contains("Search all environments")`).Attr("href"); href != "/jobs?q=wel_9999" {
		t.Errorf("searches elsewhere at %q", href)
	}
	if doc.Find("tr[data-row], [role=alert]").Length() != 0 {
		t.Error("a name that nothing bears is neither a list nor a mistake")
	}
	// What was meant for the language is put right instead.
	for query, want := range map[string]string{"open": "status:open", "stauts:open": "status:", "type:a wel_8821": "field:value"} {
		doc := cl.open(t, "/jobs?q="+url.QueryEscape(query), http.StatusUnprocessableEntity)
		if got := text(doc.Find("[role=alert]")); !strings.Contains(got, want) {
			t.Errorf("%s: %q doesn't say %q", query, got, want)
		}
	}
}

func TestSearchRefusesSecrets(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	const address = "canary-alex@example.com"
	b.capture(t, welcome(t, map[string]any{"idempotency_key": address}))
	cl := b.as(t, rbac.Viewer)
	for _, word := range []string{address, "password=" + canary, "AKIAIOSFODNN7EXAMPLE", "customer:" + address} {
		w := cl.get("/jobs?q=" + url.QueryEscape(word))
		if w.Code != http.StatusUnprocessableEntity || w.Header().Get("Location") != "" {
			t.Errorf("%.12s…: %d to %q, want 422", word, w.Code, w.Header().Get("Location"))
		}
		if strings.Contains(w.Body.String(), word) || strings.Contains(w.Body.String(), url.QueryEscape(word)) {
			t.Errorf("%.12s…: the page repeats it", word)
		}
	}
}

// TestSearchReadsFewRows: a name is found along an index, in a table where a
// scan would show.
func TestSearchReadsFewRows(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	exec(t, b, `
		INSERT INTO redrive.dead_jobs (environment, source, job_id, job_type, key_scope, idempotency_key, entity, effect_id, fingerprint, died_at)
		SELECT 'production', 's', 'j' || i, 't', 't', 'k' || i, 'e' || i, CASE WHEN i % 50 = 0 THEN 'p' || i ELSE '' END, 'f', now()
		FROM generate_series(1, 20000) i`)
	exec(t, b, `ANALYZE redrive.dead_jobs`)
	for _, column := range []string{"job_id", "idempotency_key", "entity", "effect_id"} {
		var plan string
		query := fmt.Sprintf(`EXPLAIN (FORMAT JSON) SELECT d.id FROM redrive.dead_jobs d WHERE d.%[1]s = 'x' AND d.%[1]s <> '' LIMIT 2`, column)
		if err := b.pool.QueryRow(t.Context(), query).Scan(&plan); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(plan, "Seq Scan") {
			t.Errorf("%s: %s", column, plan)
		}
	}
}
