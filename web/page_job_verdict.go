package web

import (
	"slices"

	"github.com/redrive-dlq/redrive/dlq/replay"
	"github.com/redrive-dlq/redrive/rbac"
	"github.com/redrive-dlq/redrive/views/job"
	"github.com/redrive-dlq/redrive/views/route"
)

// jobState is what of a job decides which actions its page offers.
type jobState struct {
	ID, Environment, Type, Status, Effect, PayloadKind string
}

// jobCan says which actions are offered: the person may and the state allows
// it. The actions themselves check both again.
func (s *Server) jobCan(p *rbac.Principal, j jobState, v replay.Verdict) job.Can {
	may := func(perm rbac.Permission) bool { return p.Can(perm, j.Environment, j.Type) }
	unsettled := j.Status == "open" || j.Status == "snoozed"
	t, _ := s.config.Types().Type(j.Type)
	return job.Can{
		Edit:    may(rbac.Edit) && unsettled && t != nil && len(t.Edits.Payload) > 0 && j.PayloadKind == "json" && j.Effect != "done",
		Fix:     may(rbac.DeclareFix) && unsettled && (v.Lift == replay.LiftDeclareFix || v.Lift == replay.LiftEdit),
		Settle:  may(rbac.SettleEffect) && unsettled && j.Effect == "unknown",
		Replay:  may(replay.Needs(t)) && v.OK(),
		Resolve: may(rbac.Triage) && unsettled,
		Discard: may(rbac.Triage) && unsettled,
		Reopen:  may(rbac.Triage) && slices.Contains([]string{"snoozed", "resolved", "discarded"}, j.Status) && j.Effect != "done",
		Snooze:  may(rbac.Triage) && unsettled,
		Assign:  may(rbac.Triage) && unsettled,
		Note:    may(rbac.Triage),
	}
}

// lifts are the actions that lift a verdict, and how the link to them reads.
var lifts = map[replay.Lift]struct {
	action route.Action
	link   string
}{
	replay.LiftEdit:       {route.Edit, "Edit the payload"},
	replay.LiftDeclareFix: {route.Fix, "Declare a fix"},
	replay.LiftSettle:     {route.Settle, "Settle the effect"},
	replay.LiftReopen:     {route.Reopen, "Reopen it"},
}

// jobBlocks says why a replay is refused now and what lifts that. A job that
// needs none any more, or is on its way, has no blocks.
func jobBlocks(j jobState, v replay.Verdict, can job.Can) []job.Block {
	if v.OK() || v.Code == "" || v.Code == replay.NotOpen && j.Status != "snoozed" || j.Status != "open" && j.Status != "snoozed" {
		return nil
	}
	block := job.Block{Reason: v.Detail}
	if lift, ok := lifts[v.Lift]; ok && allows(can, lift.action) {
		block.Href, block.Link = route.JobAction(j.ID, lift.action), lift.link
	}
	if v.Lift == replay.LiftCatalogue {
		block.Href, block.Link = route.Types, "See what is declared"
	}
	blocks := []job.Block{block}
	for _, f := range v.Fields[min(1, len(v.Fields)):] { // the verdict's own words name the first
		blocks = append(blocks, job.Block{Reason: f.Pointer + " " + f.Message + "."})
	}
	return blocks
}

func allows(can job.Can, a route.Action) bool {
	switch a {
	case route.Edit:
		return can.Edit
	case route.Fix:
		return can.Fix
	case route.Settle:
		return can.Settle
	case route.Reopen:
		return can.Reopen
	case route.Replay:
		return can.Replay
	}
	return false
}
