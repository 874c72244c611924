package route

import "net/url"

// Where replays are planned, and what is done with a plan until it is ordered.
const (
	NewBatch            = Batches + "/new"  // what is selected, and why: GET asks, POST plans
	MadeBatches         = Batches + "/made" // the batches that one selection became
	BatchReviewPattern  = BatchPattern + "/review"
	BatchConfirmPattern = BatchPattern + "/confirm"
	BatchApprovePattern = BatchPattern + "/approve"
	BatchFixPattern     = BatchPattern + "/fix"
	BatchJudgePattern   = BatchPattern + "/judge"
	BatchOldPattern     = BatchPattern + "/allow-old"
	GroupFixPattern     = GroupPattern + "/fix"
)

// The two ways to select in the job list.
const (
	SelectRows = "rows"
	SelectAll  = "all"
)

// Names of the fields of these forms; several ids may be sent.
const (
	FieldIDs        = "ids"
	FieldPlanHash   = "plan_hash"
	FieldReviewHash = "review_hash"
	FieldNonce      = "nonce"
	FieldPhrase     = "phrase"
	FieldRate       = "rate_per_minute"
	FieldCanary     = "canary"
	FieldRepeat     = "accept_repeat"
	FieldFixRef     = "ref"
	FieldSelect     = "select" // rows or all
)

// PlanOf is the page that plans a replay of all that a filter matches.
func PlanOf(filter string) string {
	return NewBatch + "?" + url.Values{ParamQuery: {filter}, FieldSelect: {SelectAll}}.Encode()
}

// PlanOfJob is the page that plans a batch of one job.
func PlanOfJob(id string) string { return NewBatch + "?" + url.Values{FieldIDs: {id}}.Encode() }

// BatchesMade is the page that leads to each of several batches.
func BatchesMade(ids []string) string { return MadeBatches + "?" + url.Values{FieldIDs: ids}.Encode() }

// BatchReview returns the page that says how a batch shall run.
func BatchReview(id string) string { return Batch(id) + "/review" }

// BatchConfirm returns the page that orders a batch.
func BatchConfirm(id string) string { return Batch(id) + "/confirm" }

// BatchApprove returns the page of the second person.
func BatchApprove(id string) string { return Batch(id) + "/approve" }

// BatchFix returns the page that declares what was fixed for a batch.
func BatchFix(id string) string { return Batch(id) + "/fix" }

// BatchJudge returns the form target that judges the jobs of a batch again.
func BatchJudge(id string) string { return Batch(id) + "/judge" }

// BatchOld returns the page that takes jobs along that are too old.
func BatchOld(id string) string { return Batch(id) + "/allow-old" }

// GroupFix returns the page that declares what was fixed for a group.
func GroupFix(fingerprint string) string { return Groups + "/" + url.PathEscape(fingerprint) + "/fix" }
