package river

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	rq "github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"
)

// mailArgs is a job of an application.
type mailArgs struct {
	To     string          `json:"to_email"`
	SendID string          `json:"send_id"`
	Exact  json.RawMessage `json:"exact"`
	How    string          `json:"how"` // how it fails
}

func (mailArgs) Kind() string { return "send_welcome_email" }

type mailWorker struct{ rq.WorkerDefaults[mailArgs] }

func (mailWorker) NextRetry(*rq.Job[mailArgs]) time.Time { return time.Now() }

func (mailWorker) Work(_ context.Context, job *rq.Job[mailArgs]) error {
	switch job.Args.How {
	case "cancel":
		return rq.JobCancel(errors.New("mail.InvalidRecipient: 400 invalid recipient\ncaused by HTTPError: 400 Bad Request"))
	case "panic":
		panic("index out of range")
	case "json":
		return errors.New(`{"class":"Timeout","message":"no answer","category":"transient","effect":"unknown","worker_version":"4.2","duration_ms":2000,"causes":[{"class":"DeadlineExceeded","message":"2s"}]}`)
	case "fine":
		return nil
	default:
		return errors.New("ServiceUnavailable: mail answered 503")
	}
}

// work starts the application's own client, which may lead its River.
func (b *bundle) work() *rq.Client[pgx.Tx] {
	b.t.Helper()
	workers := rq.NewWorkers()
	rq.AddWorker(workers, &mailWorker{})
	client, err := rq.NewClient(riverpgxv5.New(b.from), &rq.Config{
		Schema: testSchema, ID: "worker-1", Logger: quiet(), Workers: workers,
		Queues:            map[string]rq.QueueConfig{"mail": {MaxWorkers: 8}},
		FetchCooldown:     20 * time.Millisecond,
		FetchPollInterval: 20 * time.Millisecond,
	})
	if err != nil {
		b.t.Fatal(err)
	}
	if err := client.Start(b.ctx); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = client.StopAndCancel(ctx)
	})
	return client
}

func (b *bundle) insert(client *rq.Client[pgx.Tx], args mailArgs, metadata string) int64 {
	b.t.Helper()
	if args.Exact == nil {
		args.Exact = json.RawMessage(`null`)
	}
	res, err := client.Insert(b.ctx, args, &rq.InsertOpts{Queue: "mail", MaxAttempts: 2, Tags: []string{"welcome"}, Metadata: []byte(metadata)})
	if err != nil {
		b.t.Fatal(err)
	}
	return res.Job.ID
}

// ended waits until the application's job is final.
func (b *bundle) ended(client *rq.Client[pgx.Tx], id int64) *rivertype.JobRow {
	b.t.Helper()
	for range 300 {
		job, err := client.JobGet(b.ctx, id)
		if err != nil {
			b.t.Fatal(err)
		}
		if job.FinalizedAt != nil {
			return job
		}
		time.Sleep(50 * time.Millisecond)
	}
	b.t.Fatalf("job %d never ended", id)
	return nil
}

// captured is what the store holds of a job.
type captured struct {
	JobType, Key, Queue, Tenant, Entity, GaveUp, Effect, Class, Message string
	Attempts, MaxAttempts                                               int
}

func (b *bundle) captured(id int64) captured {
	b.t.Helper()
	var c captured
	err := b.store.QueryRow(b.ctx, `
		SELECT job_type, idempotency_key, queue, tenant, entity, gave_up, effect, error_class, error_message, attempt_count, max_attempts
		FROM redrive.dead_jobs
		WHERE environment = $1 AND source = $2 AND job_id = $3::bigint::text`, testEnv, testName, id).
		Scan(&c.JobType, &c.Key, &c.Queue, &c.Tenant, &c.Entity, &c.GaveUp, &c.Effect, &c.Class, &c.Message, &c.Attempts, &c.MaxAttempts)
	if err != nil {
		b.t.Fatalf("job %d is not captured: %v", id, err)
	}
	return c
}

