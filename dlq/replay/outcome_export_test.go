package replay_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"github.com/redrive-dlq/redrive/dlq/board"
	"github.com/redrive-dlq/redrive/dlq/replay"
)

// exported writes a batch's export and makes the plan's hash from it, as anybody
// who holds the file can.
func (b *ordersBundle) exported(t *testing.T, id int64) (hash string, rows []map[string]string) {
	t.Helper()
	var file bytes.Buffer
	if err := board.ExportCSV(t.Context(), b.pool, id, &file); err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(&file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	plan := replay.NewPlanHash()
	number := func(s string) int64 {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, line := range lines[1:] {
		row := map[string]string{}
		for i, column := range lines[0] {
			row[column] = line[i]
		}
		plan.Add(number(row["dead_job"]), int(number(row["generation"])), int(number(row["payload_revision"])), row["verdict"])
		rows = append(rows, row)
	}
	return plan.String(), rows
}

// TestExportsProveThePlan: from the plan to the report an export makes the hash
// that was confirmed, whatever became of the jobs.
func TestExportsProveThePlan(t *testing.T) {
	t.Parallel()
	b := ordersSetup(t)
	for _, o := range []jobOpts{
		{id: "good", key: "k1"}, {id: "double", key: "k1"}, {id: "fails", key: "k2"}, {id: "changes", key: "k3"},
		{id: "=cmd|' /C calc'!A0", key: "k4"}, {id: "refused", category: "invalid_input"},
	} {
		b.job(t, o)
	}
	id := b.bundle.planned(t, types("send_welcome_email"))
	planned := b.planHash(t, id)
	if hash, rows := b.exported(t, id); hash != planned || len(rows) != 6 {
		t.Errorf("the export of the plan makes %s of %d rows, want %s", hash, len(rows), planned)
	}
	order := b.reviewOrder(t, id)
	order.Canary = 0
	if _, err := b.svc.Review(t.Context(), b.oncall, order); err != nil {
		t.Fatal(err)
	}
	if _, err := b.svc.Confirm(t.Context(), b.oncall, b.page(t, b.oncall, id)); err != nil {
		t.Fatal(err)
	}
	b.exec(t, `UPDATE redrive.dead_jobs SET generation = 2 WHERE job_id = 'changes'`)
	b.clock = b.clock.Add(10 * time.Minute)
	for done := false; !done; {
		var err error
		if done, err = b.svc.Do(t.Context(), replay.WorkStart, id); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "all have left", func() bool {
		b.release(t)
		return b.count(t, `SELECT count(*) FROM redrive.replays WHERE state IN ('pending', 'ready')`) == 0
	})
	for name, end := range map[string]replay.End{"good": succeeded, "fails": failed503, "=cmd|' /C calc'!A0": succeeded} {
		b.record(t, int64(b.count(t, `SELECT id FROM redrive.replays WHERE job_id = $1 AND state = 'released'`, name)), end)
	}
	hash, rows := b.exported(t, id)
	if hash != planned {
		t.Errorf("the export of the report makes %s, confirmed was %s", hash, planned)
	}
	want := map[string]string{"good": "succeeded", "double": "", "fails": "failed", "changes": "skipped", "'=cmd|' /C calc'!A0": "succeeded", "refused": ""}
	for _, row := range rows {
		if outcome, ok := want[row["job_id"]]; !ok || outcome != row["outcome"] {
			t.Errorf("%q ended %q, want %q", row["job_id"], row["outcome"], outcome)
		}
		if failed := row["job_id"] == "fails"; failed != (row["next_generation"] == "2") || failed != (row["new_fingerprint"] != "") {
			t.Errorf("%q: next generation %s, fingerprint %q", row["job_id"], row["next_generation"], row["new_fingerprint"])
		}
	}
	b.exportedJSON(t, id, planned)
}

// exportedJSON checks the same of the JSON export, and that it has the totals.
func (b *ordersBundle) exportedJSON(t *testing.T, id int64, planned string) {
	t.Helper()
	whole, err := board.BatchOf(t.Context(), b.pool, b.oncall, id)
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := board.ExportJSON(t.Context(), b.pool, whole, &file); err != nil {
		t.Fatal(err)
	}
	var got struct {
		PlanHash string           `json:"plan_hash"`
		Items    []board.Exported `json:"items"`
	}
	if err := json.Unmarshal(file.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	plan, ended := replay.NewPlanHash(), map[string]int{}
	for _, e := range got.Items {
		plan.Add(e.DeadJob, e.Generation, e.PayloadVersion, e.Verdict)
		if e.Outcome != "" {
			ended[e.Outcome]++
		}
	}
	if plan.String() != planned || got.PlanHash != planned {
		t.Errorf("the JSON export makes %s and tells %s, confirmed was %s", plan, got.PlanHash, planned)
	}
	for outcome, n := range ended {
		if whole.Tallies[outcome] != n {
			t.Errorf("%d %s in the export, %d in the totals", n, outcome, whole.Tallies[outcome])
		}
	}
}
