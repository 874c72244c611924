package bench

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

const small = 10_000

// bareList is the SQL of the first list page, nothing around it.
const bareList = `
	SELECT id, environment, job_type, error_class, error_message, category, status, entity, attempt_count, died_at
	FROM redrive.dead_jobs
	WHERE status = 'open'
	ORDER BY died_at DESC, id DESC
	LIMIT 50`

// pages measures the first list page and the detail page at two sizes.
func (b *bench) pages(ctx context.Context) error {
	cookie, err := b.signIn(ctx)
	if err != nil {
		return err
	}
	if err := b.fill(ctx, small); err != nil {
		return err
	}
	list10k, sql10k, err := b.list(ctx, cookie)
	if err != nil {
		return err
	}
	if err := b.fill(ctx, b.Rows); err != nil {
		return err
	}
	listBig, sqlBig, err := b.list(ctx, cookie)
	if err != nil {
		return err
	}
	detail, err := b.detail(ctx, cookie)
	if err != nil {
		return err
	}
	b.print("rows", float64(b.Rows))
	b.print("list_ms_10k", list10k*1000)
	b.print("list_ms_1m", listBig*1000)
	b.print("list_sql_ms_10k", sql10k*1000)
	b.print("list_sql_ms_1m", sqlBig*1000)
	b.print("list_1m_vs_10k", listBig/list10k)
	b.print("list_vs_sql", listBig/sqlBig)
	b.print("detail_ms_1m", detail*1000)
	b.print("detail_vs_list_1m", detail/listBig)
	return nil
}

// fill brings the store to n dead jobs, spread over 14 days, types and causes.
func (b *bench) fill(ctx context.Context, n int) error {
	if _, err := b.pool.Exec(ctx, `
		INSERT INTO redrive.dead_jobs
			(environment, source, job_id, job_type, key_scope, idempotency_key, entity, tenant, status, category,
			 error_class, error_message, fingerprint, attempt_count, died_at, payload_size)
		SELECT (ARRAY['production', 'production', 'production', 'staging', 'development'])[1 + i % 5], 'fill', 'fill-' || i,
		       'type_' || i % 12, 'type_' || i % 12, 'fill:' || i, 'order:' || i % 50000, 't' || i % 500,
		       (ARRAY['open', 'open', 'open', 'recovered', 'resolved', 'discarded'])[1 + i % 6],
		       (ARRAY['transient', 'throttled', 'missing_state', 'invalid_input', 'auth', 'unknown'])[1 + i % 6],
		       'Class' || i % 40, 'provider answered 503 for order ' || i % 50000, md5((i % 300)::text), 3,
		       now() - make_interval(secs => (i * 7919 % 1209600)::int), 400
		FROM generate_series((SELECT count(*) FROM redrive.dead_jobs), $1::bigint) i`, n); err != nil {
		return fmt.Errorf("fill: %w", err)
	}
	_, err := b.pool.Exec(ctx, `VACUUM ANALYZE redrive.dead_jobs`)
	return err
}

// list returns the medians of the list page and of its bare SQL, in seconds.
func (b *bench) list(ctx context.Context, cookie string) (page, bare float64, err error) {
	var pages, sqls []time.Duration
	for i := range 120 {
		p, err := timed(func() error { return b.get(ctx, http.DefaultClient, "/jobs?status=open", cookie) })
		if err != nil {
			return 0, 0, err
		}
		s, err := timed(func() error {
			rows, err := b.pool.Query(ctx, bareList)
			if err != nil {
				return err
			}
			for rows.Next() {
				if _, err := rows.Values(); err != nil {
					return err
				}
			}
			return rows.Err()
		})
		if err != nil {
			return 0, 0, err
		}
		if i >= 20 {
			pages, sqls = append(pages, p), append(sqls, s)
		}
	}
	return median(pages), median(sqls), nil
}

// detail measures the page of a captured job.
func (b *bench) detail(ctx context.Context, cookie string) (float64, error) {
	var id int64
	if err := b.pool.QueryRow(ctx, `SELECT max(dead_job_id) FROM redrive.attempts`).Scan(&id); err != nil {
		return 0, err
	}
	var d []time.Duration
	for i := range 120 {
		t, err := timed(func() error { return b.get(ctx, http.DefaultClient, fmt.Sprintf("/jobs/%d", id), cookie) })
		if err != nil {
			return 0, err
		}
		if i >= 20 {
			d = append(d, t)
		}
	}
	return median(d), nil
}
