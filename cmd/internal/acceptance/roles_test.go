// Package acceptance holds the tests that need the whole product: real
// processes that are killed, real providers, a real browser.
package acceptance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/redrive-dlq/redrive/cmd/internal/console"
	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/dlq/ledger"
)

// The roles that this test binary plays when it starts itself again.
const (
	roleEnv     = "REDRIVE_ACCEPTANCE_ROLE"
	databaseEnv = "REDRIVE_ACCEPTANCE_DATABASE"
	providerEnv = "REDRIVE_ACCEPTANCE_PROVIDER"
)

func TestMain(m *testing.M) {
	var err error
	switch os.Getenv(roleEnv) {
	case "":
		os.Exit(runTests(m))
	case "console":
		err = runConsole()
	case "worker":
		err = runWorker()
	case "storm":
		err = runStormConsole()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// runTests runs the tests, then ends what they share.
func runTests(m *testing.M) int {
	code := m.Run()
	stopBrowser()
	if err := stopDemo(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	return code
}

const crashCatalogue = `
environments: [production]
sources:
  - {name: app, environment: production, kind: river, schema: app}
types:
  send_mail:
    side_effects: [{kind: email, text: sends one e-mail}]
    idempotency: {by: key, scope: mail}
    targets:
      production: {river: {client: app, queue: default}, outcome_within: 20s}
`

func loadCrashCatalogue() (*jobtype.Catalogue, error) {
	return jobtype.Load(fstest.MapFS{"types.yaml": {Data: []byte(crashCatalogue)}}, "types.yaml")
}

// runConsole is a whole console until it is killed.
func runConsole() error {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, os.Getenv(databaseEnv))
	if err != nil {
		return err
	}
	catalogue, err := loadCrashCatalogue()
	if err != nil {
		return err
	}
	c, err := console.New(ctx, console.Config{Pool: pool, Catalogue: catalogue, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	return c.Run(ctx, listener)
}

type mailArgs struct {
	Key string `json:"key"`
}

func (mailArgs) Kind() string { return "send_mail" }

type mailWorker struct {
	river.WorkerDefaults[mailArgs]
	pool *pgxpool.Pool
}

// Work guards its effect as workers should: begin, act, finish. The pauses
// leave room to be killed between any two steps.
func (w *mailWorker) Work(ctx context.Context, j *river.Job[mailArgs]) error {
	pause()
	key := ledger.Key{Environment: "production", Scope: "mail", Key: j.Args.Key}
	answer, err := ledger.Begin(ctx, w.pool, key)
	switch {
	case err != nil:
		return err
	case answer == ledger.Done:
		return river.RecordOutput(ctx, "already_done")
	case answer == ledger.Unknown:
		return river.JobCancel(errors.New("EffectUnknown: begun before, its end isn't known"))
	}
	pause()
	body, err := json.Marshal(j.Args)
	if err != nil {
		return err
	}
	res, err := http.Post(os.Getenv(providerEnv), "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	_ = res.Body.Close()
	pause()
	if err := ledger.Finish(ctx, w.pool, key, json.RawMessage(`{"id":"m-`+j.Args.Key+`"}`)); err != nil {
		return err
	}
	for range 5 { // the effect is done and River doesn't know it yet
		pause()
	}
	return nil
}

func pause() { time.Sleep(time.Duration(rand.IntN(40)) * time.Millisecond) }

// runWorker is the application's worker until it is killed.
func runWorker() error {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, os.Getenv(databaseEnv))
	if err != nil {
		return err
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, &mailWorker{pool: pool})
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{Schema: "app", Workers: workers,
		Queues: map[string]river.QueueConfig{"default": {MaxWorkers: 4}}, FetchPollInterval: 100 * time.Millisecond,
		JobTimeout: 2 * time.Second, RescueStuckJobsAfter: 3 * time.Second,
		CancelledJobRetentionPeriod: -1, DiscardedJobRetentionPeriod: -1, CompletedJobRetentionPeriod: -1,
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	if err := client.Start(ctx); err != nil {
		return err
	}
	select {}
}
