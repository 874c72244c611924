package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/redrive-dlq/redrive/cmd/internal/console"
	"github.com/redrive-dlq/redrive/cmd/internal/demo"
	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/internal/embeddedpg"
	"github.com/redrive-dlq/redrive/migrations"
	"github.com/redrive-dlq/redrive/rbac"
)

type demoCmd struct {
	Listen    string        `help:"Address to serve on; loopback only." default:"127.0.0.1:8080"`
	DataDir   string        `help:"Folder that keeps the demo's PostgreSQL between runs." required:"" type:"path"`
	Jobs      int           `help:"Dead jobs of the last 14 days to start with." default:"2000"`
	Catalogue string        `help:"YAML file of job types instead of the demo's own; read again at SIGHUP." type:"path"`
	Trickle   time.Duration `help:"Time between new jobs that will fail; negative: none." default:"20s"`
}

// Run serves the demo until ctx ends.
func (d *demoCmd) Run(ctx context.Context, log *slog.Logger) (err error) {
	// The port first: a taken one is told before anything is started.
	listener, err := listenLoopback(d.Listen)
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }() // the server has closed it already after a clean end
	pg, err := embeddedpg.Start(ctx, embeddedpg.Config{DataDir: d.DataDir, Logger: log.With("from", "postgresql")})
	if err != nil {
		return err
	}
	defer func() {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		err = errors.Join(err, pg.Stop(stop))
	}()
	pool, err := open(ctx, pg.URL())
	if err != nil {
		return err
	}
	defer pool.Close()
	serving, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-pg.Done():
			cancel(fmt.Errorf("the demo's PostgreSQL ended by itself: %w; start the demo again, its data is kept", cmp.Or(pg.Err(), errors.New("no reason given"))))
		case <-serving.Done():
		}
	}()
	err = d.serve(serving, log, pool, listener)
	if cause := context.Cause(serving); ctx.Err() == nil && cause != nil && serving.Err() != nil {
		return cause
	}
	return err
}

func (d *demoCmd) serve(ctx context.Context, log *slog.Logger, pool *pgxpool.Pool, listener net.Listener) (err error) {
	if err := migrations.Up(ctx, pool); err != nil {
		return err
	}
	world, err := demo.New(pool, demo.Options{Logger: log.With("from", "demo"), Trickle: d.Trickle})
	if err != nil {
		return err
	}
	if err := world.Migrate(ctx); err != nil {
		return err
	}
	if err := world.Seed(ctx, d.Jobs); err != nil {
		return err
	}
	people := rbac.New(pool, nil, rbac.NewHasher(2))
	if err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { return people.SeedDemo(ctx, tx) }); err != nil {
		return err
	}
	if err := world.Start(ctx); err != nil {
		return err
	}
	defer func() {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
		defer cancel()
		err = errors.Join(err, world.Stop(stop))
	}()
	load := func() (*jobtype.Catalogue, error) { return world.Catalogue(), nil }
	if d.Catalogue != "" {
		load = func() (*jobtype.Catalogue, error) { return loadCatalogue(d.Catalogue) }
	}
	catalogue, err := load()
	if err != nil {
		return err
	}
	c, err := console.New(ctx, console.Config{Pool: pool, Catalogue: catalogue, Load: load, Demo: true, Log: log,
		CheckDB: func(string) *pgxpool.Pool { return pool }, Hosts: []string{"127.0.0.1", "localhost", "::1"}})
	if err != nil {
		return err
	}
	defer c.Close()
	defer reloadOnHangup(ctx, c)()
	world.Play(ctx, people, c.Replays())
	log.Info("demo providers", "url", world.ProvidersURL())
	fmt.Printf("Redrive is ready: http://%s\n", listener.Addr())
	return c.Run(ctx, listener)
}

// listenLoopback refuses every address but this machine's own: the demo's
// accounts are known to all.
func listenLoopback(address string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("--listen %q is no address; write it like 127.0.0.1:8080", address)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("--listen %q: the demo has known passphrases, so it serves on loopback only, like 127.0.0.1:8080", address)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("can't listen on %s: %w; choose another with --listen (or LISTEN= with make)", address, err)
	}
	return l, nil
}

// open connects a pool sized for one console.
func open(ctx context.Context, url string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, errors.New("the database address can't be read; write it like postgres://user@host:5432/name")
	}
	if config.MaxConns < 20 {
		config.MaxConns = 20
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect to the database: %w", err)
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, fmt.Errorf("the database doesn't answer: %w", err)
	}
	return pool, nil
}
