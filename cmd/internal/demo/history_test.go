package demo

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
)

var anchor = time.Date(2026, 3, 20, 15, 30, 0, 0, time.UTC)

// TestHistoryFitsItsCatalogue: what the demo seeds is what its catalogue
// declares, except where a mistyped payload is the story.
func TestHistoryFitsItsCatalogue(t *testing.T) {
	t.Parallel()
	c, err := LoadCatalogue()
	if err != nil {
		t.Fatal(err)
	}
	seen, byEnvironment, keys := map[string]int{}, map[string]int{}, map[string]int{}
	unknown, panics := 0, 0
	for i := range 2000 {
		j := past(i, anchor)
		if !reflect.DeepEqual(j, past(i, anchor)) {
			t.Fatalf("job %d isn't the same every time", i)
		}
		kind := j.args.Kind()
		seen[kind]++
		byEnvironment[j.environment]++
		keys[j.environment+kind+j.facts.Key]++
		declared, ok := c.Type(kind)
		if !ok {
			t.Fatalf("%s isn't in the catalogue", kind)
		}
		if err := declared.Replayable(j.environment); err != nil {
			t.Error(err)
		}
		payload, err := json.Marshal(j.args)
		if err != nil {
			t.Fatal(err)
		}
		faults, err := declared.Validate(1, payload)
		if err != nil {
			t.Fatal(err)
		}
		mistyped := j.failure.Code == "invalid_recipient" || j.failure.Code == "invalid_size" || j.mistyped
		if (len(faults) > 0) != mistyped {
			t.Errorf("job %d %s, failed with %s: schema says %v of %s", i, kind, j.failure.Code, faults, payload)
		}
		for _, f := range faults {
			if !declared.EditAllowed(f.Pointer) {
				t.Errorf("job %d %s: %s is wrong and may not be edited", i, kind, f.Pointer)
			}
		}
		if j.facts.Key == "" || j.facts.Entity == "" {
			t.Errorf("job %d has no key or entity: %+v", i, j.facts)
		}
		if j.died.After(anchor) || j.died.Before(anchor.Add(-(historyDays+1)*24*time.Hour)) {
			t.Errorf("job %d died at %s, outside the history", i, j.died)
		}
		times := j.attemptTimes()
		for n := 1; n < len(times); n++ {
			if !times[n].After(times[n-1]) {
				t.Errorf("job %d: attempts out of order: %v", i, times)
			}
		}
		if j.failure.Uncertain {
			unknown++
		}
		if j.trace != "" {
			panics++
		}
	}
	if len(seen) != 10 || len(c.Types()) != 10 {
		t.Errorf("want ten types, got %v", seen)
	}
	if p := byEnvironment["production"]; p < 1400 || byEnvironment["staging"] < 100 || byEnvironment["development"] < 50 {
		t.Errorf("environments: %v", byEnvironment)
	}
	if unknown < 20 || panics < 10 {
		t.Errorf("%d unknown effects and %d panics are too few", unknown, panics)
	}
	for key, n := range keys {
		if n > 1 && key != "productionsend_receiptreceipt:8821:shared" && !strings.HasPrefix(key, "productionsend_invoiceinvoice:run42:") {
			t.Errorf("key %s stands %d times", key, n)
		}
	}
}

func TestArticleJob(t *testing.T) {
	t.Parallel()
	j := past(0, anchor)
	a, ok := j.args.(sendWelcomeEmail)
	if !ok || a.ToEmail != "alex@@example.com" || a.SendID != j.facts.Key || j.environment != "production" {
		t.Fatalf("got %+v", j)
	}
	times := j.attemptTimes()
	if len(times) != 3 || times[2].Sub(times[0]) != 10*time.Minute || !j.cancelled || j.happened || j.failure.Retryable {
		t.Errorf("want three attempts in ten minutes and no effect, got %v of %+v", times, j)
	}
	if want := "InvalidRecipient: mail answered 400 invalid_recipient: invalid recipient: alex@@example.com"; j.failure.Error() != want {
		t.Errorf("error is %q", j.failure.Error())
	}
}

// TestInvoiceRun: one incident holds what a batch can do, and what blocks it.
func TestInvoiceRun(t *testing.T) {
	t.Parallel()
	tenants, codes, keys, deleted := map[string]bool{}, map[string]int{}, map[string]int{}, 0
	for i, job := range invoiceRun {
		j := job(rand.New(rand.NewPCG(2026, uint64(i))), anchor)
		if j.facts.Event != InvoiceRun || j.environment != "production" || j.args.Kind() != "send_invoice" {
			t.Fatalf("not of the run: %+v", j)
		}
		tenants[j.facts.Tenant] = true
		keys[j.facts.Key]++
		what := j.failure.Code
		if j.ledger == "done" || j.mistyped {
			what = j.ledger
		}
		codes[what]++
		if j.args.(sendInvoice).CustomerID >= deletedCustomer {
			deleted++
		}
	}
	if len(tenants) != 6 || len(keys) != len(invoiceRun)-2 || deleted != 3 {
		t.Errorf("%d tenants, %d keys of %d jobs, %d of deleted customers", len(tenants), len(keys), len(invoiceRun), deleted)
	}
	for code, want := range map[string]int{"address_refused": 4, "done": 3, "timeout": 3, "unavailable": 45, "failed": 2} {
		if codes[code] != want {
			t.Errorf("%d died of %s, want %d", codes[code], code, want)
		}
	}
}