func TestRealWorkersDeaths(t *testing.T) {
	t.Parallel()
	for name, setup := range map[string]func(*testing.T) *bundle{"same database": setup, "another database": setupElsewhere} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			client := b.work()
			exact := json.RawMessage(`{"id":9007199254740993,"sum":1.10,"text":"<ü\"\\>"}`)
			meta := `{"redrive:tenant":"acme","redrive:entity":"order:8821","redrive:payload_version":2}`
			discarded := b.insert(client, mailArgs{SendID: "welcome:42", Exact: exact}, meta)
			cancelled := b.insert(client, mailArgs{How: "cancel", SendID: "s1"}, `{"redrive:key":"explicit"}`)
			panicked := b.insert(client, mailArgs{How: "panic"}, `{}`)
			told := b.insert(client, mailArgs{How: "json"}, `{}`)
			fine := b.insert(client, mailArgs{How: "fine"}, `{}`)
			for _, id := range []int64{discarded, cancelled, panicked, told, fine} {
				b.ended(client, id)
			}
			b.poll()
			b.poll()

			base := captured{JobType: "send_welcome_email", Queue: "mail", Effect: "none", MaxAttempts: 2}
			expect := func(id int64, change func(*captured)) {
				t.Helper()
				c := base
				change(&c)
				if diff := cmp.Diff(c, b.captured(id)); diff != "" {
					t.Errorf("job %d: (-want +got)\n%s", id, diff)
				}
			}
			expect(discarded, func(c *captured) {
				c.Key, c.Tenant, c.Entity, c.GaveUp, c.Attempts = "welcome:42", "acme", "order:8821", "attempts", 2
				c.Class, c.Message = "ServiceUnavailable", "mail answered 503"
			})
			expect(cancelled, func(c *captured) {
				c.Key, c.GaveUp, c.Attempts = "explicit", "not_retryable", 1
				c.Class, c.Message = "HTTPError", "400 Bad Request"
			})
			expect(panicked, func(c *captured) {
				c.GaveUp, c.Attempts, c.Class, c.Message = "attempts", 2, "panic", "index out of range"
			})
			expect(told, func(c *captured) {
				c.GaveUp, c.Attempts, c.Effect, c.Class, c.Message = "attempts", 2, "unknown", "DeadlineExceeded", "2s"
			})
			want(b, "jobs", 4, `SELECT count(*)::int FROM redrive.dead_jobs`)
			want(b, "deaths", 4, `SELECT count(*)::int FROM redrive.deaths`)
			want(b, "captured", 4, `SELECT captured::int FROM redrive.sources`)

			// Payload bytes are the jsonb text that River holds.
			text := one[string](b, b.from, `SELECT args::text FROM `+b.table+` WHERE id = $1`, discarded)
			bytes := one[[]byte](b, b.store, `
				SELECT substr(p.bytes, 2) FROM redrive.payloads p JOIN redrive.dead_jobs d ON d.id = p.dead_job_id
				WHERE d.job_id = $1::bigint::text`, discarded)
			if string(bytes) != text {
				t.Errorf("payload %s, want %s", bytes, text)
			}
			want(b, "worker", "worker-1,worker-1", `
				SELECT string_agg(a.worker, ',' ORDER BY a.seq)
				FROM redrive.attempts a JOIN redrive.dead_jobs d ON d.id = a.dead_job_id
				WHERE d.job_id = $1::bigint::text`, discarded)
			stack := one[string](b, b.store, `
				SELECT a.stack FROM redrive.attempts a JOIN redrive.dead_jobs d ON d.id = a.dead_job_id
				WHERE d.job_id = $1::bigint::text AND a.seq = 1`, panicked)
			if !strings.Contains(stack, "mailWorker") {
				t.Errorf("the panic's stack is missing: %q", stack)
			}
		})
	}
}

func TestANewDeathOfAJobIsTheNextGeneration(t *testing.T) {
	t.Parallel()
	b := setup(t)
	client := b.work()
	id := b.insert(client, mailArgs{How: "503"}, `{}`)
	b.ended(client, id)
	b.poll()
	b.exec(b.store, `UPDATE redrive.dead_jobs SET status = 'resolved'`)
	b.poll()
	want(b, "told twice, a death reopens nothing", "resolved", `SELECT status FROM redrive.dead_jobs`)

	if _, err := client.JobRetry(b.ctx, id); err != nil {
		t.Fatal(err)
	}
	for range 200 {
		if job := b.ended(client, id); job.Attempt == 3 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	b.poll()
	want(b, "status", "open", `SELECT status FROM redrive.dead_jobs`)
	want(b, "generation", 2, `SELECT generation FROM redrive.dead_jobs`)
	want(b, "attempts by generation", "1:1 1:2 2:1", `
		SELECT string_agg(generation || ':' || seq, ' ' ORDER BY generation, seq) FROM redrive.attempts`)
	want(b, "the reference is the new death's", "3", `SELECT source_ref ->> 'attempt' FROM redrive.dead_jobs`)
}

func TestARemotelyCancelledJob(t *testing.T) {
	t.Parallel()
	b := setup(t)
	client := b.work()
	res, err := client.Insert(b.ctx, mailArgs{Exact: json.RawMessage(`1`)}, &rq.InsertOpts{Queue: "mail", ScheduledAt: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.JobCancel(b.ctx, res.Job.ID); err != nil {
		t.Fatal(err)
	}
	b.poll()
	want(b, "gave up", "cancelled", `SELECT gave_up FROM redrive.dead_jobs`)
	want(b, "attempts", 0, `SELECT attempt_count FROM redrive.dead_jobs`)
}
