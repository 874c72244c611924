package route

// The stops of replays: the list, which also takes new ones, and what explains
// or lifts one.
const (
	Holds              = "/holds"
	HoldExplainPattern = "/holds/:id/explain"
	HoldLiftPattern    = "/holds/:id/lift"
)

// Patterns of what is done to an ordered batch, and of its report.
const (
	BatchPausePattern      = BatchPattern + "/pause"
	BatchResumePattern     = BatchPattern + "/resume"
	BatchRatePattern       = BatchPattern + "/rate"
	BatchCancelPattern     = BatchPattern + "/cancel"
	BatchReportPattern     = BatchPattern + "/report"
	BatchPlanFailedPattern = BatchPattern + "/plan-failed"
	BatchCSVPattern        = BatchPattern + "/export.csv"
	BatchJSONPattern       = BatchPattern + "/export.json"
)

// Names of query parameters of the pages of batches.
const (
	ParamState   = "state"   // of batches in their list
	ParamOutcome = "outcome" // where replays of a batch stand
	ParamVerdict = "verdict" // what the plan says of them
)

// Names of form fields of holds and of commands on batches.
const (
	FieldDestination = "destination"
	FieldPerMinute   = "per_minute"
)

// HoldExplain returns the page that says why something is held.
func HoldExplain(id string) string { return Holds + "/" + id + "/explain" }

// HoldLift returns the page that lifts a hold.
func HoldLift(id string) string { return Holds + "/" + id + "/lift" }

// BatchPause returns the page, and the form's target, that pauses a batch.
func BatchPause(id string) string { return Batch(id) + "/pause" }

// BatchResume returns the page that lets a paused batch go on.
func BatchResume(id string) string { return Batch(id) + "/resume" }

// BatchRate returns the page that slows a batch down.
func BatchRate(id string) string { return Batch(id) + "/rate" }

// BatchCancel returns the page that ends what has not left of a batch.
func BatchCancel(id string) string { return Batch(id) + "/cancel" }

// BatchReport returns the report of a batch.
func BatchReport(id string) string { return Batch(id) + "/report" }

// BatchPlanFailed returns the page that plans a batch's failed jobs anew.
func BatchPlanFailed(id string) string { return Batch(id) + "/plan-failed" }

// BatchCSV returns the form target that exports a batch, its plan and what
// became of it, as CSV.
func BatchCSV(id string) string { return Batch(id) + "/export.csv" }

// BatchJSON returns the same as JSON.
func BatchJSON(id string) string { return Batch(id) + "/export.json" }

// BatchItems returns a batch's page with the replays of one outcome or state.
func BatchItems(id, outcome string) string {
	return with(Batch(id), pairValues([]string{ParamOutcome, outcome})) + "#items"
}

// BatchVerdict returns a batch's page with the jobs of one verdict of its plan.
func BatchVerdict(id, verdict string) string {
	return with(Batch(id), pairValues([]string{ParamVerdict, verdict})) + "#items"
}

// BatchesWhere returns the list of batches with one or more filters.
func BatchesWhere(pairs ...string) string { return with(Batches, pairValues(pairs)) }

// OverviewOf returns the overview of one environment, or of all.
func OverviewOf(environment string) string {
	return with(Overview, pairValues([]string{ParamEnvironment, environment}))
}
