package dlq

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq/filter"
	"github.com/redrive-dlq/redrive/rbac"
)

type overviewReader struct {
	p     *rbac.Principal
	q     OverviewQuery
	where string // scope and environment, on alias d
	args  pgx.NamedArgs
	batch *pgx.Batch
	o     *Overview
}

// one queues a statement of one row; no row leaves the targets as they are.
func (r *overviewReader) one(sql string, to ...any) {
	r.batch.Queue(sql, r.args).QueryRow(func(row pgx.Row) error {
		if err := row.Scan(to...); !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		return nil
	})
}

func (r *overviewReader) queueOpen() {
	r.one(`
		SELECT greatest(coalesce(sum(d.n) FILTER (WHERE d.status = 'open'), 0), 0)::bigint
		FROM redrive.type_counts d
		WHERE `+r.where, &r.o.Open)
	r.one(`SELECT NOT EXISTS (SELECT FROM redrive.dead_jobs)`, &r.o.Empty)
	r.one(`
		SELECT count(*)
		FROM (SELECT
		      FROM redrive.dead_jobs d
		      WHERE d.effect = 'unknown' AND d.status = 'open' AND `+r.where+`
		      LIMIT @cap) c`, &r.o.EffectUnknown)
	r.one(`
		SELECT count(*)
		FROM (SELECT
		      FROM redrive.dead_jobs d
		      WHERE d.died_at > @now::timestamptz - interval '1 hour' AND d.died_at <= @now AND `+r.where+`
		      LIMIT @cap) c`, &r.o.DiedLastHour)
	r.batch.Queue(`
		SELECT d.id, d.died_at
		FROM redrive.dead_jobs d
		WHERE d.status = 'open' AND `+r.where+`
		ORDER BY d.died_at, d.id
		LIMIT 1`, r.args).QueryRow(func(row pgx.Row) error {
		var oldest OverviewOldest
		err := row.Scan(&oldest.ID, &oldest.DiedAt)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		r.o.Oldest = &oldest
		return err
	})
}

// queueDeaths fills the chart: an hour without a death is a zero, not a gap.
func (r *overviewReader) queueDeaths() {
	last := r.q.Now.UTC().Truncate(time.Hour)
	hours := OverviewDays * 24
	r.o.ChartStart = last.Add(-time.Duration(hours-1) * time.Hour)
	for _, c := range filter.Categories {
		r.o.Deaths[c] = make([]int64, hours)
	}
	r.args["chart_start"], r.args["chart_end"] = r.o.ChartStart, last.Add(time.Hour)
	r.batch.Queue(`
		SELECT d.hour, d.category, sum(d.n)::bigint
		FROM redrive.deaths_per_hour d
		WHERE d.hour >= @chart_start AND d.hour < @chart_end AND `+r.where+`
		GROUP BY d.hour, d.category`, r.args).Query(func(rows pgx.Rows) error {
		var hour time.Time
		var category string
		var n, before int64
		_, err := pgx.ForEachRow(rows, []any{&hour, &category, &n}, func() error {
			i := int(hour.Sub(r.o.ChartStart) / time.Hour)
			if counts, ok := r.o.Deaths[category]; ok && i >= 0 && i < hours {
				counts[i] += n
				if i < hours-1 {
					before += n
				}
			}
			return nil
		})
		r.o.UsualPerHour = float64(before) / float64(hours-1)
		return err
	})
}

// queueSources finds sources that failed last, and polled ones that are silent.
func (r *overviewReader) queueSources() {
	args := pgx.NamedArgs{"environment": r.q.Environment, "silent": r.q.Now.Add(-overviewSilent)}
	r.batch.Queue(`
		SELECT environment, name, kind, last_seen_at, last_error, last_error_at
		FROM redrive.sources
		WHERE (@environment = '' OR environment = @environment)
		  AND (last_error <> '' OR (kind = 'river' AND coalesce(last_seen_at < @silent, true)))
		ORDER BY environment, name
		LIMIT 100`, args).Query(func(rows pgx.Rows) error {
		found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[OverviewSource])
		for _, s := range found {
			if r.p.Can(rbac.Read, s.Environment, "") {
				r.o.Unhealthy = append(r.o.Unhealthy, s)
			}
		}
		return err
	})
}

// readTypes reads the types with the most open jobs and their last two weeks.
func (r *overviewReader) readTypes(ctx context.Context, db DB) error {
	rows, err := db.Query(ctx, `
		SELECT t.job_type, t.open, coalesce(o.died_at, @now) AS oldest, NULL::bigint[] AS daily
		FROM (SELECT d.job_type, sum(d.n)::bigint AS open
		      FROM redrive.type_counts d
		      WHERE d.status = 'open' AND `+r.where+`
		      GROUP BY d.job_type
		      HAVING sum(d.n) > 0
		      ORDER BY open DESC, d.job_type
		      LIMIT @types) t
		LEFT JOIN LATERAL (
			SELECT d.died_at
			FROM redrive.dead_jobs d
			WHERE d.job_type = t.job_type AND d.status = 'open' AND `+r.where+`
			ORDER BY d.died_at, d.id
			LIMIT 1) o ON true
		ORDER BY t.open DESC, t.job_type`, r.args)
	if err != nil {
		return fmt.Errorf("dlq: overview: %w", err)
	}
	if r.o.Types, err = pgx.CollectRows(rows, pgx.RowToStructByName[OverviewType]); err != nil {
		return fmt.Errorf("dlq: overview: %w", err)
	}
	byName := map[string]*OverviewType{}
	names := make([]string, len(r.o.Types))
	for i := range r.o.Types {
		t := &r.o.Types[i]
		t.Daily = make([]int64, OverviewDays)
		byName[t.JobType], names[i] = t, t.JobType
	}
	first := r.q.Now.UTC().Truncate(24*time.Hour).AddDate(0, 0, 1-OverviewDays)
	r.args["names"], r.args["first_day"] = names, first
	rows, err = db.Query(ctx, `
		SELECT d.job_type, date_trunc('day', d.hour, 'UTC') AS day, sum(d.n)::bigint
		FROM redrive.deaths_per_hour d
		WHERE d.hour >= @first_day AND d.hour < @chart_end AND d.job_type = ANY(@names) AND `+r.where+`
		GROUP BY d.job_type, day`, r.args)
	if err != nil {
		return fmt.Errorf("dlq: overview: %w", err)
	}
	var name string
	var day time.Time
	var n int64
	_, err = pgx.ForEachRow(rows, []any{&name, &day, &n}, func() error {
		if i := int(day.Sub(first) / (24 * time.Hour)); i >= 0 && i < OverviewDays && byName[name] != nil {
			byName[name].Daily[i] += n
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("dlq: overview: %w", err)
	}
	return nil
}
