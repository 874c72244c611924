package jobtype_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/migrations/testdb"
)

const keptYAML = `
sources: [{name: app, environment: production, schema: app}]
types:
  a:
    side_effects: [{kind: none}]
    idempotency: {by: key}
    rate: {per_minute: 120}
    targets: {production: {river: {client: app}}}
`

// file is a catalogue file that can be changed, as on a disk.
type file struct {
	mu   sync.Mutex
	yaml string
}

func (f *file) write(yaml string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.yaml = yaml
}

func (f *file) load() (*jobtype.Catalogue, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return jobtype.Load(fstest.MapFS{"types.yaml": {Data: []byte(f.yaml)}}, "types.yaml")
}

func keep(t *testing.T, pool *pgxpool.Pool, f *file, log *slog.Logger) *jobtype.Keeper {
	t.Helper()
	k, err := jobtype.NewKeeper(t.Context(), pool, f.load, "start on h1", log)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func rate(t *testing.T, k *jobtype.Keeper) int {
	t.Helper()
	typ, ok := k.Catalogue().Type("a")
	if !ok {
		t.Fatal("type a is gone")
	}
	return typ.Limit().PerMinute
}

func count(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) (n int) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestKeeperStoresVersionsOnce(t *testing.T) {
	t.Parallel()
	pool := testdb.New(t)
	log := slog.New(slog.DiscardHandler)
	f := &file{yaml: keptYAML}
	first := keep(t, pool, f, log)
	again := keep(t, pool, f, log)
	if first.Version().ID == 0 || again.Version().ID != first.Version().ID {
		t.Fatalf("versions %d and %d of one file", first.Version().ID, again.Version().ID)
	}
	f.write(strings.Replace(keptYAML, "120", "60", 1))
	if err := first.Reload(t.Context(), "SIGHUP on h1"); err != nil {
		t.Fatal(err)
	}
	if err := first.Reload(t.Context(), "SIGHUP on h1"); err != nil {
		t.Fatal(err)
	}
	v := first.Version()
	want := []jobtype.Change{{Type: "a", What: "changed", Lines: []string{"rate.per_minute: 120 → 60"}}}
	if diff := cmp.Diff(want, v.Changes); diff != "" || rate(t, first) != 60 || v.LoadedBy != "SIGHUP on h1" || v.Sum != first.Catalogue().Files().Hex() {
		t.Errorf("version %+v, rate %d\n%s", v, rate(t, first), diff)
	}
	if n := count(t, pool, `SELECT count(*) FROM redrive.catalogue_versions`); n != 2 {
		t.Errorf("%d versions stored, want 2", n)
	}
	n := count(t, pool, `
		SELECT count(*)
		FROM redrive.audit_entries
		WHERE body::json ->> 'action' = 'catalogue.load' AND body::json -> 'details' ->> 'sha256' = $1
		  AND body::json -> 'details' ->> 'changed' = '1'`, v.Sum)
	if n != 1 {
		t.Errorf("%d entries say so, want 1", n)
	}
}

func TestKeeperRefusesFaults(t *testing.T) {
	t.Parallel()
	pool := testdb.New(t)
	var said strings.Builder
	f := &file{yaml: keptYAML}
	k := keep(t, pool, f, slog.New(slog.NewTextHandler(&said, nil)))
	before := k.Version().ID
	f.write(strings.Replace(keptYAML, "per_minute: 120", "per_minut: 60", 1))
	var faults jobtype.Faults
	if err := k.Reload(t.Context(), "SIGHUP on h1"); !errors.As(err, &faults) {
		t.Fatalf("a fault was loaded: %v", err)
	}
	if !strings.Contains(said.String(), "types.yaml:7:") {
		t.Errorf("the log doesn't name the line: %s", said.String())
	}
	if k.Version().ID != before || rate(t, k) != 120 || count(t, pool, `SELECT count(*) FROM redrive.catalogue_versions`) != 1 {
		t.Error("something changed")
	}
}

func TestKeepersFollowEachOther(t *testing.T) {
	t.Parallel()
	pool := testdb.New(t)
	log := slog.New(slog.DiscardHandler)
	f := &file{yaml: keptYAML}
	loads, follows := keep(t, pool, f, log), keep(t, pool, f, log)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- follows.Run(ctx) }()
	f.write(strings.Replace(keptYAML, "120", "60", 1) + "  b: {side_effects: [{kind: none}], idempotency: {by: none}}\n")
	if err := loads.Reload(t.Context(), "SIGHUP on h1"); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for rate(t, follows) != 60 {
		if time.Since(began) > 2*time.Second {
			t.Fatal("the other process doesn't follow within 2 s")
		}
		time.Sleep(10 * time.Millisecond)
	}
	if diff := cmp.Diff(loads.Version().Changes, follows.Version().Changes); diff != "" {
		t.Error(diff)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestKeeperKeepsWhatItCanRead: a version that a newer program stored must not
// take an older one's catalogue away.
func TestKeeperKeepsWhatItCanRead(t *testing.T) {
	t.Parallel()
	pool := testdb.New(t)
	k := keep(t, pool, &file{yaml: keptYAML}, slog.New(slog.DiscardHandler))
	before := k.Version().ID
	_, err := pool.Exec(t.Context(), `
		INSERT INTO redrive.catalogue_versions (sha256, files, main)
		VALUES ('\x00', '{"types.yaml": "types: {a: {novelty: 1}}"}', 'types.yaml')`)
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Follow(t.Context()); err != nil || k.Version().ID != before || rate(t, k) != 120 {
		t.Errorf("version %d, error %v", k.Version().ID, err)
	}
}

func TestKeeperSaysWhatNeedsARestart(t *testing.T) {
	t.Parallel()
	f := &file{yaml: keptYAML}
	k := keep(t, testdb.New(t), f, slog.New(slog.DiscardHandler))
	if need := k.NeedsRestart(); len(need) != 0 {
		t.Errorf("at the start: %v", need)
	}
	f.write("environments: [production, staging]\n" + strings.Replace(keptYAML, "schema: app}", "schema: app}, {name: two, environment: staging}", 1))
	if err := k.Reload(t.Context(), "SIGHUP on h1"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"source two", "environments"}, k.NeedsRestart()); diff != "" {
		t.Error(diff)
	}
}
