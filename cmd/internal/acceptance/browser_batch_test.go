package acceptance

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redrive-dlq/redrive/dlq/replay"
	"github.com/redrive-dlq/redrive/views/route"
)

// batchPatience bounds waits for a batch: it leaves at its rate.
const batchPatience = 3 * time.Minute

// TestBatchOfAnIncident is the night of an on-call engineer: the invoice run
// died in production, most of it can be sent again, and the renderer goes down
// once more in the middle.
func TestBatchOfAnIncident(t *testing.T) {
	t.Parallel()
	oncall := newTab(t)
	oncall.signIn("oncall")
	approver := newTab(t)
	approver.signIn("approver")
	oncall.demo.find(t, "type:send_invoice env:production status:open class:ServiceUnavailable")

	batch := planIncident(t, oncall)
	liftIncident(t, oncall, batch)
	reviewIncident(t, oncall, batch)
	confirmIncident(t, oncall, batch)
	// The renderer answers for the canary, and is down for what follows.
	oncall.demo.outage(t, http.MethodPost, 5)
	approveIncident(t, approver, batch)
	stopIncident(t, oncall, batch)
	oncall.demo.outage(t, http.MethodDelete, 0)
	resumeIncident(t, oncall, batch)
	reportIncident(t, oncall, batch)
	auditIncident(t, batch)
}

// outage throws the invoice provider off, after so many requests, or on.
func (d *demoProcess) outage(t *testing.T, method string, after int) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"environment": "production", "provider": "invoices", "after": after})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, d.providers+"/outages", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close() // nothing is read of it
	if res.StatusCode >= 300 {
		t.Fatalf("%s /outages: %s", method, res.Status)
	}
}

// planIncident filters, takes all that match, and waits for the plan.
func planIncident(t *testing.T, b *tab) string {
	t.Helper()
	b.open(route.Jobs + "?type=send_invoice&env=production&status=open")
	if !b.offers("tr[data-row] input[data-select]") {
		t.Fatalf("no row can be selected\n%s", b.here())
	}
	b.follow(`form[data-selecting] button[value="all"]`)
	b.says("send_invoice", "that match")
	b.fill("#reason", "the renderer is up again, INV-42")
	b.follow(`main form[method=post] button[type=submit]`)
	batch := strings.TrimPrefix(b.path(), "/batches/")
	b.wait("the plan", `document.querySelector("#verdicts") !== null`)
	b.says("Eligible", "Invalid input", "Breaks its schema", "Effect unknown", "Dependency missing", "Duplicate in this batch", "Already done")
	return batch
}

// liftIncident declares a fix: what was refused for its input is eligible then.
func liftIncident(t *testing.T, b *tab, batch string) {
	t.Helper()
	before := b.demo.batch(t, batch)
	b.follow(`#fix`)
	b.read(`document.querySelector("#kind").value = "worker_version", ""`)
	b.fill("#ref", "renderer 7.1.2")
	b.fill("#reason", "it takes plus addresses now")
	b.follow(`main form[method=post] button[type=submit]`)
	b.wait("the new verdicts", `document.querySelector("#verdicts") !== null && !document.querySelector("#verdicts").innerText.includes("invalid_input")`)
	after := b.demo.batch(t, batch)
	if lifted := before.Verdicts[replay.InvalidInput]; lifted == 0 || after.Eligible != before.Eligible+lifted || after.PlanHash == before.PlanHash {
		t.Errorf("the fix lifted nothing: %+v, then %+v", before, after)
	}
}

func reviewIncident(t *testing.T, b *tab, batch string) {
	t.Helper()
	b.follow("#review")
	b.says("What will happen", "second person", "canary")
	b.read(`document.querySelector("input[name=when][value=now]").click(), ""`)
	b.fill("#canary", "5")
	b.follow(`main form[method=post] button[type=submit]`)
	if got := b.path(); got != route.BatchConfirm(batch) {
		t.Fatalf("the review leads to %s\n%s", got, b.here())
	}
}

// confirmIncident types a wrong phrase, then the right one.
func confirmIncident(t *testing.T, b *tab, batch string) {
	t.Helper()
	now := b.demo.batch(t, batch)
	b.says("may send", strconv.Itoa(now.Eligible), "production")
	b.fill("#phrase", "replay everything")
	if status := b.follow(`main form[method=post] button[type=submit]`); status != http.StatusUnprocessableEntity {
		t.Errorf("a wrong phrase answers %d\n%s", status, b.here())
	}
	if state := b.demo.batch(t, batch).State; state != "planned" {
		t.Errorf("%s after a wrong phrase", state)
	}
	b.fill("#phrase", fmt.Sprintf("replay %d send_invoice in production", now.Eligible))
	if status := b.follow(`main form[method=post] button[type=submit]`); status != http.StatusOK {
		t.Fatalf("the right phrase answers %d\n%s", status, b.here())
	}
	if state := b.demo.batch(t, batch).State; state != "waiting" {
		t.Fatalf("%s after the confirmation, want waiting\n%s", state, b.here())
	}
	b.says("A second person has to approve it.")
	if b.offers("#approve") {
		t.Error("who asked is offered to approve")
	}
}

