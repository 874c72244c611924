package web

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq/replay"
	"github.com/redrive-dlq/redrive/rbac"
)

// takingTarget carries every payload; nothing is released in these tests.
type takingTarget struct{}

func (takingTarget) Check(_ context.Context, _ pgx.Tx, items []replay.Item, _ [][]byte) ([]*replay.Refusal, error) {
	return make([]*replay.Refusal, len(items)), nil
}

func (takingTarget) Release(_ context.Context, _ pgx.Tx, items []replay.Item) ([]replay.Released, error) {
	return make([]replay.Released, len(items)), nil
}

// takeAll lets the console's replays go to a target that takes them, by the
// bundle's clock.
func (b *testBundle) takeAll() {
	b.server.config.Replays.Targets["http"] = takingTarget{}
	b.server.config.Replays.Now = b.now
}

func TestReplayPageSaysWhatWillHappen(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	b.takeAll()
	id := b.welcomeJob(t, "wel_1", "category = 'transient'")
	cl := b.as(t, rbac.Operator)
	doc := cl.open(t, "/jobs/"+id+"/replay", http.StatusOK)
	words := text(doc.Find("main"))
	for _, want := range []string{"sends one e-mail to the customer", "send_welcome_email", "production", "http://127.0.0.1:9010/jobs",
		"welcome:wel_1", "The ledger lets the effect of this key happen once", "UTC", "the bytes as captured"} {
		if !strings.Contains(words, want) {
			t.Errorf("the page doesn't say %q: %s", want, words)
		}
	}
	if doc.Find("main .stage-production").Length() != 1 || doc.Find("main form input[name=version][value='1.1']").Length() != 1 {
		t.Error("the page lacks the environment's colour or what it was made from")
	}
	w := cl.post("/jobs/"+id+"/replay", "version", "1.1", "reason", "the provider is back", "when", "now")
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/jobs/"+id {
		t.Fatalf("%d to %q\n%s", w.Code, w.Header().Get("Location"), w.Body)
	}
	after := cl.open(t, "/jobs/"+id, http.StatusOK)
	if after.Find("a[href^='/batches/']").Length() == 0 || !strings.Contains(text(after.Find("body")), "replay is ordered") {
		t.Errorf("no message that leads on: %s", text(after.Find("main")))
	}
	if got := query[string](t, b, `SELECT status FROM redrive.dead_jobs`); got != "replaying" {
		t.Errorf("status %s", got)
	}
	// The same form again: no second replay, and no error page.
	w = cl.post("/jobs/"+id+"/replay", "version", "1.1", "reason", "the provider is back", "when", "now")
	again := page(t, w)
	if w.Code != http.StatusConflict || !strings.Contains(text(again.Find("main")), "being replayed already") || again.Find("main a[href='/jobs/"+id+"']").Length() == 0 || again.Find("main form").Length() != 0 {
		t.Errorf("again: %d %s", w.Code, text(again.Find("main")))
	}
	if n := query[int](t, b, `SELECT count(*) FROM redrive.replays`); n != 1 {
		t.Errorf("%d replays", n)
	}
}

func TestReplayOnceUnderParallelForms(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	b.takeAll()
	id := b.welcomeJob(t, "wel_1", "category = 'transient'")
	cl := b.as(t, rbac.OnCall)
	codes := make([]int, 50)
	var wg sync.WaitGroup
	for i := range codes {
		one := &client{b: b, cookies: map[string]string{rbac.CookieName: cl.cookies[rbac.CookieName]}, header: cl.header}
		wg.Go(func() {
			codes[i] = one.post("/jobs/"+id+"/replay", "version", "1.1", "reason", "the provider is back").Code
		})
	}
	wg.Wait()
	ordered := 0
	for _, code := range codes {
		switch code {
		case http.StatusSeeOther:
			ordered++
		case http.StatusConflict:
		default:
			t.Errorf("answered %d", code)
		}
	}
	replays, entries := query[int](t, b, `SELECT count(*) FROM redrive.replays`), query[int](t, b, `SELECT count(*) FROM redrive.audit_entries WHERE action = 'replay.order'`)
	if ordered != 1 || replays != 1 || entries != 1 {
		t.Errorf("%d ordered, %d replays, %d entries, want one each", ordered, replays, entries)
	}
}

