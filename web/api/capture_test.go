package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redrive-dlq/redrive/rbac"
)

// results posts lines and returns the answers.
func (b *bundle) results(t *testing.T, token string, status int, lines ...string) []map[string]any {
	t.Helper()
	r := b.do(t, token, http.MethodPost, "/dead-jobs", ndjsonType, strings.NewReader(strings.Join(lines, "\n")))
	if r.status != status {
		t.Fatalf("want %d, got %s", status, r)
	}
	var out []map[string]any
	for i, x := range r.json["results"].([]any) {
		m := x.(map[string]any)
		if m["index"] != json.Number(fmt.Sprint(i)) {
			t.Errorf("answer %d has the index %v", i, m["index"])
		}
		out = append(out, m)
	}
	return out
}

func fault(m map[string]any) string {
	e, _ := m["error"].(map[string]any)
	return fmt.Sprint(e["status"], " ", e["code"], " ", e["pointer"], " ", e["title"])
}

func TestOneBadLineHarmsNoOther(t *testing.T) {
	t.Parallel()
	b := setup(t)
	big := `{"job_type":"mail","job_id":"big","payload":"` + strings.Repeat("x", 16<<20) + `"}`
	got := b.results(t, rbac.DemoIngestToken, http.StatusMultiStatus,
		mail("1", "k1", ""), `{"job_type": }`, "", mail("2", "", ""), "\xff{}", big,
		`{"job_type":"mail","payload":{}}`, `{"job_type":"mail","job_id":"3","payload":{},"job_id":"4"}`,
		`{"job_type":"mail","job_id":"3","payload":{},"Job_ID":"4"}`, mail("1", "k1", ""), mail("5", "", `,"source":"foreign"`), mail("6", "", ""))
	want := []string{"created", "400 malformed", "created", "400 malformed", "413 too_large", "422 invalid /job_id", "", "422 invalid /Job_ID",
		"unchanged", "403 forbidden /source", "created"}
	if len(got) != len(want) {
		t.Fatalf("%d answers to %d lines: %v", len(got), len(want), got)
	}
	for i, w := range want {
		if r, _ := got[i]["result"].(string); r != "" {
			if r != w {
				t.Errorf("line %d: %v, want %s", i, got[i], w)
			}
			continue
		}
		if w == "created" || w == "unchanged" || !strings.HasPrefix(fault(got[i]), w) {
			t.Errorf("line %d: %v, want %s", i, got[i], w)
		}
	}
	if n := b.count(t, `SELECT count(*) FROM redrive.dead_jobs`); n != 3 {
		t.Errorf("%d jobs are stored, want 3", n)
	}
	e := got[4]["error"].(map[string]any)
	if !strings.Contains(fmt.Sprint(e["detail"]), "16777216") {
		t.Errorf("the limit isn't named: %v", e)
	}
	if all := b.results(t, rbac.DemoIngestToken, http.StatusOK, mail("7", "", ""), mail("1", "k1", "")); all[0]["result"] != "created" || all[1]["result"] != "unchanged" {
		t.Error(all)
	}
}

// TestADocumentThatTheDatabaseRefuses falls back to one transaction a document.
func TestADocumentThatTheDatabaseRefuses(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.pool.Exec(t.Context(), `
		CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			IF NEW.job_id LIKE 'poison%' THEN RAISE EXCEPTION 'a canary-secret-text the client must not see'; END IF;
			RETURN NEW;
		END $$;
		CREATE TRIGGER refuse BEFORE INSERT ON redrive.dead_jobs FOR EACH ROW EXECUTE FUNCTION refuse()`)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for i := range 250 {
		id := fmt.Sprint("good-", i)
		if i == 120 || i == 121 {
			id = fmt.Sprint("poison-", i)
		}
		lines = append(lines, mail(id, "", ""))
	}
	for i, x := range b.results(t, rbac.DemoIngestToken, http.StatusMultiStatus, lines...) {
		bad := i == 120 || i == 121
		if bad && (!strings.HasPrefix(fault(x), "500 internal") || strings.Contains(fmt.Sprint(x), "canary")) || !bad && x["result"] != "created" {
			t.Errorf("document %d: %v", i, x)
		}
	}
	if n := b.count(t, `SELECT count(*) FROM redrive.dead_jobs`); n != 248 {
		t.Errorf("%d jobs are stored, want 248", n)
	}
	r := b.post(t, rbac.DemoIngestToken, "/dead-jobs", mail("poison", "", ""))
	if r.status != http.StatusInternalServerError || strings.Contains(r.String(), "canary") {
		t.Error(r)
	}
}