func approveIncident(t *testing.T, b *tab, batch string) {
	t.Helper()
	b.open(route.Batch(batch))
	b.follow("#approve")
	b.says("asks for a second person", "oncall@demo.test", "may send")
	b.fill("#phrase", b.read(`document.querySelector("#the-phrase").innerText`))
	if status := b.follow(`main form[method=post] button[type=submit]`); status != http.StatusOK {
		t.Fatalf("the approval answers %d\n%s", status, b.here())
	}
}

// stopIncident: the canary passes, then the provider fails and the batch stops
// by itself and says why; the page tells it without a reload, and the button
// under one's pointer stays the same button while it does.
func stopIncident(t *testing.T, b *tab, batch string) {
	t.Helper()
	b.open(route.Batch(batch))
	b.read(`document.querySelector("#cancel").kept = true, ""`)
	awaitFor(t, batchPatience, "the stop", func() bool { return b.demo.batch(t, batch).State == "paused" })
	b.wait("the stop, by itself", `document.querySelector("main").innerText.includes("failed (limit 20 %)")`)
	if b.read(`document.querySelector("#cancel").kept === true`) != "true" {
		t.Error("a live update put another button in the place of the one that was there")
	}
	now := b.demo.batch(t, batch)
	if now.PauseKind != "failures" || now.Progress["succeeded"] < 5 || now.Progress["failed"] == 0 {
		t.Errorf("stopped as %+v", now)
	}
	b.axe(axeScript(t))
}

func resumeIncident(t *testing.T, b *tab, batch string) {
	t.Helper()
	b.open(route.BatchResume(batch))
	b.says("new canary")
	if status := b.post(route.BatchResume(batch), url.Values{"reason": {" "}}); status != http.StatusUnprocessableEntity {
		t.Errorf("resuming without a reason answers %d", status)
	}
	b.fill("#reason", "the renderer has its memory back")
	if status := b.follow(`main form[method=post] button[type=submit]`); status != http.StatusOK {
		t.Fatalf("resuming answers %d\n%s", status, b.here())
	}
	awaitFor(t, batchPatience, "the end of the batch", func() bool { return b.demo.batch(t, batch).State == "done" })
}

// reportIncident: totals add up, and what failed can be planned again.
func reportIncident(t *testing.T, b *tab, batch string) {
	t.Helper()
	b.open(route.BatchReport(batch))
	now := b.demo.batch(t, batch)
	sum := 0
	for _, n := range now.Progress {
		sum += n
	}
	if sum != now.Planned {
		t.Errorf("the totals make %d of %d planned: %v", sum, now.Planned, now.Progress)
	}
	b.says(strconv.Itoa(now.Progress["succeeded"]), "oncall@demo.test", "approver@demo.test", now.PlanHash[:12])
	if !b.offers(`main a[href="` + route.BatchPlanFailed(batch) + `"]`) {
		t.Errorf("what failed can't be planned again\n%s", b.here())
	}
}

// auditIncident: the log says who ordered which hash, and an export proves each
// member from it.
func auditIncident(t *testing.T, batch string) {
	t.Helper()
	b := newTab(t)
	b.signIn("auditor")
	now := b.demo.batch(t, batch)
	b.open(route.Batch(batch))
	b.says("oncall@demo.test", "approver@demo.test", now.PlanHash[:12])
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.demo.base+"/api/v1/batches/"+batch+"/report", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer demo-auditor-token")
	req.Header.Set("Accept", "text/csv")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }() // read whole below
	rows, err := csv.NewReader(res.Body).ReadAll()
	if err != nil || len(rows) != now.Planned+1 {
		t.Fatalf("%d rows of an export of %d: %v", len(rows), now.Planned, err)
	}
	sum := replay.NewPlanHash()
	for _, row := range rows[1:] {
		job, _ := strconv.ParseInt(row[0], 10, 64)
		generation, _ := strconv.Atoi(row[1])
		version, _ := strconv.Atoi(row[2])
		sum.Add(job, generation, version, row[3])
	}
	if sum.String() != now.PlanHash {
		t.Errorf("the export makes the hash %s, the plan's is %s", sum, now.PlanHash)
	}
}

// batchNow is what a test needs to know of a batch.
type batchNow struct {
	State     string         `json:"state"`
	Planned   int            `json:"planned"`
	Eligible  int            `json:"eligible"`
	PlanHash  string         `json:"plan_hash"`
	Verdicts  map[string]int `json:"verdicts"`
	PauseKind string         `json:"pause_kind"`
	Progress  map[string]int `json:"progress"`
}

func (d *demoProcess) batch(t *testing.T, id string) (b batchNow) {
	t.Helper()
	status, text := d.call(t, "oncall", http.MethodGet, "/batches/"+url.PathEscape(id), nil)
	if status != http.StatusOK {
		t.Fatalf("batch %s: %d %s", id, status, text)
	}
	if err := json.Unmarshal(text, &b); err != nil {
		t.Fatal(err)
	}
	return b
}

// awaitFor is await with a patience of its own.
func awaitFor(t *testing.T, patience time.Duration, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(300 * time.Millisecond) {
		if done() {
			return
		}
	}
	t.Fatalf("not within %s: %s", patience, what)
}
