// Package embeddedpg runs a private PostgreSQL server for the demo and for
// tests: nobody has to install, configure or start a database first.
//
// The server belongs to one data directory and to one process. It listens on a
// unix socket inside a directory that only its own account may enter, and lets
// only the operating system user that started it (and root) in, so it is safe
// on a shared machine. Its data stays between runs. It ends with its process,
// even when that is killed; what a kill leaves behind is cleaned up by the next
// Start on the same directory.
package embeddedpg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// Role is the database superuser that the server is initialised with.
	Role = "redrive"
	// Database is created on first start; Server.URL names it.
	Database = "redrive"

	// socketPort only names the socket file (.s.PGSQL.5432): without
	// Config.Port nothing listens on TCP.
	socketPort = 5432
)

// Config says where and how the private server runs.
type Config struct {
	// DataDir holds everything: the cluster, its socket, the lock file and
	// downloaded binaries. It is made when missing. Required.
	DataDir string

	// BinDir is the directory of initdb and postgres. Empty: search the
	// usual places, then download.
	BinDir string

	// Logger receives the server's own messages. Nil: they are dropped,
	// except for the last lines, which are part of a start error.
	Logger *slog.Logger

	// Port, when not 0, makes the server listen on 127.0.0.1:Port as well,
	// with a password that is new on each start. 0: unix socket only.
	Port int

	// Disposable trades crash safety for speed (no fsync): for data that may
	// be thrown away, such as tests. When the process dies the server is
	// stopped at once instead of writing its data out.
	Disposable bool

	// Settings are further server settings, as "name=value"; they win over
	// the usual ones.
	Settings []string

	// CopyFrom is the DataDir of a stopped server of the same PostgreSQL
	// major version, copied instead of initialising a new cluster.
	CopyFrom string
}

// Server is a running private PostgreSQL.
type Server struct {
	cfg      Config
	bin      binaries
	acct     account
	dir      layout
	sock     string // directory of the socket
	lock     *os.File
	logs     *logTail
	cmd      *exec.Cmd
	password string
	done     chan struct{}
	exit     error // set before done is closed
}

// Start runs the server on cfg.DataDir and returns when it accepts
// connections. It first stops a server that a killed process left behind there.
//
// Every error says what is wrong and what to do: no PostgreSQL installed, the
// directory in use by a live process, owned by somebody else, unreachable for
// the account PostgreSQL runs as, or made by another major version.
func Start(ctx context.Context, cfg Config) (_ *Server, err error) {
	if cfg.DataDir == "" {
		return nil, errors.New("private PostgreSQL: no data directory given")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	acct, err := currentAccount()
	if err != nil {
		return nil, err
	}
	dir, err := prepare(cfg.DataDir, acct)
	if err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, acct: acct, dir: dir, done: make(chan struct{})}
	if s.lock, err = lockDir(dir, lockWait); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.release()
		}
	}()
	if err = reachable(dir, acct); err != nil {
		return nil, err
	}
	if err = s.recover(ctx); err != nil {
		return nil, err
	}
	if s.bin, err = s.findBinaries(ctx); err != nil {
		return nil, err
	}
	if err = s.initialise(ctx); err != nil {
		return nil, err
	}
	if err = s.configure(); err != nil {
		return nil, err
	}
	if err = s.launchUntilReady(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// URL is the connection string of the server's database, for this operating
// system user only. It holds a password when Config.Port is set: don't log it.
func (s *Server) URL() string { return s.url(Database) }

func (s *Server) url(database string) string {
	u := url.URL{Scheme: "postgres", User: url.User(Role), Path: "/" + database}
	if s.password != "" {
		u.User = url.UserPassword(Role, s.password)
		u.Host = "127.0.0.1:" + strconv.Itoa(s.cfg.Port)
		u.RawQuery = url.Values{"sslmode": {"disable"}}.Encode()
		return u.String()
	}
	return s.socketURL(database)
}

func (s *Server) socketURL(database string) string {
	q := url.Values{"host": {s.sock}, "port": {strconv.Itoa(s.port())}, "sslmode": {"disable"}}
	u := url.URL{Scheme: "postgres", User: url.User(Role), Path: "/" + database, RawQuery: q.Encode()}
	return u.String()
}

func (s *Server) port() int {
	if s.cfg.Port != 0 {
		return s.cfg.Port
	}
	return socketPort
}

// PID is the process id of the server's postmaster.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Version is the PostgreSQL version, such as "15.14".
func (s *Server) Version() string { return s.bin.version }

// Done is closed when the server has ended, asked or not.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err says how the server ended; nil while it runs and after a clean end.
func (s *Server) Err() error {
	select {
	case <-s.done:
		return s.exit
	default:
		return nil
	}
}

// Stop ends the server: connections are cut, data is written out unless it is
// disposable. When ctx is done first, it is ended the hard way (it recovers on
// its next start). Stop returns when the process is gone; calling it again is
// harmless.
func (s *Server) Stop(ctx context.Context) error {
	if s.cfg.Disposable {
		return s.stop(ctx, syscall.SIGQUIT) // "immediate"
	}
	return s.Shutdown(ctx)
}

// Shutdown is Stop that writes data out even when it is disposable.
func (s *Server) Shutdown(ctx context.Context) error {
	return s.stop(ctx, syscall.SIGINT) // "fast"
}

func (s *Server) stop(ctx context.Context, sig syscall.Signal) error {
	defer s.release()
	_ = s.cmd.Process.Signal(sig)
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
	}
	_ = s.cmd.Process.Signal(syscall.SIGQUIT)
	select {
	case <-s.done:
	case <-time.After(5 * time.Second):
		_ = s.cmd.Process.Kill()
		<-s.done
	}
	return fmt.Errorf("private PostgreSQL did not stop in time and was ended hard: %w", ctx.Err())
}

// release gives the data directory free for the next process.
func (s *Server) release() {
	if s.sock != "" && s.sock != s.dir.run {
		_ = os.RemoveAll(s.sock)
	}
	if s.lock != nil {
		// Unlocked by name: closing alone leaves it held while a program that
		// another goroutine just forks still has the descriptor.
		_ = syscall.Flock(int(s.lock.Fd()), syscall.LOCK_UN)
		_ = s.lock.Close()
		s.lock = nil
	}
}

// launch starts the postmaster. The goroutine that does it keeps its thread to
// itself until the server ends, because Linux sends the parent death signal
// when the *thread* that forked is gone, not the process.
func (s *Server) launch() error {
	s.logs = newLogTail(s.cfg.Logger)
	s.done = make(chan struct{})
	cmd := s.acct.command(s.bin.postgres(), s.arguments()...)
	cmd.SysProcAttr.Setsid = true // Ctrl-C in a terminal is ours to handle
	onParentDeath(cmd.SysProcAttr, syscall.SIGINT)
	if s.cfg.Disposable {
		onParentDeath(cmd.SysProcAttr, syscall.SIGQUIT)
	}
	cmd.Dir = s.dir.data
	cmd.Stdout, cmd.Stderr = s.logs, s.logs
	cmd.WaitDelay = 5 * time.Second
	s.cmd = cmd

	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		if err := cmd.Wait(); err != nil {
			s.exit = fmt.Errorf("private PostgreSQL ended: %w%s", err, s.logs.suffix())
		}
		close(s.done)
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start PostgreSQL (%s): %w", s.bin.postgres(), err)
	}
	return nil
}

// portTaken reports whether the server's own words say that its TCP port is in
// use.
func portTaken(words string) bool {
	return strings.Contains(words, "Address already in use") || strings.Contains(words, "address already in use")
}
