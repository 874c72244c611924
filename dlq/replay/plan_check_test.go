package replay_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/redrive-dlq/redrive/dlq/replay"
)

// TestChecksJudgeEachJob runs a declared check over good and bad payloads.
func TestChecksJudgeEachJob(t *testing.T) {
	t.Parallel()
	b, _ := plans(t)
	want := map[int64]string{}
	for payload, verdict := range map[string]string{
		`{"user_id": 1}`:                    replay.Eligible,
		`{"user_id": "2"}`:                  replay.Eligible,
		`{"user_id": 9007199254740993}`:     replay.Eligible, // exact: no float holds it
		`{"user_id": 9007199254740992}`:     replay.DependencyMissing,
		`{"user_id": 3}`:                    replay.DependencyMissing,
		`{"user_id": null}`:                 replay.DependencyMissing,
		`{"user_id": "1) or true --"}`:      replay.DependencyUnchecked, // no number: a parameter, never SQL
		`{"user_id": 99999999999999999999}`: replay.DependencyUnchecked,
		`{"other": 1}`:                      replay.SchemaViolation,
	} {
		id := b.with(t, b.job(t, jobOpts{id: payload, jobType: "checked"}), payload)
		want[id] = verdict
	}
	batch := b.planned(t, types("checked"))
	for job, verdict := range want {
		if got := b.verdict(t, batch, job); got != verdict {
			t.Errorf("job %d: %s, want %s", job, got, verdict)
		}
		if v, err := b.svc.Judge(t.Context(), b.oncall, job); err != nil || v.Code != verdict {
			t.Errorf("job %d by itself: %s, %v, want %s", job, v.Code, err, verdict)
		}
	}
}