func TestWhoMayWriteWhat(t *testing.T) {
	t.Parallel()
	b := setup(t)
	staging := b.token(t, rbac.NewToken{Capture: true, Environment: "staging", Sources: []string{"billing", "crm"}})
	nowhere := b.token(t, rbac.NewToken{Capture: true, Sources: []string{"billing"}})
	for what, r := range map[string]reply{
		"no token":       b.post(t, "", "/dead-jobs", mail("1", "", "")),
		"unknown token":  b.post(t, "rdt_nobody", "/dead-jobs", mail("1", "", "")),
		"unknown effect": b.post(t, "rdt_nobody", "/effects/begin", `{"scope":"s","key":"k"}`),
	} {
		if r.status != http.StatusUnauthorized || r.header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s: %s", what, r)
		}
	}
	refused(t, b.post(t, rbac.DemoToken(rbac.Admin), "/dead-jobs", mail("1", "", "")), http.StatusForbidden, "forbidden")
	refused(t, b.post(t, staging, "/dead-jobs", mail("1", "", `,"environment":"production"`)), http.StatusForbidden, "forbidden", "/environment", "production")
	refused(t, b.post(t, staging, "/dead-jobs", mail("1", "", `,"source":"ingest"`)), http.StatusForbidden, "forbidden", "/source", "ingest")
	refused(t, b.post(t, nowhere, "/dead-jobs", mail("1", "", "")), http.StatusUnprocessableEntity, "invalid", "/environment")
	for _, more := range []string{"", `,"source":"crm"`, `,"environment":"staging","source":"billing","job_id2":1`} {
		id := fmt.Sprint("ok", len(more))
		if r := b.post(t, staging, "/dead-jobs", mail(id, "", more)); r.status != http.StatusCreated {
			t.Errorf("%s: %s", more, r)
		}
	}
	if n := b.count(t, `SELECT count(*) FROM redrive.dead_jobs WHERE environment = 'staging' AND source IN ('billing', 'crm')`); n != 3 {
		t.Errorf("%d jobs in staging", n)
	}
	// Who only captures reads nothing; who reads one environment finds nothing of another.
	if r := b.get(t, rbac.Viewer, "/dead-jobs"); r.number("total") != 3 {
		t.Error(r)
	}
	if r := b.do(t, staging, http.MethodGet, "/dead-jobs", "", nil); r.status != http.StatusForbidden {
		t.Error(r)
	}
	reader := b.token(t, rbac.NewToken{Roles: []rbac.Role{rbac.Admin}, Environment: "production"})
	var id int64
	if err := b.pool.QueryRow(t.Context(), `SELECT min(id) FROM redrive.dead_jobs`).Scan(&id); err != nil {
		t.Fatal(err)
	}
	if r := b.do(t, reader, http.MethodGet, fmt.Sprint("/dead-jobs/", id), "", nil); r.status != http.StatusNotFound {
		t.Error(r)
	}
	if r := b.do(t, reader, http.MethodGet, "/dead-jobs", "", nil); r.status != http.StatusOK || r.number("total") != 0 {
		t.Error(r)
	}
}

func TestBodiesThatAreNotTaken(t *testing.T) {
	t.Parallel()
	b := setup(t)
	token := rbac.DemoIngestToken
	for _, kind := range []string{"", "text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin1", "multipart/form-data; boundary=x", "nonsense"} {
		refused(t, b.do(t, token, http.MethodPost, "/dead-jobs", kind, strings.NewReader(mail("1", "", ""))), http.StatusUnsupportedMediaType, "unsupported")
	}
	refused(t, b.do(t, token, http.MethodPost, "/effects/begin", ndjsonType, strings.NewReader(`{}`)), http.StatusUnsupportedMediaType, "unsupported")
	tooBig := mail("1", "", `,"more":"`+strings.Repeat("x", 16<<20)+`"`)
	r := b.post(t, token, "/dead-jobs", tooBig)
	refused(t, r, http.StatusRequestEntityTooLarge, "too_large", fmt.Sprint(len(tooBig)), "16777216", "16 MiB")
	// Its length unknown beforehand.
	r = b.do(t, token, http.MethodPost, "/dead-jobs", jsonType, io.MultiReader(strings.NewReader(tooBig)))
	refused(t, r, http.StatusRequestEntityTooLarge, "too_large", "16777216")
	exactly := `{"job_type":"mail","job_id":"exact","payload":"`
	exactly += strings.Repeat("x", 16<<20-len(exactly)-2) + `"}`
	if r := b.post(t, token, "/dead-jobs", exactly); r.status != http.StatusCreated {
		t.Errorf("16 MiB exactly: %s", r)
	}
	refused(t, b.post(t, token, "/dead-jobs", ""), http.StatusBadRequest, "malformed")
	refused(t, b.do(t, token, http.MethodPost, "/dead-jobs", ndjsonType, strings.NewReader("\n\n")), http.StatusBadRequest, "malformed")
	refused(t, b.post(t, token, "/dead-jobs", mail("1", "", "")+mail("2", "", "")), http.StatusBadRequest, "malformed", "application/x-ndjson")
	refused(t, b.post(t, token, "/dead-jobs", `{"job_type":"mail","job_id":"1","payload":{},"job_id":"2"}`), http.StatusUnprocessableEntity, "invalid", "/job_id")
	refused(t, b.post(t, token, "/dead-jobs", `{"job_type":"mail","JOB_ID":"1","payload":{}}`), http.StatusUnprocessableEntity, "invalid", "/JOB_ID")
	if n := b.count(t, `SELECT count(*) FROM redrive.dead_jobs`); n != 1 {
		t.Errorf("%d jobs are stored", n)
	}
}

