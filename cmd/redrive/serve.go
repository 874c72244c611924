package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"

	"github.com/redrive-dlq/redrive/cmd/internal/console"
	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/migrations"
)

type serveCmd struct {
	Listen    string   `help:"Address to serve on." default:"127.0.0.1:8080" env:"REDRIVE_LISTEN"`
	Database  string   `help:"PostgreSQL address." required:"" env:"REDRIVE_DATABASE_URL"`
	Catalogue string   `help:"YAML file of the job types." required:"" type:"path" env:"REDRIVE_CATALOGUE"`
	Hosts     []string `help:"Host names that the console is reached by; empty: any." env:"REDRIVE_HOSTS"`
	Proxies   []string `help:"Addresses or networks of proxies that may tell the client's address in X-Forwarded-For, like 10.0.0.0/8; empty: none." env:"REDRIVE_TRUSTED_PROXIES"`
	TLS       bool     `help:"The console is reached over TLS (at a proxy)." env:"REDRIVE_TLS"`
}

// Run serves until ctx ends.
func (s *serveCmd) Run(ctx context.Context, log *slog.Logger) error {
	load := func() (*jobtype.Catalogue, error) { return loadCatalogue(s.Catalogue) }
	catalogue, err := load()
	if err != nil {
		return err
	}
	proxies, err := networks(s.Proxies)
	if err != nil {
		return err
	}
	pool, err := open(ctx, s.Database)
	if err != nil {
		return err
	}
	defer pool.Close()
	pending, err := migrations.Pending(ctx, pool)
	if err != nil {
		return err
	}
	if pending {
		return errors.New("the database isn't at this version; run: redrive migrate")
	}
	var users int
	if err := pool.QueryRow(ctx, `SELECT count(*) FROM redrive.users WHERE disabled_at IS NULL`).Scan(&users); err != nil {
		return fmt.Errorf("count people: %w", err)
	}
	if users == 0 {
		return errors.New("there is nobody who could sign in, and there is no default account; make the first administrator: redrive user add EMAIL --role admin")
	}
	listener, err := net.Listen("tcp", s.Listen)
	if err != nil {
		return fmt.Errorf("can't listen on %s: %w; choose another with --listen", s.Listen, err)
	}
	c, err := console.New(ctx, console.Config{Pool: pool, Catalogue: catalogue, Load: load, TLS: s.TLS, Hosts: s.Hosts, TrustedProxies: proxies, Log: log})
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer c.Close()
	defer reloadOnHangup(ctx, c)()
	fmt.Printf("Redrive is ready: http://%s\n", listener.Addr())
	return c.Run(ctx, listener)
}

// networks reads addresses (10.0.0.7) and networks (10.0.0.0/8).
func networks(texts []string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, text := range texts {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			address, bad := netip.ParseAddr(text)
			if bad != nil {
				return nil, fmt.Errorf("--proxies: %q is neither an address nor a network; write it like 10.0.0.7 or 10.0.0.0/8", text)
			}
			prefix = netip.PrefixFrom(address, address.BitLen())
		}
		out = append(out, prefix)
	}
	return out, nil
}

type migrateCmd struct {
	Database string `help:"PostgreSQL address." required:"" env:"REDRIVE_DATABASE_URL"`
}

// Run migrates.
func (m *migrateCmd) Run(ctx context.Context, log *slog.Logger) error {
	pool, err := open(ctx, m.Database)
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := migrations.Up(ctx, pool); err != nil {
		return err
	}
	log.InfoContext(ctx, "the database is at this version")
	return nil
}
