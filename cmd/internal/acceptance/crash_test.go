package acceptance

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/redrive-dlq/redrive/dlq/envelope"
	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/dlq/replay"
	"github.com/redrive-dlq/redrive/migrations/testdb"
	"github.com/redrive-dlq/redrive/rbac"
)

const (
	crashJobs  = 60
	crashKills = 10
)

// process is one of the roles, started and killed by the test.
type process struct {
	role, database, provider string
	cmd                      *exec.Cmd
}

func (p *process) start(t *testing.T) {
	t.Helper()
	p.cmd = exec.Command(os.Args[0]) // this test binary, playing a role
	p.cmd.Env = append(os.Environ(), roleEnv+"="+p.role, databaseEnv+"="+p.database, providerEnv+"="+p.provider)
	p.cmd.Stderr = os.Stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
}

func (p *process) kill(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Wait() // it says "killed"
}

// mailbox is a provider without deduplication: it counts what it did per key.
type mailbox struct {
	mu   sync.Mutex
	sent map[string]int
}

func (m *mailbox) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	var a mailArgs
	if json.NewDecoder(r.Body).Decode(&a) == nil {
		m.mu.Lock()
		m.sent[a.Key]++
		m.mu.Unlock()
	}
}

// TestKillsBetweenReleaseAndOutcome kills console, worker and both at random
// points: every replay still ends, no key has two effects, and an effect whose
// end nobody wrote is unknown and isn't replayed unasked.
func TestKillsBetweenReleaseAndOutcome(t *testing.T) {
	if testing.Short() {
		t.Skip("kills processes for half a minute")
	}
	url := testdb.NewURL(t)
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	deadRows(t, pool)

	box := &mailbox{sent: map[string]int{}}
	provider := httptest.NewServer(box)
	defer provider.Close()
	console := &process{role: "console", database: url, provider: provider.URL}
	worker := &process{role: "worker", database: url, provider: provider.URL}
	console.start(t)
	defer func() { console.kill(t) }()
	await(t, "all deaths captured", func() bool {
		return count(t, pool, `SELECT count(*) FROM redrive.dead_jobs`) == crashJobs
	})
	worker.start(t)
	defer func() { worker.kill(t) }()

	orders := orderAll(t, pool)
	for range crashKills {
		time.Sleep(time.Duration(100+rand.IntN(900)) * time.Millisecond)
		victims := [][]*process{{console}, {worker}, {console, worker}}[rand.IntN(3)]
		for _, v := range victims {
			v.kill(t)
		}
		time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond)
		for _, v := range victims {
			v.start(t)
		}
	}
	await(t, "every replay ended", func() bool {
		return count(t, pool, `SELECT count(*) FROM redrive.replays WHERE state <> 'ended'`) == 0
	})
	if n := count(t, pool, `SELECT count(*) FROM redrive.batches WHERE state <> 'done'`); n != 0 {
		t.Errorf("%d batches are stuck", n)
	}
	if n := count(t, pool, `SELECT count(*) FROM redrive.replays`); n != orders {
		t.Errorf("%d replays for %d orders", n, orders)
	}
	box.mu.Lock()
	defer box.mu.Unlock()
	for key, n := range box.sent {
		if n > 1 {
			t.Errorf("key %s has %d effects", key, n)
		}
	}
	// Where the provider acted and no finished row says so, the effect is unknown.
	rows, err := pool.Query(t.Context(), `
		SELECT d.id, d.idempotency_key, d.effect, d.status, coalesce(l.state, '')
		FROM redrive.dead_jobs d
		LEFT JOIN redrive.ledger l ON l.environment = d.environment AND l.scope = d.key_scope AND l.key = d.idempotency_key`)
	if err != nil {
		t.Fatal(err)
	}
	type fate struct {
		ID                             int64
		Key, Effect, Status, LedgerRow string
	}
	fates, err := pgx.CollectRows(rows, pgx.RowToStructByPos[fate])
	if err != nil {
		t.Fatal(err)
	}
	unknown := 0
	for _, f := range fates {
		switch {
		case f.LedgerRow == "done" && (f.Effect != "done" || f.Status == "open"):
			t.Errorf("job %d: the ledger says done, the job says %s, %s", f.ID, f.Effect, f.Status)
		case f.LedgerRow == "begun":
			unknown++
			if f.Effect != "unknown" || f.Status != "open" {
				t.Errorf("job %d: begun without end, the job says %s, %s", f.ID, f.Effect, f.Status)
			}
			mustRefuse(t, pool, f.ID)
		case f.LedgerRow == "" && box.sent[f.Key] > 0:
			t.Errorf("job %d: the provider acted and the ledger knows nothing", f.ID)
		}
	}
	t.Logf("%d replays, %d effects, %d left unknown by the kills", orders, len(box.sent), unknown)
}

