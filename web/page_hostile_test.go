package web

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/redrive-dlq/redrive/rbac"
)

// corpus is markup that must be shown as text wherever it stands.
var corpus = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(2)>`, `'"--></style></title><svg onload=alert(3)>`, `{{7*7}}`, `javascript:alert(4)`,
}

// readPages are all pages that read, for one job with its batch and group.
func readPages(job, batch, group string) []string {
	return []string{"/", "/jobs?status=any", "/jobs/" + job, "/jobs/" + job + "?view=raw", "/jobs/" + job + "?view=hex", "/jobs/" + job + "?view=base64",
		"/batches", "/batches/" + batch, "/groups", "/groups/" + group, "/types", "/sources", "/targets", "/audit"}
}

func (b *testBundle) groupOf(t *testing.T, job string) (fingerprint string) {
	t.Helper()
	if err := b.pool.QueryRow(t.Context(), `SELECT fingerprint FROM redrive.dead_jobs WHERE id = $1`, job).Scan(&fingerprint); err != nil {
		t.Fatal(err)
	}
	return fingerprint
}

// auditor also reads jobs; every page is open to them.
func TestMarkupInEveryFieldIsText(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	cl := b.as(t, rbac.Auditor)
	for i, evil := range corpus {
		id := b.capture(t, welcome(t, map[string]any{
			"job_type": "t" + evil, "job_id": evil, "idempotency_key": "k" + evil, "queue": evil, "tenant": evil, "entity": "e" + evil, "event": evil,
			"destination": evil, "payload": map[string]any{evil: evil, "list": []string{evil}}, "headers": map[string]any{evil: evil},
			"reason": map[string]any{"code": evil, "text": evil}, "x" + evil: map[string]any{evil: evil},
			"attempts": []any{map[string]any{"at": evil, "error_class": evil, "message": evil, "stack": evil, "worker": evil, "worker_version": evil, "side_effect": evil,
				"cause": map[string]any{"error_class": evil, "message": evil}}},
		}))[0]
		exec(t, b, `INSERT INTO redrive.notes (dead_job_id, author, body) VALUES ($1, $2, $2)`, id, evil)
		batch := b.order(t, id, "failed", evil)
		for _, path := range readPages(id, batch, b.groupOf(t, id)) {
			doc := cl.open(t, path, http.StatusOK)
			if doc.Find("script:not([nonce]), img[onerror], svg[onload], [onload], [onerror], [style], style").Length() != 0 {
				t.Errorf("corpus %d became markup on %s", i, path)
			}
			if strings.Contains(text(doc.Find("body")), "alert(49)") || doc.Find(`a[href^="javascript"]`).Length() != 0 {
				t.Errorf("corpus %d became a link or was computed on %s", i, path)
			}
			if path == "/jobs/"+id && !strings.Contains(doc.Find("main").Text(), evil) {
				t.Errorf("corpus %d isn't shown on %s", i, path)
			}
		}
	}
}

func TestMarkupInEveryQueryParameterIsText(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	id := b.capture(t, welcome(t, nil))[0]
	batch := b.order(t, id, "succeeded", "")
	cl := b.as(t, rbac.Auditor)
	values := append([]string{"\x00", "%", "'; DROP TABLE redrive.dead_jobs; --", strings.Repeat("x", 5000), "\xff\xfe"}, corpus...)
	for _, base := range []string{"/", "/jobs", "/jobs/" + id, "/jobs/" + id + "/payload", "/batches", "/batches/" + batch, "/groups", "/types", "/sources", "/targets", "/audit"} {
		for _, name := range []string{"q", "status", "type", "category", "env", "class", "job", "key", "from", "to", "cursor", "actor", "action", "object", "version", "view"} {
			for _, value := range values {
				w := cl.get(base + "?" + url.Values{name: {value}}.Encode())
				if w.Code >= 500 || w.Code == http.StatusSeeOther {
					t.Fatalf("%s?%s=%q: %d\n%s", base, name, value, w.Code, tail(b.log.String()))
				}
				if body := w.Body.String(); strings.Contains(body, "<script>alert") || strings.Contains(body, "<img src=x") || strings.Contains(body, "<svg onload") {
					t.Errorf("%s?%s=%q became markup", base, name, value)
				}
			}
		}
	}
}

// A secret wherever a worker may put one is on no page, in no download and in
// no log line.
func TestSecretsAreOnNoPage(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	said := "connect failed: password=" + canary + " Authorization: Bearer " + canary
	id := b.capture(t, welcome(t, map[string]any{
		"payload": map[string]any{"password": canary, "nested": map[string]any{"api_token": canary}, "note": said},
		"headers": map[string]any{"authorization": "Bearer " + canary, "cookie": "session=" + canary, "x-note": said},
		"reason":  map[string]any{"code": "refused", "text": said}, "hint": map[string]any{"secret": canary},
		"attempts": []any{map[string]any{"at": "2026-05-04T02:10:00Z", "error_class": "E", "message": said, "stack": "main.go:1\n" + said, "side_effect": said,
			"cause": map[string]any{"error_class": "F", "message": said, "cause": map[string]any{"error_class": "G", "message": said}}}},
	}))[0]
	batch := b.order(t, id, "failed", said)
	exec(t, b, `UPDATE redrive.batches SET reason = $1`, said)
	for _, role := range rbac.AllRoles() {
		cl := b.as(t, role)
		for _, path := range append(readPages(id, batch, b.groupOf(t, id)), "/jobs/"+id+"/payload") {
			if w := cl.get(path); strings.Contains(w.Body.String(), canary) {
				t.Errorf("%s shows the %s a secret", path, role)
			}
		}
	}
	if strings.Contains(b.log.String(), canary) {
		t.Error("the log holds a secret")
	}
}

func TestEveryCaseFileIsListedAndShown(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	cl := b.as(t, rbac.OnCall)
	files, err := os.ReadDir("../dlq/testdata/cases")
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string][]string{
		"01": {"␀"}, "04": {"9007199254740993", "1E3", "-0.0", "1e400"}, "08": {"<img src=x onerror=alert(1)>"}, "12": {"0 bytes"},
		"13": {"27 bytes"}, "15": {"(empty)", "(null)", "00ff80"}, "20": {"Only a printout of the arguments is stored", "argsrepr"}, "06": {"10.0 MiB", "Download all of it"},
		"11": {"implausible", "missing", "no zone, read as UTC"},
	}
	n := 0
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), ".json") || strings.HasPrefix(file.Name(), "03-") {
			continue // 03 isn't UTF-8 and is refused at the door
		}
		id := b.capture(t, caseDocument(t, file.Name()))[0]
		n++
		main := cl.open(t, "/jobs/"+id, http.StatusOK).Find("main").Text()
		for _, want := range shown[file.Name()[:2]] {
			if !strings.Contains(main, want) {
				t.Errorf("%s: the page lacks %q", file.Name(), want)
			}
		}
		w := cl.get("/jobs/" + id + "/payload")
		if w.Code != http.StatusOK && w.Code != http.StatusNotFound {
			t.Errorf("%s: the download answers %d", file.Name(), w.Code)
		}
		if strings.HasPrefix(w.Header().Get("Content-Type"), "application/json") && !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s: the download is no JSON", file.Name())
		}
	}
	if got := cl.open(t, "/jobs?status=any", http.StatusOK).Find("tr[data-row]").Length(); got != n {
		t.Errorf("the list shows %d of %d cases", got, n)
	}
}
