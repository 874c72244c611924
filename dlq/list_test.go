package dlq

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"github.com/redrive-dlq/redrive/dlq/cursor"
	"github.com/redrive-dlq/redrive/dlq/filter"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/migrations/testdb"
	"github.com/redrive-dlq/redrive/rbac"
)

// reader may read everything; staging only staging's jobs of one type.
var (
	reader   = person(rbac.Grant{Role: rbac.Viewer})
	operator = person(rbac.Grant{Role: rbac.Operator})
)

func person(grants ...rbac.Grant) *rbac.Principal {
	return &rbac.Principal{UserID: 7, Email: "op@example.test", Grants: grants, IP: "127.0.0.1", RequestID: "req-1"}
}

// fillJobs writes n jobs with every combination of the fields that lists use;
// times repeat, so that only the id tells some apart.
func fillJobs(t testing.TB, pool *pgxpool.Pool, n int) {
	t.Helper()
	_, err := pool.Exec(t.Context(), `
		INSERT INTO redrive.dead_jobs (environment, source, job_id, job_type, tenant, entity, key_scope, idempotency_key, status,
			category, error_class, fingerprint, died_at)
		SELECT (ARRAY['production', 'production', 'staging', 'development'])[1 + i % 4],
		       'source-' || i % 7, 'job-' || i, 'type-' || i % 11,
		       CASE WHEN i % 3 = 0 THEN '' ELSE 'tenant-' || i % 500 END,
		       CASE WHEN i % 2 = 0 THEN '' ELSE 'order:' || i % 900 END,
		       'scope', CASE WHEN i % 5 = 0 THEN '' ELSE 'key-' || i / 2 END,
		       (ARRAY['open', 'open', 'open', 'snoozed', 'replaying', 'recovered', 'resolved', 'discarded'])[1 + (i / 3) % 8],
		       (ARRAY['transient', 'throttled', 'missing_state', 'invalid_input', 'auth', 'unknown'])[1 + (i / 5) % 6],
		       'Class' || i % 17, 'fp-' || i % 101,
		       timestamptz '2026-03-01 00:00:00+00' + (i / 3) * interval '17 seconds'
		FROM generate_series(1, $1) AS i`, n)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), `ANALYZE redrive.dead_jobs`); err != nil {
		t.Fatal(err)
	}
}