// TestChecksCanOnlyRead declares checks that write, ask as a superuser or take
// too long: none does harm, and their jobs wait unchecked.
func TestChecksCanOnlyRead(t *testing.T) {
	t.Parallel()
	b, app := plans(t)
	job := b.with(t, b.job(t, jobOpts{id: "1", jobType: "checked"}), `{"user_id": 1}`)
	for sql, verdict := range map[string]string{
		`select 1 where touch() > 0 and $1::text is not null`:                       replay.DependencyUnchecked,
		`delete from customers where id = $1 returning id`:                          replay.DependencyUnchecked,
		`select 1 from no_such_table where id = $1`:                                 replay.DependencyUnchecked,
		`select 1 from pg_sleep(10) where $1::text is not null`:                     replay.DependencyUnchecked,
		`select 1 where pg_read_file('PG_VERSION') <> $1::text`:                     replay.DependencyUnchecked,
		`select 1 where current_user = 'pg_read_all_data' and $1::text is not null`: replay.Eligible,
	} {
		b.checks(t, sql)
		began := time.Now()
		if v, err := b.svc.Judge(t.Context(), b.oncall, job); err != nil || v.Code != verdict {
			t.Errorf("%s: %s, %v, want %s", sql, v.Code, err, verdict)
		}
		if took := time.Since(began); took > 6*time.Second {
			t.Errorf("%s took %s", sql, took)
		}
	}
	var customers, touched int
	err := app.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM customers), (SELECT count(*) FROM touched)`).Scan(&customers, &touched)
	if err != nil || customers != 3 || touched != 0 {
		t.Errorf("%d customers, %d touched (%v) after checks, want 3 and 0", customers, touched, err)
	}
	b.svc.CheckDB = func(string) *pgxpool.Pool { return nil }
	if v, err := b.svc.Judge(t.Context(), b.oncall, job); err != nil || v.Code != replay.DependencyUnchecked || v.Lift != replay.LiftConfigure {
		t.Errorf("without a database: %s %s, %v", v.Code, v.Lift, err)
	}
}

// TestSlowChecksLeaveTheirPart: checks that take their time, each below the limit
// of one, don't keep a part of the plan for longer than all may take together.
// What was asked by then has its answer.
func TestSlowChecksLeaveTheirPart(t *testing.T) {
	t.Parallel()
	b, _ := plans(t)
	b.checks(t, `select 1 from pg_sleep(0.1) where $1::text is not null`)
	for i := range 250 {
		b.with(t, b.job(t, jobOpts{id: fmt.Sprint(i), jobType: "checked", key: fmt.Sprint("k", i)}), `{"user_id": 1}`)
	}
	began := time.Now()
	batch := b.planned(t, types("checked"))
	if took := time.Since(began); took > 21*time.Second {
		t.Errorf("planning took %s", took)
	}
	asked := b.count(t, `SELECT count(*) FROM redrive.replays WHERE batch_id = $1 AND verdict = 'eligible'`, batch)
	rest := b.count(t, `SELECT count(*) FROM redrive.replays WHERE batch_id = $1 AND verdict = 'dependency_unchecked'`, batch)
	if asked+rest != 250 || asked == 0 || rest == 0 {
		t.Errorf("%d asked, %d left unchecked, of 250", asked, rest)
	}
}

// TestChecksLeaveNoTrace: what a check sets for its session ends with it, so that
// none speaks to the next.
func TestChecksLeaveNoTrace(t *testing.T) {
	t.Parallel()
	b, app := plans(t)
	job := b.with(t, b.job(t, jobOpts{id: "1", jobType: "checked"}), `{"user_id": 1}`)
	b.checks(t, `select 1 where set_config('statement_timeout', '0', false) is not null and set_config('a.b', 'kept', false) = 'kept' and $1::text is not null`)
	if v, err := b.svc.Judge(t.Context(), b.oncall, job); err != nil || v.Code != replay.Eligible {
		t.Fatalf("%s, %v", v.Code, err)
	}
	for range app.Stat().TotalConns() + 1 {
		var kept string
		if err := app.QueryRow(t.Context(), `SELECT coalesce(current_setting('a.b', true), '')`).Scan(&kept); err != nil || kept != "" {
			t.Fatalf("a session still says %q, %v", kept, err)
		}
	}
}

// TestOldAndOvertaken: age is lifted by a check that passes or by a person with
// a reason; a newer change that ran is lifted by nothing.
func TestOldAndOvertaken(t *testing.T) {
	t.Parallel()
	b, _ := plans(t)
	const day = 24 * time.Hour
	old := b.died(t, b.job(t, jobOpts{id: "old", jobType: "short_lived"}), 4*day)
	young := b.died(t, b.job(t, jobOpts{id: "young", jobType: "short_lived"}), 2*day)
	overtaken := b.died(t, b.job(t, jobOpts{id: "overtaken", jobType: "short_lived", entity: "order:1"}), 2*day)
	b.exec(t, `UPDATE redrive.dead_jobs SET status = 'recovered' WHERE id = $1`,
		b.died(t, b.job(t, jobOpts{id: "newer", jobType: "short_lived", entity: "order:1"}), day))
	checked := b.with(t, b.died(t, b.job(t, jobOpts{id: "checked", jobType: "checked"}), 4*day), `{"user_id": 1}`)
	batch := b.planned(t, types("short_lived"))
	expect := func(want map[int64]string) {
		t.Helper()
		for job, verdict := range want {
			if got := b.verdict(t, batch, job); got != verdict {
				t.Errorf("job %d: %s, want %s", job, got, verdict)
			}
		}
	}
	expect(map[int64]string{old: replay.TooOld, young: replay.Eligible, overtaken: replay.Superseded})
	if got := b.verdict(t, b.planned(t, types("checked")), checked); got != replay.Eligible {
		t.Errorf("old, but its check passed: %s", got)
	}
	if err := b.svc.AllowOld(t.Context(), b.oncall, batch, ""); err == nil {
		t.Error("old jobs were taken along without a reason")
	}
	if err := b.svc.AllowOld(t.Context(), b.oncall, batch, "they are still wanted"); err != nil {
		t.Fatal(err)
	}
	b.freeze(t, batch)
	expect(map[int64]string{old: replay.Eligible, young: replay.Eligible, overtaken: replay.Superseded})
	if n := b.count(t, `SELECT count(*) FROM redrive.audit_entries WHERE batch_id = $1 AND action = 'batch.allow_old'`, batch); n != 1 {
		t.Errorf("%d entries of taking old jobs along", n)
	}
}

// TestDryRunTouchesNothing plans and judges with everything that could reach
// out, and compares each table of both databases before and after.
func TestDryRunTouchesNothing(t *testing.T) {
	t.Parallel()
	b, app := plans(t)
	var ids []int64
	for i := range 5 {
		ids = append(ids, b.with(t, b.job(t, jobOpts{id: fmt.Sprint(i), jobType: "checked", key: fmt.Sprint("k", i%2)}), fmt.Sprintf(`{"user_id": %d}`, i)))
	}
	ours := map[string]bool{"redrive.batches": true, "redrive.replays": true, "redrive.batch_deltas": true, "redrive.audit_entries": true}
	sums := func(pool *pgxpool.Pool) map[string]string {
		t.Helper()
		rows, err := pool.Query(t.Context(), `
			SELECT format('%I.%I', n.nspname, c.relname)
			FROM pg_class c
			JOIN pg_namespace n ON n.oid = c.relnamespace
			WHERE c.relkind = 'r' AND n.nspname NOT IN ('pg_catalog', 'information_schema')`)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		of := map[string]string{}
		for rows.Next() {
			var name, sum string
			if err := rows.Scan(&name); err != nil {
				t.Fatal(err)
			}
			err := pool.QueryRow(t.Context(), `SELECT coalesce(md5(string_agg(x::text, '|' ORDER BY x::text)), '') FROM `+name+` x`).Scan(&sum)
			if err != nil {
				t.Fatal(err)
			}
			of[name] = sum
		}
		return of
	}
	store, outside := sums(b.pool), sums(app)
	b.planned(t, types("checked"))
	for _, id := range ids {
		if _, err := b.svc.Judge(t.Context(), b.oncall, id); err != nil {
			t.Fatal(err)
		}
	}
	for name, sum := range sums(b.pool) {
		if sum != store[name] && !ours[name] {
			t.Errorf("%s changed", name)
		}
	}
	for name, sum := range sums(app) {
		if sum != outside[name] {
			t.Errorf("the application's %s changed", name)
		}
	}
	if len(outside) < 2 || len(store) < 20 {
		t.Errorf("only %d and %d tables were compared", len(outside), len(store))
	}
	if len(b.target.left) != 0 {
		t.Errorf("%d replays left", len(b.target.left))
	}
}
