package acceptance

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"
)

// TestDemoHasAPast: the demo's people have ordered batches, so that its pages
// have something to show from the start.
func TestDemoHasAPast(t *testing.T) {
	t.Parallel()
	d := demoWorld(t)
	awaitFor(t, time.Minute, "a batch of the demo's past that was confirmed", func() bool {
		status, text := d.call(t, "auditor", http.MethodGet, "/batches", nil)
		if status != http.StatusOK {
			t.Fatalf("batches: %d %s", status, text)
		}
		var page struct {
			Items []struct {
				Type   string `json:"job_type"`
				Reason string `json:"reason"`
				State  string `json:"state"`
			} `json:"items"`
		}
		if err := json.Unmarshal(text, &page); err != nil {
			t.Fatal(err)
		}
		for _, b := range page.Items {
			if b.Type == "update_search_index" && (b.State == "running" || b.State == "done") {
				return true
			}
		}
		return false
	})
}
