// Package console assembles the parts of Redrive into one process: doors,
// sources, the release loop, targets, and the web server.
package console

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/dlq/envelope"
	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/dlq/replay"
	"github.com/redrive-dlq/redrive/dlq/source"
	riversource "github.com/redrive-dlq/redrive/dlq/source/river"
	httptarget "github.com/redrive-dlq/redrive/dlq/target/http"
	rivertarget "github.com/redrive-dlq/redrive/dlq/target/river"
	"github.com/redrive-dlq/redrive/rbac"
	"github.com/redrive-dlq/redrive/web"
	"github.com/redrive-dlq/redrive/web/api"
)

// Config says what a process serves.
type Config struct {
	Pool      *pgxpool.Pool
	Catalogue *jobtype.Catalogue // read before, so that its faults are told before anything is opened
	// Load reads the catalogue file again, for Reload; nil: it never changes.
	Load func() (*jobtype.Catalogue, error)
	// CheckDB is the database of an environment's declared checks; nil: as
	// REDRIVE_CHECK_DATABASE_URL_ENVIRONMENT says.
	CheckDB func(environment string) *pgxpool.Pool
	Demo    bool
	TLS     bool     // reached over TLS, here or at a proxy
	Hosts   []string // names a request may be addressed to; empty: any
	// TrustedProxies may tell the client's address; empty: nobody may.
	TrustedProxies []netip.Prefix
	Log            *slog.Logger
}

// Console is one assembled process. Any number may run on one database.
type Console struct {
	cfg     Config
	types   *jobtype.Keeper
	replays *replay.Service
	web     *web.Server
	engine  *engine
	running []func(context.Context) error
	close   []func()
}

// New assembles a console on a migrated database.
func New(ctx context.Context, cfg Config) (_ *Console, err error) {
	c := &Console{cfg: cfg}
	defer func() {
		if err != nil {
			c.Close()
		}
	}()
	if c.types, err = keepCatalogue(ctx, cfg); err != nil {
		return nil, err
	}
	types := typesOf{c.types.Catalogue}
	sealer := envelope.Plain{}
	capturer := dlq.NewCapturer(types, sealer, nil)
	replays := &replay.Service{Pool: cfg.Pool, Types: c.types.Catalogue, Sealer: sealer, Log: cfg.Log}
	c.replays = replays
	if replays.CheckDB, err = c.checkDatabases(ctx); err != nil {
		return nil, err
	}

	rivers, err := c.rivers(ctx, capturer)
	if err != nil {
		return nil, err
	}
	riverTarget, err := rivertarget.New(rivers...)
	if err != nil {
		return nil, err
	}
	httpTarget := &httptarget.Target{}
	replays.Targets = map[string]replay.Target{"river": riverTarget, "http": httpTarget}
	riverTarget.Payload = func(ctx context.Context, tx pgx.Tx, id int64, version int) ([]byte, error) {
		return replays.Payload(ctx, tx, id, version)
	}
	if c.engine, err = newEngine(cfg.Pool, replays, riverTarget, cfg.Log); err != nil {
		return nil, err
	}
	riverTarget.HandOver, httpTarget.HandOver = c.engine.handOverToRiver, c.engine.deliver
	replays.Enqueue = c.engine.work

	watcher := &rivertarget.Watcher{Target: riverTarget, Service: replays, Log: cfg.Log}
	inbox := &dlq.Inbox{Pool: cfg.Pool, Capturer: capturer, Log: cfg.Log}
	people := rbac.New(cfg.Pool, nil, rbac.NewHasher(2))
	c.running = append(c.running, c.types.Run, replays.RunRelease, watcher.Run, inbox.Run,
		func(ctx context.Context) error { dlq.FoldLoop(ctx, cfg.Pool, time.Second, cfg.Log); return nil },
		every(10*time.Minute, cfg.Log, "purge expired sessions", people.PurgeSessions),
		every(stalledEvery, cfg.Log, "take up work that was left behind", func(ctx context.Context) error {
			return c.engine.takeUp(ctx, replays)
		}),
		every(5*time.Second, cfg.Log, "wake snoozed jobs", func(ctx context.Context) error {
			_, err := dlq.TriageWake(ctx, cfg.Pool, time.Now())
			return err
		}))

	handlers := api.New(api.Config{Pool: cfg.Pool, Capturer: capturer, Replays: replays, People: people})
	c.web, err = web.New(web.Config{
		Pool: cfg.Pool, People: people, Logger: cfg.Log, Demo: cfg.Demo, TLS: cfg.TLS, Hosts: cfg.Hosts, TrustedProxies: cfg.TrustedProxies,
		Environments: cfg.Catalogue.Environments, Replays: replays, Types: replays.Types, Catalogue: c.catalogue, Sealer: sealer,
		Routes: handlers.Routes(),
	})
	return c, err
}

// Replays orders replays, for programs around the console.
func (c *Console) Replays() *replay.Service { return c.replays }

// rivers opens each declared River once, as a source and as a target.
func (c *Console) rivers(ctx context.Context, capturer *dlq.Capturer) ([]*rivertarget.Client, error) {
	var clients []*rivertarget.Client
	for _, s := range c.cfg.Catalogue.Sources {
		if err := source.Register(ctx, c.cfg.Pool, source.ID{Environment: s.Environment, Name: s.Name}, s.Kind); err != nil {
			return nil, err
		}
		if s.Kind != source.KindRiver {
			continue
		}
		pool, same := c.cfg.Pool, true
		if s.URL != "" {
			url := os.Getenv(strings.TrimPrefix(s.URL, "env:"))
			if url == "" {
				return nil, fmt.Errorf("source %s: the environment variable %s is not set; put the address of its database there", s.Name, strings.TrimPrefix(s.URL, "env:"))
			}
			other, err := pgxpool.New(ctx, url)
			if err != nil {
				return nil, fmt.Errorf("source %s: %s is no database address", s.Name, strings.TrimPrefix(s.URL, "env:"))
			}
			c.close = append(c.close, other.Close)
			pool, same = other, false
		}
		reader, err := riversource.New(riversource.Config{Store: c.cfg.Pool, Capturer: capturer, Logger: c.cfg.Log,
			Source: riversource.Source{Environment: s.Environment, Name: s.Name, Schema: s.Schema, Client: s.Name, Pool: pool, Same: same}})
		if err != nil {
			return nil, err
		}
		c.running = append(c.running, reader.Run)
		clients = append(clients, &rivertarget.Client{Name: s.Name, Environment: s.Environment, Schema: s.Schema, Pool: pool, Same: same})
	}
	return clients, nil
}