// allRows reads every job as a list row, newest first, in one plain query.
func allRows(t testing.TB, pool *pgxpool.Pool) []ListRow {
	t.Helper()
	rows, err := pool.Query(t.Context(), `
		SELECT id, environment, source, job_id, job_type, tenant, entity, idempotency_key, status, category, error_class, fingerprint, died_at
		FROM redrive.dead_jobs
		ORDER BY died_at DESC, id DESC`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var all []ListRow
	for rows.Next() {
		var r ListRow
		if err := rows.Scan(&r.ID, &r.Environment, &r.Source, &r.JobID, &r.JobType, &r.Tenant, &r.Entity, &r.IdempotencyKey,
			&r.Status, &r.Category, &r.ErrorClass, &r.Fingerprint, &r.DiedAt); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// matches is the filter's meaning, written a second time.
func matches(f filter.Filter, r ListRow, now time.Time) bool {
	for _, c := range []struct {
		value   string
		is, not []string
	}{
		{r.Status, f.Status, f.Not.Status}, {r.JobType, f.Types, f.Not.Types}, {r.ErrorClass, f.Classes, f.Not.Classes},
		{r.Category, f.Categories, f.Not.Categories}, {r.Environment, f.Environments, f.Not.Environments},
		{r.JobID, f.JobIDs, f.Not.JobIDs}, {r.IdempotencyKey, f.Keys, f.Not.Keys}, {r.Fingerprint, f.Fingerprints, f.Not.Fingerprints},
		{r.Tenant, f.Tenants, f.Not.Tenants}, {r.Entity, f.Entities, f.Not.Entities}, {r.Source, f.Sources, f.Not.Sources},
	} {
		if len(c.is) > 0 && !slices.Contains(c.is, c.value) || slices.Contains(c.not, c.value) {
			return false
		}
	}
	return (f.From.IsZero() || !r.DiedAt.Before(f.From)) && (f.To.IsZero() || r.DiedAt.Before(f.To)) &&
		(f.Newer == 0 || r.DiedAt.After(now.Add(-f.Newer))) && (f.Older == 0 || !r.DiedAt.After(now.Add(-f.Older)))
}

func some(t *rapid.T, label string, values ...string) []string {
	if rapid.IntRange(0, 3).Draw(t, label+"?") > 0 {
		return nil
	}
	return rapid.SliceOfN(rapid.SampledFrom(values), 1, 2).Draw(t, label)
}

func drawListFilter(t *rapid.T, all []ListRow, now time.Time) filter.Filter {
	r := rapid.SampledFrom(all).Draw(t, "row")
	s := rapid.SampledFrom(all).Draw(t, "other")
	f := filter.Filter{
		Status: some(t, "status", filter.Statuses...), Types: some(t, "type", r.JobType, s.JobType),
		Categories: some(t, "category", filter.Categories...), Environments: some(t, "env", "production", "staging"),
		Classes: some(t, "class", r.ErrorClass), Fingerprints: some(t, "group", r.Fingerprint, s.Fingerprint),
		Sources: some(t, "source", r.Source, s.Source),
		Not:     filter.Not{Status: some(t, "not status", filter.Statuses...), Types: some(t, "not type", s.JobType), Tenants: some(t, "not tenant", s.Tenant)},
	}
	switch rapid.IntRange(0, 9).Draw(t, "sharp") {
	case 0:
		f.JobIDs = []string{r.JobID, s.JobID}
	case 1:
		if r.IdempotencyKey != "" {
			f.Keys = []string{r.IdempotencyKey}
		}
	case 2:
		if r.Entity != "" {
			f.Entities = []string{r.Entity}
		}
	case 3:
		if r.Tenant != "" {
			f.Tenants = []string{r.Tenant}
		}
	case 4:
		f.From, f.To = s.DiedAt, r.DiedAt
	case 5:
		f.Newer, f.Older = now.Sub(s.DiedAt), now.Sub(r.DiedAt)
	}
	return f
}

func TestListPagesThroughWhatMatches(t *testing.T) {
	t.Parallel()
	pool := testdb.New(t)
	fillJobs(t, pool, 300)
	all := allRows(t, pool)
	now := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	limited := person(rbac.Grant{Role: rbac.Viewer, Environment: "staging"}, rbac.Grant{Role: rbac.Operator, Environment: "production", JobType: "type-3"},
		rbac.Grant{Role: rbac.Admin, Environment: "development", JobType: "type-1"})
	rapid.Check(t, func(rt *rapid.T) {
		f := drawListFilter(rt, all, now)
		p := rapid.SampledFrom([]*rbac.Principal{reader, limited}).Draw(rt, "who")
		var want []int64
		for _, r := range all {
			if matches(f, r, now) && p.Can(rbac.Read, r.Environment, r.JobType) {
				want = append(want, r.ID)
			}
		}
		limit := rapid.IntRange(max(1, len(want)/4), ListMaxLimit).Draw(rt, "limit")
		var got []int64
		var pages []ListPage
		q := ListQuery{Filter: f, Limit: limit, Now: now}
		for {
			page, err := List(t.Context(), pool, p, q)
			if err != nil {
				rt.Fatalf("%s: %v", f, err)
			}
			for _, r := range page.Rows {
				got = append(got, r.ID)
			}
			if page.Total.N != int64(len(want)) || page.Total.More {
				rt.Fatalf("%s: total %+v, want %d", f, page.Total, len(want))
			}
			if (page.Prev == "") != (len(pages) == 0) {
				rt.Fatalf("%s: page %d has the previous cursor %q", f, len(pages), page.Prev)
			}
			pages = append(pages, page)
			if q.Cursor = page.Next; page.Next == "" {
				break
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Fatalf("%s (-want +got):\n%s", f, diff)
		}
		// And back again.
		for i := len(pages) - 1; i > 0; i-- {
			q.Cursor, q.SkipTotal = pages[i].Prev, true
			page, err := List(t.Context(), pool, p, q)
			if err != nil {
				rt.Fatal(err)
			}
			if diff := cmp.Diff(pages[i-1].Rows, page.Rows); diff != "" {
				rt.Fatalf("%s: back to page %d (-want +got):\n%s", f, i-1, diff)
			}
			if page.Next == "" || (page.Prev == "") != (i == 1) {
				rt.Fatalf("%s: back on page %d: next %q, prev %q", f, i-1, page.Next, page.Prev)
			}
		}
	})
}

func TestListRefuses(t *testing.T) {
	t.Parallel()
	pool := testdb.New(t)
	other := cursor.Cursor{List: listCursor, Direction: cursor.Next, At: time.Unix(1, 0), ID: 1, Hash: filter.Filter{Types: []string{"x"}}.Hash()}
	for name, q := range map[string]ListQuery{
		"limit too great":            {Limit: ListMaxLimit + 1},
		"limit negative":             {Limit: -1},
		"broken cursor":              {Cursor: "x"},
		"cursor of another filter":   {Cursor: other.String()},
		"cursor of the empty filter": {Filter: filter.Filter{Types: []string{"y"}}, Cursor: other.String()},
	} {
		if _, err := List(t.Context(), pool, reader, q); !problem.Is(err, problem.Invalid) {
			t.Errorf("%s: %v, want Invalid", name, err)
		}
	}
	if _, err := List(t.Context(), pool, person(), ListQuery{}); !problem.Is(err, problem.Forbidden) {
		t.Errorf("no role: %v, want Forbidden", err)
	}
	ingest := person(rbac.Grant{Role: rbac.Admin})
	ingest.CaptureOnly = true
	if _, err := List(t.Context(), pool, ingest, ListQuery{}); !problem.Is(err, problem.Forbidden) {
		t.Errorf("a token that may only capture: %v, want Forbidden", err)
	}
	if _, err := List(t.Context(), pool, nil, ListQuery{}); !problem.Is(err, problem.Unauthorized) {
		t.Errorf("nobody: %v, want Unauthorized", err)
	}
}

// TestListReadsFewRows holds for the first page of each single field, however
// rare or common its value is: what a page costs doesn't grow with the store.
func TestListReadsFewRows(t *testing.T) {
	t.Parallel()
	pool := testdb.New(t)
	fillJobs(t, pool, 50_000)
	// The worst case for the list's own order: what is rare is also oldest.
	_, err := pool.Exec(t.Context(), `
		UPDATE redrive.dead_jobs
		SET environment = 'rare', source = 'rare', job_type = 'rare', category = 'auth', error_class = 'Rare', fingerprint = 'rare',
		    tenant = 'rare', entity = 'rare', status = 'snoozed'
		WHERE id <= 60`)
	if err == nil {
		_, err = pool.Exec(t.Context(), `UPDATE redrive.dead_jobs SET category = 'unknown', status = 'open' WHERE id > 60 AND (category = 'auth' OR status = 'snoozed')`)
	}
	if err == nil {
		_, err = pool.Exec(t.Context(), `VACUUM ANALYZE redrive.dead_jobs`)
	}
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 3, 12, 0, 0, 0, 0, time.UTC)
	for _, q := range []string{
		"", "status:open", "status:snoozed", "-status:open", "-status:recovered", "status:open,snoozed",
		"type:type-3", "type:rare", "type:rare,type-3", "class:Class3", "class:Rare", "category:transient", "category:auth",
		"env:production", "env:rare", "env:rare,staging", "source:source-3", "source:rare", "tenant:tenant-40", "tenant:rare",
		"entity:order:41", "entity:rare", "key:key-77", "key:none", "job:job-4711", "job:none", "group:fp-9", "group:rare", "type:none", "env:none",
		"older:2026-03-01T00:02:00Z", "newer:2026-03-04", "older:6d newer:9d",
	} {
		f, err := filter.Parse(q)
		if err != nil {
			t.Fatal(err)
		}
		for who, p := range map[string]*rbac.Principal{"everywhere": reader, "rare only": person(rbac.Grant{Role: rbac.Viewer, Environment: "rare"})} {
			if who == "rare only" && q != "" && !strings.HasPrefix(q, "status") {
				continue
			}
			scope, scopeArgs, err := ListScope(p, rbac.Read, "d")
			if err != nil {
				t.Fatal(err)
			}
			sql, args := listSQL(ListQuery{Filter: f, Limit: ListDefaultLimit, Now: now}, p, nil, scope, scopeArgs)
			var plan []byte
			if err := pool.QueryRow(t.Context(), "EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) "+sql, args).Scan(&plan); err != nil {
				t.Fatalf("%q: %v", q, err)
			}
			if n := rowsRead(t, plan); n > 2000 {
				t.Errorf("%q (%s) reads %d rows, more than 2,000:\n%s", q, who, n, plan)
			}
		}
	}
}

// rowsRead adds up what the scans of dead_jobs returned and threw away.
func rowsRead(t *testing.T, plan []byte) int {
	type node struct {
		Relation string  `json:"Relation Name"`
		Kind     string  `json:"Node Type"`
		Rows     float64 `json:"Actual Rows"`
		Loops    float64 `json:"Actual Loops"`
		Filtered float64 `json:"Rows Removed by Filter"`
		Lossy    float64 `json:"Rows Removed by Index Recheck"`
		Plans    []node
	}
	var top []struct{ Plan node }
	if err := json.Unmarshal(plan, &top); err != nil || len(top) != 1 {
		t.Fatalf("plan %s: %v", plan, err)
	}
	var sum func(n node) float64
	sum = func(n node) (rows float64) {
		if n.Relation == "dead_jobs" || n.Kind == "Bitmap Index Scan" {
			rows = (n.Rows + n.Filtered + n.Lossy) * n.Loops
		}
		for _, child := range n.Plans {
			rows += sum(child)
		}
		return rows
	}
	return int(sum(top[0].Plan))
}

func TestListCountsUpToItsCap(t *testing.T) {
	t.Parallel()
	pool := testdb.New(t)
	fillJobs(t, pool, ListCountCap+500)
	for q, more := range map[string]bool{
		"": false, "-class:none": true, "class:Class3": false, "status:open,replaying -type:none": false,
	} {
		f, err := filter.Parse(q)
		if err != nil {
			t.Fatal(err)
		}
		page, err := List(t.Context(), pool, reader, ListQuery{Filter: f, Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		n, err := ListCount(t.Context(), pool, reader, ListQuery{Filter: f})
		if err != nil {
			t.Fatal(err)
		}
		want := ListTotal{N: n}
		if more {
			want = ListTotal{N: ListCountCap, More: true}
		}
		if n == 0 || page.Total != want {
			t.Errorf("%q: total %+v, want %+v; counting says %d", q, page.Total, want, n)
		}
	}
}
