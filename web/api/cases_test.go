package api_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/rbac"
)

// caseNames are the hand-made dead jobs that capture's tests hold.
func caseNames(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../dlq/testdata/cases/*.json")
	if err != nil || len(files) < 16 {
		t.Fatalf("%d cases found: %v", len(files), err)
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(filepath.Base(f), ".json")
	}
	return files
}

// readCase is a case's request body; where it asks for a generated payload, 10
// MiB of rows with a string of 2 MiB at the end.
func readCase(t *testing.T, name string) []byte {
	t.Helper()
	raw, err := os.ReadFile("../../dlq/testdata/cases/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]json.RawMessage
	if json.Unmarshal(raw, &doc) != nil || doc["payload_generate"] == nil {
		return raw
	}
	const size, end = 10 << 20, 2 << 20
	payload := []byte("[")
	for n := 0; len(payload) < size-end-200; n++ {
		payload = fmt.Appendf(payload, `{"sku": "SKU-%d", "qty": 1, "note": "row %d"},`, n, n)
	}
	payload = append(payload, '"')
	payload = append(append(payload, bytes.Repeat([]byte("long "), (size-len(payload)-2)/5)...), `"]`...)
	delete(doc, "payload_generate")
	doc["payload"] = nil
	var rest bytes.Buffer
	rest.WriteString("{")
	for _, k := range []string{"job_type", "job_id", "idempotency_key", "attempts", "headers"} {
		fmt.Fprintf(&rest, "%q: %s, ", k, doc[k])
	}
	return append(append(append(rest.Bytes(), `"payload": `...), payload...), '}')
}

// payloadOf cuts the exact bytes that a case's payload means.
func payloadOf(t *testing.T, raw []byte) []byte {
	t.Helper()
	doc, err := dlq.ParseDocument(raw, dlq.Defaults{Environment: "production", Source: "ingest"})
	if err != nil {
		t.Fatal(err)
	}
	return doc.Payload
}

// told is what a case's test knows after its document was taken.
type told struct {
	b       *bundle
	id      int64
	raw     []byte
	row     map[string]any
	detail  reply
	payload string // as the detail shows it, its JSON text
}

func (c told) all() string { return string(c.detail.raw) }

// shows and hides look at the whole detail.
func (c told) shows(t *testing.T, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(c.all(), w) {
			t.Errorf("the detail lacks %q: %.3000s", w, c.all())
		}
	}
}

func (c told) hides(t *testing.T, words ...string) {
	t.Helper()
	for _, w := range words {
		if strings.Contains(c.all(), w) || strings.Contains(fmt.Sprint(c.row), w) {
			t.Errorf("%q is shown: %.3000s", w, c.all())
		}
	}
}

// caseChecks are the rows of the cases' README, as the API can tell them.
var caseChecks = map[string]func(*testing.T, told){
	"01": func(t *testing.T, c told) {
		c.shows(t, `"regex_help":"write \\u0000 to match a NUL"`, `"file":"invoice-7001.pdf"`)
		if strings.Contains(c.detail.json["attempts"].([]any)[0].(map[string]any)["stack"].(string), "\x00") {
			t.Error("a NUL in a stack that people read")
		}
	},
	"04": func(t *testing.T, c told) {
		want := `{"account_id":9007199254740993,"row_id":3344556677889900123,"amount":1.10,"zero":-0.0,"e":1E3,"too_big":1e400,"digits":0.1000000000000000055511151231257827}`
		if c.payload != want {
			t.Errorf("payload %s\nwant    %s", c.payload, want)
		}
		if c.detail.text("job_id") != "9223372036854775807" {
			t.Errorf("job_id is %v", c.detail.json["job_id"])
		}
		c.shows(t, `"value":"12345678901234567890"`)
	},
	"06": func(t *testing.T, c told) {
		if len(c.payload) < 9<<20 {
			t.Errorf("the payload is shown with %d bytes", len(c.payload))
		}
	},
	"08": func(t *testing.T, c told) {
		if c.detail.text("job_id") != `"><svg onload=alert(2)>` || c.detail.text("idempotency_key") != `k'><script>alert(3)</script>` {
			t.Errorf("names were altered: %s", c.detail)
		}
		if c.detail.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Error("markup without nosniff")
		}
	},
	"10": func(t *testing.T, c told) {
		c.shows(t, "FAIL step lint exit 2")
		c.hides(t, `\u001b`, `\u0007`, "\x1b")
	},
	"11": func(t *testing.T, c told) {
		attempts := c.detail.json["attempts"].([]any)
		if len(attempts) != 9 {
			t.Fatalf("%d attempts", len(attempts))
		}
		for i, want := range []string{"2026-03-07T00:01:40Z", "2026-03-07T00:03:20.25Z", "2026-03-07T00:05:00.123Z", "2026-03-06T20:20:00Z",
			"2026-03-07T00:05:00Z", "2026-03-07T00:01:00Z"} {
			if got := attempts[i].(map[string]any)["at"]; got != want {
				t.Errorf("attempt %d is at %v, want %s", i+1, got, want)
			}
		}
		for i := 6; i < 9; i++ {
			if attempts[i].(map[string]any)["at_note"] == nil {
				t.Errorf("attempt %d has no note: %v", i+1, attempts[i])
			}
		}
		if at := c.detail.text("dead_at"); strings.HasPrefix(at, "2168") || strings.HasPrefix(at, "0001") {
			t.Errorf("an implausible time is believed: %s", at)
		}
	},
	"12": func(t *testing.T, c told) {
		d := c.detail
		if d.number("payload_size") != 0 || d.text("payload_kind") != "empty" || d.text("payload_encoding") != "base64" || c.payload != `""` {
			t.Errorf("an empty payload is shown as %s", d)
		}
		if len(d.json["attempts"].([]any)) != 0 || d.text("idempotency_key") != "" {
			t.Errorf("attempts or key: %s", d)
		}
	},
	"13": func(t *testing.T, c told) {
		shown, err := base64.StdEncoding.DecodeString(c.detail.text("payload"))
		sum := sha256.Sum256(shown)
		if err != nil || c.detail.text("payload_encoding") != "base64" || len(shown) != 27 ||
			hex.EncodeToString(sum[:]) != "bb170495a9dcddf266d86b47a54e1a2afb1e81a133d588a0356bf1733a1f43d2" {
			t.Errorf("protobuf is shown as %s", c.detail)
		}
	},
	"15": func(t *testing.T, c told) {
		headers, _ := json.Marshal(c.detail.json["headers"])
		for _, w := range []string{`"value":"payments"`, `"value":"payments-retry-0"`, `"value":"918273645"`, `"value":"0042"`, `00ff80`, `2026-03-15T01:00:00.123Z`, `"form":"empty"`, `"form":"null"`} {
			if !strings.Contains(string(headers), w) {
				t.Errorf("the headers lack %s: %s", w, headers)
			}
		}
		if got := c.row["error_class"]; got != "test.pay.BalanceException" {
			t.Errorf("the class is %v", got)
		}
		if cause := c.detail.json["attempts"].([]any)[0].(map[string]any)["cause"].(map[string]any); cause["error_class"] != "test.pay.BalanceException" {
			t.Errorf("the cause is %v", cause)
		}
	},
	"16": func(t *testing.T, c told) {
		c.hides(t, "Zp4vQm9tLx2sKd7yRb1nHw6c", "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9", "Xy12Qa88LmPz")
		c.shows(t, "bearer token expired is plain prose")
	},
	"18": func(t *testing.T, c told) {
		c.hides(t, "4111111111111111", "5555 5555 5555 4444", "cvv 123", "DE89 3704 0044 0532 0130 00")
		c.shows(t, "7031908301661318", "1773852601815", "41111111-1111-4111-8111-111111111111", "5f36b2ea290645ee34d943220a14b54ee5ea5be5", "8264-1993-5181-9093")
		if c.detail.text("job_id") != "7031908301661318" || c.detail.text("idempotency_key") != "charge:1773852601815" {
			t.Errorf("names were altered: %s", c.detail)
		}
	},
	"19": func(t *testing.T, c told) {
		c.hides(t, "lena.hofer", "Qm3x9LpT", "Zk81yRb1nHw6cVt", "9f2c7a11de")
		c.shows(t, "state=ok", "page=2", "@lena", "10:30@noon", "a@b")
	},
	"20": func(t *testing.T, c told) {
		if c.payload != "null" || c.detail.text("payload_encoding") != "none" {
			t.Errorf("a printout is shown as a payload: %s", c.detail)
		}
		c.hides(t, "pear-Lamp-77")
		c.shows(t, "{...}")
		refused(t, c.b.order(t, c.id), http.StatusConflict, "conflict", "Only a printout of the arguments is stored, so this job cannot be sent again")
	},
	"21": func(t *testing.T, c told) { c.shows(t, "orders.work", "orders.wait", "5000000000") },
	"24": func(t *testing.T, c told) {
		if n := len(fmt.Sprint(c.row)); n > 4000 {
			t.Errorf("the row has %d characters", n)
		}
	},
}

// TestEveryCaseOverTheAPI posts each case as bytes, finds it in the list and
// reads it, and compares the payload's stored bytes.
func TestEveryCaseOverTheAPI(t *testing.T) {
	t.Parallel()
	b := setup(t)
	names := caseNames(t)
	for number := range caseChecks {
		if !slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, number) }) {
			t.Errorf("there is no case %s", number)
		}
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			raw := readCase(t, name)
			r := b.do(t, rbac.DemoIngestToken, http.MethodPost, "/dead-jobs", jsonType, bytes.NewReader(raw))
			if strings.HasPrefix(name, "03") {
				refused(t, r, http.StatusBadRequest, "malformed", "byte 114", "payload_encoding: base64")
				if n := b.count(t, `SELECT count(*) FROM redrive.dead_jobs WHERE job_id = 'lbl-310'`); n != 0 {
					t.Error("it was stored all the same")
				}
				return
			}
			if r.status != http.StatusCreated || r.text("result") != "created" || r.number("generation") != 1 {
				t.Fatalf("%s", r)
			}
			c := told{b: b, id: r.number("id"), raw: raw}
			if r.header.Get("Location") != fmt.Sprintf("/api/v1/dead-jobs/%d", c.id) {
				t.Errorf("Location %s", r.header.Get("Location"))
			}
			again := b.do(t, rbac.DemoIngestToken, http.MethodPost, "/dead-jobs", jsonType, bytes.NewReader(raw))
			if again.status != http.StatusOK || again.text("result") != "unchanged" || again.number("id") != c.id {
				t.Errorf("the same death again: %s", again)
			}
			c.detail = b.get(t, rbac.OnCall, fmt.Sprintf("/dead-jobs/%d", c.id))
			if c.detail.status != http.StatusOK {
				t.Fatalf("%s", c.detail)
			}
			c.row = b.find(t, c.id, c.detail.text("job_id"))
			var shown struct {
				Payload json.RawMessage `json:"payload"`
			}
			if err := json.Unmarshal(c.detail.raw, &shown); err != nil {
				t.Fatal(err)
			}
			c.payload = string(shown.Payload)
			checkBytes(t, c)
			if check := caseChecks[name[:2]]; check != nil {
				check(t, c)
			}
		})
	}
}

// find reads the job's row through the list.
func (b *bundle) find(t *testing.T, id int64, jobID string) map[string]any {
	t.Helper()
	q, err := json.Marshal(jobID) // the filter quotes as JSON does
	if err != nil {
		t.Fatal(err)
	}
	r := b.get(t, rbac.Viewer, "/dead-jobs?limit=5&q="+url.QueryEscape("job:"+string(q)))
	if r.status == http.StatusOK {
		for _, x := range r.json["items"].([]any) {
			row := x.(map[string]any)
			if row["id"] == json.Number(fmt.Sprint(id)) {
				if row["payload"] != nil {
					t.Error("a payload stands in the list")
				}
				return row
			}
		}
	}
	// A job id that looks like personal data may not stand in an address.
	for _, x := range b.get(t, rbac.Viewer, "/dead-jobs?limit=200").json["items"].([]any) {
		if row := x.(map[string]any); row["id"] == json.Number(fmt.Sprint(id)) {
			t.Logf("not found by job:%s, only in the whole list: %s", q, r)
			return row
		}
	}
	t.Fatalf("job %d isn't listed", id)
	return nil
}

// checkBytes: what a replay will send is what came in, and its sum is shown to
// those who may reveal.
func checkBytes(t *testing.T, c told) {
	t.Helper()
	want := payloadOf(t, c.raw)
	viewer := c.b.get(t, rbac.Viewer, fmt.Sprintf("/dead-jobs/%d", c.id))
	if viewer.status != http.StatusOK || viewer.text("payload_sha256") != "" {
		t.Error("a viewer is told the sum of the raw payload")
	}
	if c.detail.number("payload_size") != int64(len(want)) {
		t.Errorf("payload_size %d, want %d", c.detail.number("payload_size"), len(want))
	}
	if c.detail.text("payload_kind") == "printout" {
		return
	}
	got, err := c.b.replays.Payload(t.Context(), c.b.pool, c.id, 1)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("stored %d bytes of %d differ: %v", len(got), len(want), err)
	}
	sum := sha256.Sum256(want)
	if got := c.detail.text("payload_sha256"); got != hex.EncodeToString(sum[:]) {
		t.Errorf("payload_sha256 %s, want %x", got, sum)
	}
}
