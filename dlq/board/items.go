package board

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/dlq/cursor"
	"github.com/redrive-dlq/redrive/dlq/problem"
)

// itemCursor marks the cursors of a batch's items, in the order of the plan.
const itemCursor = 'i'

// Replay is one replay of a batch. Texts are redacted.
type Replay struct {
	ID             int64
	DeadJobID      int64
	JobID          string
	Generation     int
	PayloadVersion int
	Tenant         string
	Entity         string
	Wave           int  // 0: of the canary
	Behind         bool // another of its entity, key or job goes first
	Verdict        string
	VerdictDetail  string
	State          string
	Outcome        string // empty: not ended
	OutcomeCode    string
	OutcomeDetail  string
	EffectID       string
	Fingerprint    string // of the failure that it follows
	NewFingerprint string // of the failure that it made; empty: none told
	NextGeneration int    // of the job, which its failure made; 0: none told
	ReleasedAt     *time.Time
	OutcomeAt      *time.Time
	Late           int // final outcomes that came after the first one
}

// Now is where the replay stands: how it ended, why it is left out, or its
// state.
func (r Replay) Now() string {
	switch {
	case r.Outcome != "":
		return r.Outcome
	case r.State == "planned" && r.Verdict != "eligible":
		return r.Verdict
	}
	return r.State
}

// SameFailure reports whether it failed as the job had failed before.
func (r Replay) SameFailure() bool {
	return r.NewFingerprint != "" && r.NewFingerprint == r.Fingerprint
}

// The death of a failed replay comes through its source, before or after the
// outcome: what isn't linked to it yet is the next generation of the same job.
const (
	newFingerprint = `CASE WHEN r.outcome = 'failed' AND r.next_generation = 0 THEN coalesce((
	            SELECT x.fingerprint
	            FROM redrive.deaths x
	            WHERE x.dead_job_id = r.dead_job_id AND x.generation = r.generation + 1
	            LIMIT 1), '') ELSE r.new_fingerprint END AS new_fingerprint`
	nextGeneration = `CASE WHEN r.outcome = 'failed' AND r.next_generation = 0 THEN coalesce((
	            SELECT x.generation
	            FROM redrive.deaths x
	            WHERE x.dead_job_id = r.dead_job_id AND x.generation = r.generation + 1
	            LIMIT 1), 0) ELSE r.next_generation END AS next_generation`
)

// replayColumns are those of Replay.
const replayColumns = `r.id, r.dead_job_id, r.job_id, r.generation, r.payload_version, r.tenant, r.entity, r.wave, r.behind, r.verdict, r.verdict_detail,
	       r.state, coalesce(r.outcome, '') AS outcome, r.outcome_code, r.outcome_detail, r.effect_id, r.fingerprint,
	       ` + newFingerprint + `,
	       ` + nextGeneration + `, r.released_at, r.outcome_at,
	       (SELECT count(*) FROM redrive.late_outcomes l WHERE l.replay_id = r.id) AS late`

// ItemQuery asks for a page of a batch's replays.
type ItemQuery struct {
	Verdict string // only those with this verdict; empty: all
	State   string // only those that stand here: pending, ready, released or an outcome; empty: all
	Cursor  string // empty: the first page
	Limit   int    // 0: 50; at most MaxItems
}

// ItemPage is one page, in the order of the plan.
type ItemPage struct {
	Rows       []Replay
	Next, Prev string // cursors; empty: there is none
}

// standing are the states that an item query may name.
var standing = []string{"pending", "ready", "released"}

// Items reads a page of the replays of a batch that BatchOf returned, each by
// an index, however many there are. Errors: Invalid (state, limit, cursor).
func Items(ctx context.Context, db dlq.DB, batch int64, q ItemQuery) (ItemPage, error) {
	if q.Limit == 0 {
		q.Limit = pageSize
	}
	if q.Limit < 1 || q.Limit > MaxItems {
		return ItemPage{}, problem.At(problem.Invalid, "limit", "The limit must be between 1 and %d.", MaxItems)
	}
	place, err := readPlace(q.Cursor, itemCursor, q.Verdict+"\x00"+q.State)
	if err != nil {
		return ItemPage{}, err
	}
	args := pgx.NamedArgs{"batch": batch, "limit": q.Limit + 1, "verdict": q.Verdict}
	where, order, err := q.condition(place, args)
	if err != nil {
		return ItemPage{}, err
	}
	found, err := collect[Replay](ctx, db, "replays", `
		SELECT `+replayColumns+`
		FROM redrive.replays r
		WHERE `+where+`
		ORDER BY `+order+`
		LIMIT @limit`, args)
	if err != nil {
		return ItemPage{}, err
	}
	return q.page(place, found), nil
}

// condition is where the page begins, and its order. What is asked for is
// compared as a row with the id and ordered by, so that only the index that
// holds both will do: of an equation the planner thinks that it will meet a few
// among all replays soon.
func (q ItemQuery) condition(p place, args pgx.NamedArgs) (where, order string, err error) {
	by, also := "r.batch_id", ""
	args["by"], args["at"] = args["batch"], int64(0)
	switch {
	case q.State == "" && q.Verdict == "":
	case q.State == "":
		by, args["by"] = "r.verdict", q.Verdict
	case slices.Contains(Outcomes, q.State):
		by, args["by"] = "r.outcome", q.State
	case slices.Contains(standing, q.State):
		by, args["by"] = "r.state", q.State
		also = " AND r.state IN ('pending', 'ready', 'released')" // said aloud for the partial index
	default:
		return "", "", problem.At(problem.Invalid, "state", "A replay is pending, ready, released, or ended as succeeded, already_done, failed, skipped, unconfirmed or cancelled.")
	}
	if by != "r.batch_id" {
		also += " AND r.batch_id = @batch"
	}
	if q.State != "" && q.Verdict != "" {
		also += " AND r.verdict = @verdict"
	}
	if p.at != nil {
		args["at"] = p.at.ID
	}
	if p.backwards() {
		return "(" + by + ", r.id) < (@by, @at) AND " + by + " >= @by" + also, by + " DESC, r.id DESC", nil
	}
	return "(" + by + ", r.id) > (@by, @at) AND " + by + " <= @by" + also, by + ", r.id", nil
}

func (q ItemQuery) page(p place, found []Replay) ItemPage {
	more := len(found) > q.Limit
	if more {
		found = found[:q.Limit]
	}
	if p.backwards() {
		slices.Reverse(found)
	}
	page := ItemPage{Rows: found}
	if len(found) == 0 {
		return page
	}
	at := func(r Replay, d cursor.Direction) string {
		return cursor.Cursor{List: itemCursor, Direction: d, At: time.Unix(0, 0), ID: r.ID, Hash: p.hash}.String()
	}
	if more || p.backwards() {
		page.Next = at(found[len(found)-1], cursor.Next)
	}
	if p.at != nil && (more || !p.backwards()) {
		page.Prev = at(found[0], cursor.Prev)
	}
	return page
}

// Replays reads the first MaxItems replays of a batch that BatchOf returned.
func Replays(ctx context.Context, db dlq.DB, batch int64) ([]Replay, error) {
	page, err := Items(ctx, db, batch, ItemQuery{Limit: MaxItems})
	return page.Rows, err
}
