// Package web is the console's HTTP side: middleware, the route table,
// sessions, and one handler file per page or action.
package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq/board"
	"github.com/redrive-dlq/redrive/dlq/envelope"
	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/dlq/replay"
	"github.com/redrive-dlq/redrive/rbac"
)

// Timeouts of the server (OWASP ASVS 5.0, 15.2.2). There is no write timeout
// for all: event streams stay open, so each other route sets its own.
const (
	headerTimeout  = 10 * time.Second
	readTimeout    = 60 * time.Second
	idleTimeout    = 2 * time.Minute
	handlerTimeout = 30 * time.Second // of a route that names none
	drainTimeout   = 15 * time.Second // for requests in work when the server stops
	maxHeaderBytes = 32 << 10
)

// Config is what the server needs. Pool and People are required.
type Config struct {
	Pool   *pgxpool.Pool
	People *rbac.Service
	// Logger gets one line a request and the causes of failures; nil: slog.Default.
	Logger *slog.Logger
	// Demo offers the demo's accounts on the sign-in page.
	Demo bool
	// Environments are the choices of the environment switch, in order.
	Environments []string
	// Hosts are the names that a request may be addressed to, without port;
	// empty: any. A console on loopback names loopback here, so that no foreign
	// name that resolves to it reaches it.
	Hosts []string
	// TrustedProxies may tell the client's address in X-Forwarded-For; empty:
	// nobody may.
	TrustedProxies []netip.Prefix
	// TLS says that the console is reached over TLS, here or at a proxy.
	TLS bool
	// Ready says whether the process can serve; nil: the database answers.
	Ready func(ctx context.Context) error
	// OpenJobs counts open dead jobs in the principal's scope for the
	// navigation; nil: from the counters.
	OpenJobs func(ctx context.Context, p *rbac.Principal, environment string) (int, error)
	// Replays judges and orders replays; nil: pages say nothing of them.
	Replays *replay.Service
	// Types is the catalogue in force; nil: nothing is declared.
	Types func() *jobtype.Catalogue
	// Catalogue is what pages say of the version in force; nil: nothing.
	Catalogue func() CatalogueInForce
	// Sealer opens payloads for their redacted view; nil: they are plain.
	Sealer envelope.Sealer
	// Routes are added to the console's own: the API's.
	Routes []Route
}

// Server serves the console. Make it with New.
type Server struct {
	config   Config
	echo     *echo.Echo
	log      *slog.Logger
	people   *rbac.Service
	sessions *rbac.Store
	origins  *http.CrossOriginProtection
	routes   []Route
	pages    map[string]bool // paths that a GET answers
	exports  *limiter        // of each person
	orders   *limiter        // of each person
	draining chan struct{}   // closed when the server stops; streams end then
	drain    sync.Once
}

// New returns a server, or an error when the route table has a mistake: a route
// without a policy, without a name, or declared twice.
func New(config Config) (*Server, error) {
	if config.Pool == nil || config.People == nil {
		return nil, errors.New("web: a pool and people are needed")
	}
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	if config.OpenJobs == nil {
		config.OpenJobs = func(ctx context.Context, p *rbac.Principal, environment string) (int, error) {
			if !p.Can(rbac.Read, "", "") {
				return -1, nil // not shown
			}
			return board.Open(ctx, config.Pool, p, environment)
		}
	}
	if config.Types == nil {
		config.Types = func() *jobtype.Catalogue { return &jobtype.Catalogue{} }
	}
	if config.Sealer == nil {
		config.Sealer = envelope.Plain{}
	}
	s := &Server{
		config:   config,
		echo:     echo.New(),
		log:      config.Logger,
		people:   config.People,
		sessions: config.People.Store(),
		origins:  http.NewCrossOriginProtection(),
		pages:    map[string]bool{},
		exports:  newLimiter(exportBurst, exportEvery, "exported"),
		orders:   newLimiter(orderBurst, orderEvery, "ordered"),
		draining: make(chan struct{}),
	}
	s.echo.HideBanner, s.echo.HidePort = true, true
	s.echo.IPExtractor = ipExtractor(config.TrustedProxies)
	s.echo.HTTPErrorHandler = func(err error, c echo.Context) { s.fail(c, err) }
	s.echo.Use(s.requestID, s.accessLog, s.recoverPanics, s.securityHeaders, s.checkHost, s.checkOrigin)
	if err := s.register(s.table()); err != nil {
		return nil, err
	}
	return s, nil
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.echo.ServeHTTP(w, r) }

// Serve answers on the listener until ctx ends, then lets requests in work
// finish for a while; event streams end at once. It returns nil after a clean
// stop.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("web: serve: %w", err)
	case <-ctx.Done():
	}
	s.Drain()
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	if err := server.Shutdown(stop); err != nil {
		_ = server.Close()
		return fmt.Errorf("web: stop: %w", err)
	}
	return nil
}

// Drain ends open event streams and makes /readyz say no. Serve calls it.
func (s *Server) Drain() { s.drain.Do(func() { close(s.draining) }) }

// ipExtractor trusts the connection's address only, unless proxies are named:
// otherwise a header could dodge the sign-in throttle.
func ipExtractor(trusted []netip.Prefix) echo.IPExtractor {
	if len(trusted) == 0 {
		return echo.ExtractIPDirect()
	}
	options := []echo.TrustOption{echo.TrustLoopback(false), echo.TrustLinkLocal(false), echo.TrustPrivateNet(false)}
	for _, prefix := range trusted {
		prefix = prefix.Masked()
		options = append(options, echo.TrustIPRange(&net.IPNet{
			IP:   prefix.Addr().AsSlice(),
			Mask: net.CIDRMask(prefix.Bits(), prefix.Addr().BitLen()),
		}))
	}
	return echo.ExtractIPFromXFFHeader(options...)
}
