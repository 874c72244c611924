package dlq

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/rbac"
)

// What the overview looks back on and how much of it.
const (
	OverviewDays   = 14
	overviewTypes  = 20
	overviewLast   = 10
	overviewWay    = 8
	overviewRuns   = 50     // batches that waiting replays are looked for in, first due first
	overviewCap    = 10_000 // where counting rows stops
	overviewSilent = 5 * time.Minute
)

// OverviewQuery asks for one environment or, when it is empty, for all that
// the principal may read.
type OverviewQuery struct {
	Environment string
	Now         time.Time // zero: time.Now
}

// Overview answers whether something is burning. Everything in it comes from
// counters or from reads that an index and a cap bound.
type Overview struct {
	Open          int64
	EffectUnknown int64 // open jobs whose effect nobody knows; counted up to 10,000
	DiedLastHour  int64 // jobs whose latest death it was; counted up to 10,000
	UsualPerHour  float64
	Oldest        *OverviewOldest // nil: nothing is open
	InFlight      int64           // replays that left and have not ended
	Succeeded     int64           // of Ended, already done included
	Ended         int64           // replays that ended in the last 24 hours, skipped and cancelled left out; up to 10,000 a destination
	ChartStart    time.Time       // the first hour of Deaths
	// Deaths holds, for each category, one count an hour from ChartStart on;
	// the last one is the hour that has begun.
	Deaths  map[string][]int64
	Types   []OverviewType   // with open jobs, most first, at most 20
	Replays []OverviewReplay // that ended, last first, at most 10
	// UnderWay are replays that have not ended: those that left, latest first,
	// then those that wait, first due first; at most 8.
	UnderWay  []OverviewReplay
	Waiting   int64 // replays ordered that have not left
	Unhealthy []OverviewSource
	Empty     bool // no dead job was ever captured
}

// OverviewOldest is the open job that died first.
type OverviewOldest struct {
	ID     int64
	DiedAt time.Time
}

// OverviewType is one job type with open jobs.
type OverviewType struct {
	JobType string
	Open    int64
	Oldest  time.Time
	Daily   []int64 // deaths a day (UTC), oldest first, today last
}

// OverviewReplay is a replay that ended, left or waits.
type OverviewReplay struct {
	ID          int64
	DeadJobID   int64
	Environment string
	JobType     string
	JobID       string
	State       string // pending, ready, released, or how it ended
	By          string
	At          time.Time // when it ended or left, or is due
}

// OverviewSource is a source that needs a look.
type OverviewSource struct {
	Environment string
	Name        string
	Kind        string
	LastSeenAt  *time.Time
	LastError   string // redacted; empty: it is only silent
	LastErrorAt *time.Time
}

// ReadOverview reads the overview. Errors: Forbidden for one who may read nothing.
func ReadOverview(ctx context.Context, db OverviewDB, p *rbac.Principal, q OverviewQuery) (*Overview, error) {
	if q.Now.IsZero() {
		q.Now = time.Now()
	}
	r := overviewReader{p: p, q: q, batch: &pgx.Batch{}, o: &Overview{Deaths: map[string][]int64{}}}
	where, args, err := ListScope(p, rbac.Read, "d")
	if err != nil {
		return nil, err
	}
	r.args = pgx.NamedArgs{"now": q.Now, "cap": overviewCap, "types": overviewTypes, "last": overviewLast, "way": overviewWay, "batches": overviewRuns}
	maps.Copy(r.args, args)
	r.where = where
	if q.Environment != "" {
		r.where += " AND d.environment = @environment"
		r.args["environment"] = q.Environment
	}
	r.queueOpen()
	r.queueDeaths()
	r.queueReplays()
	r.queueUnderWay()
	r.queueSources()
	if err := db.SendBatch(ctx, r.batch).Close(); err != nil {
		return nil, fmt.Errorf("dlq: overview: %w", err)
	}
	if err := r.readTypes(ctx, db); err != nil {
		return nil, err
	}
	return r.o, nil
}

// OverviewDB is what the overview reads from: a pool or a transaction.
type OverviewDB interface {
	DB
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}