// deadRows makes the application's River with jobs that died there.
func deadRows(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), `CREATE SCHEMA app`); err != nil {
		t.Fatal(err)
	}
	m, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Schema: "app", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Migrate(t.Context(), rivermigrate.DirectionUp, nil); err != nil {
		t.Fatal(err)
	}
	_, err = pool.Exec(t.Context(), `
		INSERT INTO app.river_job (state, attempt, max_attempts, args, kind, attempted_at, finalized_at, errors, metadata)
		SELECT 'discarded', 3, 3, jsonb_build_object('key', 'k' || i), 'send_mail', now(), now() - interval '1 minute',
		       ARRAY[jsonb_build_object('at', now(), 'attempt', 3, 'error', 'Unavailable: 503 service unavailable', 'trace', '')],
		       jsonb_build_object('redrive:key', 'k' || i, 'redrive:effect', 'none')
		FROM generate_series(1, $1::int) i`, crashJobs)
	if err != nil {
		t.Fatal(err)
	}
}

func service(t *testing.T, pool *pgxpool.Pool) *replay.Service {
	t.Helper()
	catalogue, err := loadCrashCatalogue()
	if err != nil {
		t.Fatal(err)
	}
	return &replay.Service{Pool: pool, Types: func() *jobtype.Catalogue { return catalogue }, Sealer: envelope.Plain{},
		Targets: map[string]replay.Target{"river": carries{}}}
}

func onCall() *rbac.Principal {
	return &rbac.Principal{UserID: 1, Email: "oncall@demo.test", Grants: []rbac.Grant{{Role: rbac.OnCall}}}
}

// orderAll orders the replay of every job, spread over the time of the kills.
func orderAll(t *testing.T, pool *pgxpool.Pool) int {
	t.Helper()
	rows, err := pool.Query(t.Context(), `SELECT id FROM redrive.dead_jobs ORDER BY id`)
	if err != nil {
		t.Fatal(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		t.Fatal(err)
	}
	svc := service(t, pool)
	for i, id := range ids {
		at := time.Now().Add(time.Duration(i) * 120 * time.Millisecond)
		if _, err := svc.One(t.Context(), onCall(), replay.Order{DeadJobID: id, Generation: 1, PayloadVersion: 1, Reason: "the test says so", At: at}); err != nil {
			t.Fatal(err)
		}
	}
	return len(ids)
}

func mustRefuse(t *testing.T, pool *pgxpool.Pool, id int64) {
	t.Helper()
	var generation int
	if err := pool.QueryRow(t.Context(), `SELECT generation FROM redrive.dead_jobs WHERE id = $1`, id).Scan(&generation); err != nil {
		t.Fatal(err)
	}
	_, err := service(t, pool).One(t.Context(), onCall(), replay.Order{DeadJobID: id, Generation: generation, PayloadVersion: 1, Reason: "the test says so"})
	if !problem.Is(err, problem.Conflict) {
		t.Errorf("job %d: an unknown effect was replayed unasked: %v", id, err)
	}
}

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(90 * time.Second); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		if done() {
			return
		}
	}
	t.Fatal("not within 90 s: " + what)
}

func count(t *testing.T, pool *pgxpool.Pool, sql string) int {
	t.Helper()
	var n int
	if err := pool.QueryRow(t.Context(), sql).Scan(&n); err != nil {
		t.Fatal(fmt.Errorf("%s: %w", sql, err))
	}
	return n
}
