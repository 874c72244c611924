package dlq

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
)

func detailTypes(t *testing.T) *jobtype.Catalogue {
	t.Helper()
	c, err := jobtype.Load(fstest.MapFS{"types.yaml": {Data: []byte(`
environments: [production, staging]
types:
  send_welcome_email:
    side_effects: [{kind: email, text: sends one e-mail to the customer}]
    idempotency: {by: key, scope: welcome}
    edits: {payload: [/to_email]}
    targets: {production: {http: {url: "http://127.0.0.1:9/", secret: "env:S"}}}
  charge_card:
    side_effects: [{kind: money, text: charges the card}]
    idempotency: {by: key}
    targets: {production: {http: {url: "http://127.0.0.1:9/", secret: "env:S"}}}
`)}}, "types.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// welcome is the article's own example.
func welcome(id string) *Document {
	raw := func(s string) json.RawMessage { return json.RawMessage(`"` + s + `"`) }
	attempt := func(at string) AttemptDoc {
		return AttemptDoc{At: raw(at), ErrorClass: "MailError", Message: "400 invalid recipient: alex@@example.com", Stack: "at send (mail.go:12)",
			Causes: []CauseDoc{{"ProviderError", "invalid recipient"}}, Worker: "w1", WorkerVersion: "2.4.0", SideEffect: "the provider stored no message"}
	}
	return &Document{
		Environment: "production", Source: "app", JobType: "send_welcome_email", JobID: id, IdempotencyKey: "welcome:" + id, Entity: "user:7",
		Payload: []byte(`{"to_email":"alex@@example.com","password":"` + secret + `","n":12345678901234567890}`),
		Headers: json.RawMessage(`{"trace":"abc","authorization":"Bearer ` + secret + `"}`), Extra: json.RawMessage(`{"shard":4}`),
		Attempts: []AttemptDoc{attempt("2026-03-30T10:00:00Z"), attempt("2026-03-30T10:04:00Z"), attempt("2026-03-30T10:10:00Z")},
		DeadAt:   raw("2026-03-30T10:10:00Z"), MaxAttempts: 3, GaveUp: "not_retryable", Category: "invalid_input", Effect: "none",
	}
}

func (b *bundle) detail(t *testing.T, p *rbac.Principal, id int64, q DetailQuery) *Details {
	t.Helper()
	d, err := Detail(t.Context(), b.pool, p, id, q)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDetail(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.one(t, welcome("wel_1")).ID
	twin := welcome("wel_2")
	twin.IdempotencyKey = "welcome:wel_1"
	holder := b.one(t, twin).ID
	foreign := welcome("wel_3")
	foreign.Environment, foreign.IdempotencyKey = "staging", "welcome:wel_1"
	b.one(t, foreign)
	if err := TriageNote(t.Context(), b.pool, operator, id, "asked the customer"); err != nil {
		t.Fatal(err)
	}
	b.exec(t, `INSERT INTO redrive.ledger (environment, scope, key, state, result) VALUES ('production', 'welcome', 'welcome:wel_1', 'failed', $1)`,
		`{"error":"no","token":"`+secret+`"}`)

	d := b.detail(t, reader, id, DetailQuery{Types: detailTypes(t)})
	if want := "Failed 3 times in 10 minutes with 400 invalid recipient; its effect did not happen; replaying as it is would fail again."; d.Sentence != want {
		t.Errorf("sentence %q\nwant     %q", d.Sentence, want)
	}
	if d.Advice.Action != DetailDoEdit || !strings.Contains(d.Advice.Text, "/to_email") {
		t.Errorf("advice %+v", d.Advice)
	}
	if p := d.Payload; p.Kind != "json" || p.Version != 1 || p.Hidden != 2 || p.Truncated || p.SHA256 != "" || p.Size == 0 ||
		!strings.Contains(string(p.Text), "12345678901234567890") || !strings.Contains(string(p.Text), "a•••@@example.com") {
		t.Errorf("payload %+v: %s", p, p.Text)
	}
	if reveals := b.detail(t, person(rbac.Grant{Role: rbac.OnCall}), id, DetailQuery{}); len(reveals.Payload.SHA256) != 64 {
		t.Errorf("whoever may reveal sees the hash %q", reveals.Payload.SHA256)
	}
	b.exec(t, `INSERT INTO redrive.audit_entries (body) VALUES ($1)`,
		fmt.Sprintf(`{"action":"job.edit","actor":{"kind":"person","name":"a"},"at_us":1,"object":{"kind":"job","id":"1"},"dead_job":%d,"details":{"sha256_after":"ab","version":2}}`, id))
	for role, want := range map[rbac.Role]bool{rbac.Viewer: false, rbac.OnCall: true} {
		entries := b.detail(t, person(rbac.Grant{Role: role}), id, DetailQuery{}).Entries
		details := entries[len(entries)-1].Details
		if _, shown := details["sha256_after"]; shown != want || details["version"] == nil {
			t.Errorf("%s sees the details %v of an edit; the hash is for those who may reveal", role, details)
		}
	}
	if len(d.Headers) != 2 || d.Headers[0].Value != "abc" || !d.Headers[1].Hidden || string(d.Extra) == "" {
		t.Errorf("headers %+v, extra %s", d.Headers, d.Extra)
	}
	if last := d.Last(); last == nil || last.Seq != 3 || last.Stack == "" || last.Causes[0].ErrorClass != "ProviderError" {
		t.Errorf("last attempt %+v", last)
	}
	if len(d.Notes) != 1 || len(d.Entries) != 1 || d.Entries[0].Action != "job.note" {
		t.Errorf("notes %+v, entries %+v", d.Notes, d.Entries)
	}
	if d.Ledger == nil || d.Ledger.State != "failed" {
		t.Errorf("ledger %+v", d.Ledger)
	}
	if len(d.Related) != 3 || d.Related[0].Total != 1 || d.Related[0].Jobs[0].ID != holder || d.Related[1].Total != 1 || d.Related[2].Total != 2 {
		t.Errorf("related %+v: a key and an entity stay in their environment, a group doesn't", d.Related)
	}
	if text := fmt.Sprintf("%+v %s", d, d.Payload.Text); strings.Contains(text, secret) || strings.Contains(text, "alex@@") {
		t.Error("the detail tells a secret")
	}
	shown, err := json.Marshal(d)
	if err != nil || strings.Contains(string(shown), secret) {
		t.Errorf("the detail tells the secret, or can't be written: %v", err)
	}
}

func TestDetailScope(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.one(t, welcome("wel_1")).ID
	other := welcome("wel_2")
	other.JobType = "charge_card"
	b.one(t, other)
	for name, p := range map[string]*rbac.Principal{
		"another environment": person(rbac.Grant{Role: rbac.Admin, Environment: "staging"}),
		"another type":        person(rbac.Grant{Role: rbac.Admin, JobType: "charge_card"}),
		"nobody":              nil,
	} {
		if _, err := Detail(t.Context(), b.pool, p, id, DetailQuery{}); !problem.Is(err, problem.NotFound) {
			t.Errorf("%s: %v, want NotFound", name, err)
		}
	}
	for name, err := range map[string]error{
		"no job":     func() error { _, err := Detail(t.Context(), b.pool, reader, id+99, DetailQuery{}); return err }(),
		"no version": func() error { _, err := Detail(t.Context(), b.pool, reader, id, DetailQuery{Version: 2}); return err }(),
	} {
		if !problem.Is(err, problem.NotFound) {
			t.Errorf("%s: %v, want NotFound", name, err)
		}
	}
	d := b.detail(t, person(rbac.Grant{Role: rbac.Viewer, JobType: "send_welcome_email"}), id, DetailQuery{})
	for _, set := range d.Related {
		if len(set.Jobs) != 0 || set.Total != 0 {
			t.Errorf("related jobs outside the scope: %+v", set)
		}
	}
}

// TestDetailTimeline: attempts in the order sent, a retold history once, what
// people did between two deaths between them.
func TestDetailTimeline(t *testing.T) {
	t.Parallel()
	b := setup(t)
	doc := welcome("wel_1")
	doc.Attempts[0], doc.Attempts[1] = doc.Attempts[1], doc.Attempts[0] // clocks disagree
	id := b.one(t, doc).ID
	b.exec(t, `UPDATE redrive.deaths SET captured_at = $1`, testNow.Add(-4*time.Hour))
	b.exec(t, `
		INSERT INTO redrive.payloads (dead_job_id, version, bytes, encoding, size, sha256, redacted, redact_version, origin, created_by, reason, created_at)
		SELECT dead_job_id, 2, bytes, encoding, size, sha256, redacted, redact_version, 'edit', 'ann@example.test', 'fix', $1 FROM redrive.payloads`,
		testNow.Add(-3*time.Hour))
	addReplay(t, b, id, "ended", "failed", testNow.Add(-2*time.Hour), testNow.Add(-time.Hour))
	again := welcome("wel_1")
	again.Attempts = append(again.Attempts, AttemptDoc{At: json.RawMessage(`"2026-04-01T11:00:00Z"`), ErrorClass: "MailError", Message: "503"}, AttemptDoc{Message: "no time"})
	again.DeadAt = json.RawMessage(`"2026-04-01T11:00:00Z"`)
	if got := b.one(t, again); got.Outcome != CaptureUpdated {
		t.Fatalf("the second death is %s", got.Outcome)
	}
	d := b.detail(t, reader, id, DetailQuery{Version: 1})
	var got []string
	for _, e := range d.Timeline {
		switch {
		case e.Attempt != nil:
			at := "?"
			if e.At != nil {
				at = e.At.UTC().Format("15:04")
			}
			got = append(got, fmt.Sprintf("attempt %d.%d %s", e.Attempt.Generation, e.Attempt.Seq, at))
		case e.Death != nil:
			got = append(got, fmt.Sprintf("death %d", e.Death.Generation))
		case e.Replay != nil:
			got = append(got, "replay "+e.Replay.Outcome+" by "+e.Replay.By)
		case e.Edit != nil:
			got = append(got, "edit by "+e.Edit.CreatedBy)
		}
	}
	want := []string{"attempt 1.1 10:04", "attempt 1.2 10:00", "attempt 1.3 10:10", "death 1", "edit by ann@example.test", "replay failed by bob@example.test",
		"attempt 2.4 11:00", "attempt 2.5 ?", "death 2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("timeline (-want +got):\n%s", diff)
	}
}

func TestDetailCutsLargePayloads(t *testing.T) {
	t.Parallel()
	b := setup(t)
	doc := welcome("big")
	doc.Payload = []byte(`"x` + strings.Repeat("é", DetailPayloadBytes) + `"`)
	d := b.detail(t, reader, b.one(t, doc).ID, DetailQuery{})
	if p := d.Payload; !p.Truncated || len(p.Text) > DetailPayloadBytes || len(p.Text) < DetailPayloadBytes-4 || p.Size != int64(len(doc.Payload)) || !strings.HasSuffix(string(p.Text), "é") {
		t.Errorf("shows %d of %d bytes, truncated %v", len(p.Text), p.Size, p.Truncated)
	}
}

func TestDetailWords(t *testing.T) {
	t.Parallel()
	types := detailTypes(t)
	at := time.Date(2026, 3, 30, 10, 0, 0, 0, time.UTC)
	base := func(change func(d *Details)) *Details {
		d := &Details{Job: DetailJob{JobType: "charge_card", Status: "open", Effect: "none", Category: "transient", ErrorMessage: "connection refused",
			AttemptCount: 1, DiedAt: at, PayloadKind: "json", IdempotencyKey: "charge:1"}}
		change(d)
		return d
	}
	for _, test := range []struct {
		name     string
		d        *Details
		sentence string
		action   string
		text     string
	}{
		{"transient", base(func(*Details) {}), "Failed once with connection refused.", DetailDoReplay, "once that has passed"},
		{"no history", base(func(d *Details) { d.Job.AttemptCount, d.Job.ErrorMessage = 0, "" }), "Died without any attempt history.", DetailDoReplay, ""},
		{"twice over days", base(func(d *Details) {
			first := at.Add(-49 * time.Hour)
			d.Job.AttemptCount, d.Job.FirstFailedAt, d.Job.StatusCode, d.Job.Category = 2, &first, 429, "throttled"
		}), "Failed twice in 2 days with 429 connection refused.", DetailDoReplay, "later"},
		{"implausible time", base(func(d *Details) {
			first := at.Add(-time.Hour)
			d.Job.AttemptCount, d.Job.FirstFailedAt, d.Job.DiedAtNote = 3, &first, "implausible"
		}), "Failed 3 times with connection refused.", DetailDoReplay, ""},
		{"unknown effect", base(func(d *Details) { d.Job.Effect = "unknown" }), "Failed once with connection refused; nobody knows whether its effect happened.",
			DetailDoSettle, "charges the card. Look up the key charge:1 at the provider"},
		{"begun in the ledger", base(func(d *Details) { d.Ledger = &DetailLedger{State: "begun"} }), "Failed once with connection refused; nobody knows whether its effect happened.", DetailDoSettle, "Until then it isn't replayed."},
		{"done in the ledger", base(func(d *Details) { d.Job.Effect = "unknown"; d.Ledger = &DetailLedger{State: "done", EffectID: "ch_1"} }),
			"Failed once with connection refused; its effect is in place (ch_1).", DetailDoNone, "ch_1"},
		{"invalid input, nothing to edit", base(func(d *Details) { d.Job.Category = "invalid_input" }), "Failed once with connection refused; replaying as it is would fail again.", DetailDoDeclareFix, "nothing of it may be edited"},
		{"invalid input, editable", base(func(d *Details) { d.Job.Category, d.Job.JobType = "invalid_input", "send_welcome_email" }), "Failed once with connection refused; replaying as it is would fail again.", DetailDoEdit, "/to_email"},
		{"fix declared", base(func(d *Details) { d.Job.Category, d.Job.FixKind, d.Job.FixRef = "auth", "ticket", "OPS-1" }), "Failed once with connection refused; a fix was declared since (ticket OPS-1).", DetailDoReplay, "fix holds"},
		{"auth", base(func(d *Details) { d.Job.Category = "auth" }), "Failed once with connection refused; replaying would fail again until the credentials work.", DetailDoDeclareFix, "Fix the key first"},
		{"missing", base(func(d *Details) { d.Job.Category = "missing_state" }), "Failed once with connection refused; it fails again until the record exists.", DetailDoReplay, "Create the record"},
		{"unknown", base(func(d *Details) { d.Job.Category = "unknown" }), "Failed once with connection refused.", DetailDoNone, "Read the error"},
		{"printout", base(func(d *Details) { d.Job.PayloadKind = "printout" }), "Failed once with connection refused.", DetailDoNone, "only a printout of the arguments is stored, so this job cannot be sent again"},
		{"replaying", base(func(d *Details) { d.Job.Status = "replaying" }), "Failed once with connection refused; it is being replayed now.", DetailDoNone, "by itself"},
		{"recovered at its source", base(func(d *Details) { d.Job.Status = "recovered" }), "Failed once with connection refused; it recovered at its source.", DetailDoNone, "nothing to do"},
		{"discarded", base(func(d *Details) {
			d.Job.Status, d.Job.SettledBy, d.Job.SettledReason = "discarded", "ann@example.test", "obsolete"
		}),
			"Failed once with connection refused; discarded by ann@example.test.", DetailDoNone, "Reason: obsolete"},
	} {
		if got := test.d.sentence(); got != test.sentence {
			t.Errorf("%s: sentence %q, want %q", test.name, got, test.sentence)
		}
		a := test.d.advise(detailType(types, test.d.Job.JobType))
		if a.Action != test.action || !strings.Contains(strings.ToLower(a.Text), strings.ToLower(test.text)) || a.Title == "" || a.Tone == "" {
			t.Errorf("%s: advice %+v, want %s with %q", test.name, a, test.action, test.text)
		}
	}
}
