package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq/replay"
	"github.com/redrive-dlq/redrive/rbac"
)

// stepped mints a token after a fresh sign-in of a demo account, as its owner
// does on the account page.
func (b *bundle) stepped(t testing.TB, role rbac.Role) string {
	t.Helper()
	x, err := b.people.SignIn(t.Context(), rbac.Attempt{Email: rbac.DemoEmail(role), Passphrase: rbac.DemoPassphrase, IP: "127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	person, err := b.people.Person(t.Context(), x)
	if err != nil {
		t.Fatal(err)
	}
	secret, _, err := b.people.MintStepUp(t.Context(), person, rbac.StepUpToken{Name: "script"})
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

// work does what the engine does in the background.
func (b *bundle) work(t testing.TB, w replay.Work, batch int64) {
	t.Helper()
	for range 100 {
		done, err := b.replays.Do(context.Background(), w, batch)
		if err != nil {
			t.Fatal(err)
		}
		if done {
			return
		}
	}
	t.Fatalf("%s of batch %d doesn't end", w, batch)
}

// plan plans a body's selection and freezes it.
func (b *bundle) plan(t testing.TB, body string) (id int64, at string) {
	t.Helper()
	r := b.post(t, rbac.DemoToken(rbac.Operator), "/batches", body)
	list, _ := r.json["batches"].([]any)
	if r.status != http.StatusAccepted || len(list) != 1 {
		t.Fatalf("plan: %s", r)
	}
	id, _ = list[0].(map[string]any)["id"].(json.Number).Int64()
	at = fmt.Sprint("/batches/", id)
	if got := r.header.Get("Location"); got != "/api/v1"+at {
		t.Errorf("it is at %q", got)
	}
	b.work(t, replay.WorkPlan, id)
	return id, at
}

// hashes is the body of a confirmation of the batch as it stands.
func (b *bundle) hashes(t testing.TB, at string) string {
	t.Helper()
	r := b.get(t, rbac.Viewer, at)
	raw, err := json.Marshal(map[string]string{"plan_hash": r.text("plan_hash"), "review_hash": r.text("review_hash"), "phrase": r.text("phrase")})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// review reviews the batch to run at once.
func (b *bundle) review(t testing.TB, at, more string) reply {
	t.Helper()
	hash := b.get(t, rbac.Viewer, at).text("plan_hash")
	return b.post(t, rbac.DemoToken(rbac.OnCall), at+"/review",
		fmt.Sprintf(`{"plan_hash":%q,"reason":"the provider is back","start_after_seconds":0%s}`, hash, more))
}

// TestABatchFromFilterToReport: a script walks the whole way.
func TestABatchFromFilterToReport(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range 3 {
		b.capture(t, mail(fmt.Sprint(i), fmt.Sprint("k", i), ""))
	}
	b.capture(t, mail("bad", "k9", `,"category":"invalid_input"`))
	id, at := b.plan(t, `{"q":"type:mail env:production","reason":"the provider is back"}`)
	r := b.get(t, rbac.Viewer, at)
	verdicts, _ := json.Marshal(r.json["verdicts"])
	if r.text("state") != "planned" || r.number("planned") != 4 || r.number("eligible") != 3 || r.text("phrase") != "replay 3 mail in production" ||
		string(verdicts) != `{"eligible":3,"invalid_input":1}` {
		t.Fatalf("planned: %s", r)
	}
	if r = b.get(t, rbac.Viewer, at+"/items?verdict=invalid_input"); len(r.json["items"].([]any)) != 1 || !strings.Contains(r.String(), `"job_id":"bad"`) {
		t.Errorf("blocked: %s", r)
	}
	if r = b.review(t, at, `,"canary":0`); r.status != http.StatusOK || r.text("review_hash") == "" || r.number("start_after_seconds") != 0 {
		t.Fatalf("review: %s", r)
	}
	agreed := b.hashes(t, at)
	refused(t, b.post(t, rbac.DemoToken(rbac.OnCall), at+"/confirm", agreed), http.StatusForbidden, "step_up_needed", "account page")
	token := b.stepped(t, rbac.OnCall)
	refused(t, b.post(t, token, at+"/confirm", strings.Replace(agreed, "replay 3", "replay 4", 1)), http.StatusUnprocessableEntity, "invalid", "/phrase", "replay 3 mail in production")
	if r = b.post(t, token, at+"/confirm", agreed); r.status != http.StatusOK || r.text("confirmed_by") == "" || r.json["due_at"] == nil {
		t.Fatalf("confirm: %s", r)
	}
	refused(t, b.post(t, token, at+"/confirm", agreed), http.StatusConflict, "conflict")
	b.work(t, replay.WorkStart, id)
	b.release(t, 3)
	b.endAll(t, id)
	r = b.get(t, rbac.Viewer, at+"/report")
	totals, _ := json.Marshal(r.json["totals"])
	if r.text("state") != "done" || string(totals) != `{"failed":1,"plan.invalid_input":1,"succeeded":2}` {
		t.Errorf("report: %s", r)
	}
	if n := b.count(t, `SELECT count(*) FROM redrive.audit_entries WHERE batch_id = $1 AND action IN ('batch.plan', 'batch.review', 'batch.confirm') AND actor_kind = 'token'`, id); n != 3 {
		t.Errorf("%d entries of planning, review and confirmation", n)
	}
	csv := b.csv(t, at)
	if lines := strings.Count(csv, "\n"); lines != 5 || !strings.HasPrefix(csv, "dead_job,generation,") {
		t.Errorf("the CSV has %d lines: %.300s", lines, csv)
	}
	if r = b.post(t, rbac.DemoToken(rbac.Operator), at+"/plan-failed", `{"reason":"the next attempt"}`); r.status != http.StatusAccepted {
		t.Errorf("plan failed: %s", r)
	}
}

// endAll tells an outcome of each replay that is out: the last one failed.
func (b *bundle) endAll(t testing.TB, batch int64) {
	t.Helper()
	rows, err := b.pool.Query(t.Context(), `SELECT id FROM redrive.replays WHERE batch_id = $1 AND state = 'released' ORDER BY id`, batch)
	if err != nil {
		t.Fatal(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		t.Fatal(err)
	}
	for i, id := range ids {
		outcome := "succeeded"
		if i == len(ids)-1 {
			outcome = "failed"
		}
		if r := b.post(t, rbac.DemoIngestToken, fmt.Sprintf("/replays/%d/outcome", id), fmt.Sprintf(`{"outcome":%q}`, outcome)); r.status != http.StatusOK {
			t.Fatalf("outcome: %s", r)
		}
	}
	for range 20 { // a batch ends in the round after its last outcome
		if b.count(t, `SELECT count(*) FROM redrive.batches WHERE id = $1 AND state = 'done'`, batch) == 1 {
			return
		}
		if _, err := b.replays.ReleaseDue(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// csv is a batch's export.
func (b *bundle) csv(t testing.TB, at string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.url+"/api/v1"+at+"/report", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+rbac.DemoToken(rbac.Viewer))
	req.Header.Set("Accept", "text/csv")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/csv; charset=utf-8" {
		t.Fatalf("CSV: %d %s %v", res.StatusCode, res.Header.Get("Content-Type"), err)
	}
	return string(raw)
}