// TestAStreamThatBreaksOff keeps what came whole.
func TestAStreamThatBreaksOff(t *testing.T) {
	t.Parallel()
	b := setup(t)
	conn, err := net.Dial("tcp", strings.TrimPrefix(b.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	for i := range 150 {
		lines.WriteString(mail(fmt.Sprint(i), "", "") + "\n")
	}
	_, err = fmt.Fprintf(conn, "POST /api/v1/dead-jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\nzz\r\n",
		rbac.DemoIngestToken, ndjsonType, lines.Len(), lines.String())
	if err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 64)
	if _, err := io.ReadFull(conn, answer); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 207") {
		t.Errorf("%q %v", answer, err)
	}
	_ = conn.Close()
	if n := b.count(t, `SELECT count(*) FROM redrive.dead_jobs`); n != 150 {
		t.Errorf("%d of 150 whole lines are stored", n)
	}
}

// TestCapturesDoNotWaitForASource: another transaction holds the source's row
// while captures of that source go on.
func TestCapturesDoNotWaitForASource(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.capture(t, mail("first", "", ""))
	if n := b.count(t, `SELECT count(*) FROM redrive.sources WHERE environment = 'production' AND name = 'ingest' AND kind = 'http' AND last_seen_at IS NOT NULL`); n != 1 {
		t.Fatal("the source isn't known")
	}
	tx, err := b.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(t.Context(), `SELECT FROM redrive.sources FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	// Another process, which doesn't remember the source, meets the lock too.
	other := setupOn(t, b)
	start := time.Now()
	b.capture(t, mail("second", "", ""))
	other.capture(t, mail("third", "", ""))
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("captures waited %s for the source's row", took)
	}
}

// TestAPostedDocumentKeepsTheKindOfASource that is read by us.
func TestAPostedDocumentKeepsTheKindOfASource(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if _, err := b.pool.Exec(t.Context(), `INSERT INTO redrive.sources (environment, name, kind) VALUES ('production', 'ingest', 'river')`); err != nil {
		t.Fatal(err)
	}
	b.capture(t, mail("1", "", ""))
	if n := b.count(t, `SELECT count(*) FROM redrive.sources WHERE kind = 'river' AND last_seen_at IS NULL`); n != 1 {
		t.Error("a document changed the source's kind or when it was polled")
	}
}

// TestCapturesInOppositeOrder send the same jobs of two environments, in both
// orders at once: nothing deadlocks, each job is stored once.
func TestCapturesInOppositeOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var forth, back []string
	for i := range 40 {
		for _, env := range []string{"production", "staging"} {
			line := mail(fmt.Sprint(i), fmt.Sprint("key-", i), `,"environment":"`+env+`","dead_at":"2026-03-04T09:00:00Z"`)
			forth, back = append(forth, line), append([]string{line}, back...)
		}
	}
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			lines := forth
			if n%2 == 1 {
				lines = back
			}
			for i, x := range b.results(t, rbac.DemoIngestToken, http.StatusOK, lines...) {
				if x["error"] != nil {
					t.Errorf("document %d: %v", i, x)
				}
			}
		})
	}
	wg.Wait()
	if n := b.count(t, `SELECT count(*) FROM redrive.dead_jobs`); n != 80 {
		t.Errorf("%d jobs, want 80", n)
	}
}