func TestReplayLater(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	b.takeAll()
	id := b.welcomeJob(t, "wel_1", "category = 'transient'")
	cl := b.as(t, rbac.Operator)
	for name, fields := range map[string][]string{
		"over":      {"when", "later", "at", "2026-05-04T03:02"},
		"too far":   {"when", "later", "at", "2026-07-04T03:02"},
		"no time":   {"when", "later", "at", ""},
		"nonsense":  {"when", "later", "at", "soon"},
		"no choice": {"when", "perhaps", "at", ""},
	} {
		w := cl.post("/jobs/"+id+"/replay", append([]string{"version", "1.1", "reason", "the provider is back"}, fields...)...)
		doc := page(t, w)
		html, _ := doc.Find("main form").Html()
		if w.Code != http.StatusUnprocessableEntity || doc.Find("#at[aria-invalid=true]").Length() != 1 || !strings.Contains(html, "the provider is back") {
			t.Errorf("%s: %d %s", name, w.Code, text(doc.Find("main")))
		}
	}
	if w := cl.post("/jobs/"+id+"/replay", "version", "1.1", "reason", " "); w.Code != http.StatusUnprocessableEntity || page(t, w).Find("#reason[aria-invalid=true]").Length() != 1 {
		t.Errorf("without a reason: %d", w.Code)
	}
	w := cl.post("/jobs/"+id+"/replay", "version", "1.1", "reason", "when it is quiet", "when", "later", "at", "2026-05-04T23:30")
	if w.Code != http.StatusSeeOther {
		t.Fatalf("%d\n%s", w.Code, w.Body)
	}
	if got := query[string](t, b, `SELECT to_char(due_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI') FROM redrive.replays`); got != "2026-05-04 23:30" {
		t.Errorf("due %s", got)
	}
}

func TestReplayIsBoundToWhatWasShown(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	b.takeAll()
	id := b.welcomeJob(t, "wel_1", "category = 'transient'")
	cl := b.as(t, rbac.OnCall)
	for _, version := range []string{"", "1", "2.1", "1.2", "x.1", "1.1.1"} {
		w := cl.post("/jobs/"+id+"/replay", "version", version, "reason", "the provider is back")
		if w.Code != http.StatusConflict || !strings.Contains(text(page(t, w).Find("[role=alert]")), "changed since you looked") {
			t.Errorf("version %q: %d %s", version, w.Code, text(page(t, w).Find("main")))
		}
	}
	if n := query[int](t, b, `SELECT count(*) FROM redrive.replays`); n != 0 {
		t.Errorf("%d replays", n)
	}
}

func TestReplayBlockedSaysWhatLiftsIt(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	b.takeAll()
	cl := b.as(t, rbac.Operator)
	for state, want := range map[string]struct{ words, href string }{
		"category = 'invalid_input'":                            {"The input was refused", "/edit"},
		"category = 'auth'":                                     {"The credentials were refused", "/fix"},
		"effect = 'unknown'":                                    {"nobody knows its end", "/settle"},
		"status = 'discarded'":                                  {"It is discarded, not open", "/reopen"},
		"category = 'transient', job_type = 'nobody declared'":  {"Nobody declared the type", ""},
		"effect = 'done', effect_id = 'msg_77', status= 'open'": {"msg_77", ""},
	} {
		id := b.welcomeJob(t, "wel_"+strings.Map(func(r rune) rune {
			if r < 'a' || r > 'z' {
				return -1
			}
			return r
		}, state), state)
		for _, method := range []string{"GET", "POST"} {
			w, status := cl.get("/jobs/"+id+"/replay"), http.StatusOK
			if method == "POST" {
				w, status = cl.post("/jobs/"+id+"/replay", "version", "1.1", "reason", "some reason"), http.StatusConflict
			}
			doc := page(t, w)
			if w.Code != status || doc.Find("main form").Length() != 0 || !strings.Contains(text(doc.Find("main")), want.words) {
				t.Errorf("%s when %s: %d, a form, or without %q: %s", method, state, w.Code, want.words, text(doc.Find("main")))
			}
			if want.href != "" && doc.Find("main a[href='/jobs/"+id+want.href+"']").Length() == 0 {
				t.Errorf("%s when %s: no way to %s", method, state, want.href)
			}
		}
	}
}

func TestReplayOfMoneyTakesTheRight(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	b.takeAll()
	id := b.welcomeJob(t, "ch_1", "category = 'transient', job_type = 'charge_card', key_scope = 'charge'")
	operator, oncall := b.as(t, rbac.Operator), b.as(t, rbac.OnCall)
	w := operator.get("/jobs/" + id + "/replay")
	if w.Code != http.StatusForbidden || page(t, w).Find("main form").Length() != 0 {
		t.Errorf("operator: %d", w.Code)
	}
	if w := operator.post("/jobs/"+id+"/replay", "version", "1.1", "reason", "some reason"); w.Code != http.StatusForbidden {
		t.Errorf("operator's form: %d", w.Code)
	}
	doc := oncall.open(t, "/jobs/"+id+"/replay", http.StatusOK)
	if !strings.Contains(text(doc.Find("main")), "may move money") || doc.Find("main a[href='/batches/new?ids="+id+"']").Length() == 0 || doc.Find("main form").Length() != 0 {
		t.Errorf("money isn't named, or there is no way to a plan: %s", text(doc.Find("main")))
	}
	w = oncall.post("/jobs/"+id+"/replay", "version", "1.1", "reason", "some reason")
	if w.Code != http.StatusConflict || !strings.Contains(text(page(t, w).Find("main")), "Plan a batch") {
		t.Errorf("oncall, without a second person: %d", w.Code)
	}
	if n := query[int](t, b, `SELECT count(*) FROM redrive.replays`); n != 0 {
		t.Errorf("%d replays of money without a plan", n)
	}
}
