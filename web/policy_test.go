package web

import (
	"net/http"
	"strings"
	"testing"

	"github.com/redrive-dlq/redrive/rbac"
)

// policies are who may use the console's routes, by design: the table in the
// code is held against it, so that a route that is new, or opens wider, is looked
// at here. Where it says "read" for what writes, the domain decides: a plan, a
// request and a run differ in who may withdraw them.
const policies = `
healthz, readyz, static, login, login.submit: public
logout, account, account.end, account.end_others, account.token.revoke, account.passphrase, account.passphrase.submit, confirm, confirm.submit: signed in
account.tokens.new, account.tokens.mint: signed in, step-up
admin.users, admin.user, admin.user.disable, admin.tokens, admin.token.revoke, admin.token.revoke.submit: needs administer
admin.users.new, admin.users.create, admin.user.enable, admin.user.grant, admin.user.ungrant, admin.tokens.new, admin.tokens.mint: needs administer, step-up
overview, jobs, job, job.payload, job.events, groups, group, batches, batch, batch.events, types, type, sources, targets: needs read
audit: needs read_audit
job.note, job.note.submit, job.assign, job.assign.submit, job.resolve, job.resolve.submit, job.discard, job.discard.submit: needs triage
job.reopen, job.reopen.submit, job.snooze, job.snooze.submit: needs triage
job.fix, job.fix.submit: needs declare_fix
job.settle, job.settle.submit: needs settle_effect
job.edit, job.edit.submit: needs edit
job.cancel, job.cancel.submit: needs replay_one
job.replay, job.replay.submit: needs replay_one, order
batch.new: needs plan_batch
batch.new.submit, batch.judge: needs plan_batch, order
batch.made, batch.report, batch.export.csv, batch.export.json: needs read
batch.review, batch.review.submit: needs run_batch
batch.allow_old, batch.allow_old.submit: needs run_batch, order
batch.confirm: needs run_batch, step-up
batch.confirm.submit: needs run_batch, step-up, order
batch.approve: needs approve_batch, step-up
batch.approve.submit: needs approve_batch, step-up, order
batch.fix, batch.fix.submit: needs declare_fix, order
batch.group.fix, batch.group.fix.submit: needs declare_fix
batch.pause, batch.pause.submit, batch.resume, batch.resume.submit, batch.rate, batch.rate.submit, batch.cancel, batch.cancel.submit: needs read
batch.plan_failed, batch.plan_failed.submit: needs read, order
holds: needs read
holds.place, hold.explain, hold.explain.submit, hold.lift, hold.lift.submit: needs hold_replays
`

// TestEveryRouteHasTheDecidedPolicy fails on a route that nobody decided about.
func TestEveryRouteHasTheDecidedPolicy(t *testing.T) {
	t.Parallel()
	decided := map[string]string{}
	for _, line := range strings.Split(strings.TrimSpace(policies), "\n") {
		names, policy, _ := strings.Cut(line, ": ")
		for _, name := range strings.Split(names, ", ") {
			decided[name] = policy
		}
	}
	for _, r := range setup(t).server.Routes() {
		if strings.HasPrefix(r.Name, "odd.") {
			continue // of the tests
		}
		if got, want := r.Policy.String(), decided[r.Name]; got != want {
			t.Errorf("%s %s (%s): %s; decided was %q", r.Method, r.Path, r.Name, got, want)
		}
		delete(decided, r.Name)
	}
	for name := range decided {
		t.Errorf("%s is decided about and doesn't exist", name)
	}
}

// TestReadersChangeNothing: what a route lets every reader ask for, the domain
// refuses to those who only read, whatever state the batch is in.
func TestReadersChangeNothing(t *testing.T) {
	t.Parallel()
	p := preySetup(t)
	readers := []*client{p.as(t, rbac.Viewer), p.as(t, rbac.Auditor), p.as(t, rbac.Admin)}
	before := contents(t, p.testBundle)
	tried := 0
	for _, r := range p.server.Routes() {
		if !r.writes() || r.Audience != Browser || strings.HasPrefix(r.Name, "batch.export") || !strings.HasPrefix(r.Path, "/batches") {
			continue
		}
		for _, path := range p.paths(r) {
			for _, cl := range readers {
				tried++
				// An act on a batch that has ended is refused for that, to everybody.
				if w := cl.post(path, "reason", "because", "per_minute", "1"); w.Code != http.StatusForbidden && w.Code != http.StatusConflict {
					t.Errorf("%s %s answers %d to a reader", r.Method, path, w.Code)
				}
			}
		}
	}
	if tried < 200 {
		t.Errorf("only %d were tried", tried)
	}
	after := contents(t, p.testBundle)
	for table, was := range before {
		if after[table] != was {
			t.Errorf("%s changed", table)
		}
	}
}
