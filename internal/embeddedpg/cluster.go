package embeddedpg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// initialise makes the cluster when there is none yet. It is made beside its
// place and moved there when complete, so that being killed half way leaves
// nothing that looks like a cluster.
func (s *Server) initialise(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join(s.dir.data, "PG_VERSION")); err == nil {
		info, err := os.Stat(s.dir.data)
		if err != nil {
			return fmt.Errorf("the cluster: %w", err)
		}
		return ownedBy(s.dir.data, info, s.acct.uid, "PostgreSQL")
	} else if !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("the cluster: %w", err)
	}
	var err error
	if s.cfg.CopyFrom != "" {
		err = s.copyCluster(ctx)
	} else {
		err = s.initdb(ctx)
	}
	if err != nil {
		_ = os.RemoveAll(s.dir.fresh)
		return err
	}
	_ = os.Remove(s.dir.data) // an empty one is in the way of the rename
	if err := os.Rename(s.dir.fresh, s.dir.data); err != nil {
		return fmt.Errorf("put the new cluster in place: %w", err)
	}
	return nil
}

// initdb tries the best locale first: sorting by code point (the same on every
// system), upper and lower case for all of Unicode.
func (s *Server) initdb(ctx context.Context) error {
	locales := [][]string{{"--locale=C.UTF-8"}, {"--locale=C"}}
	if s.bin.major >= 17 {
		locales = append([][]string{{"--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"}}, locales...)
	}
	var (
		out string
		err error
	)
	for _, locale := range locales {
		args := append([]string{
			"-D", s.dir.fresh, "-U", Role, "-E", "UTF8", "--lc-messages=C",
			"--auth-local=peer", "--auth-host=scram-sha-256", "--no-instructions",
		}, locale...)
		if s.cfg.Disposable {
			args = append(args, "--no-sync")
		}
		out, err = s.acct.run(ctx, "", s.bin.initdb(), args...)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		_ = os.RemoveAll(s.dir.fresh)
		if !strings.Contains(out, "locale") {
			break
		}
	}
	return fmt.Errorf("make a new PostgreSQL cluster in %s with %s: %w\n%s", s.dir.pg, s.bin.initdb(), err, out)
}

func (s *Server) copyCluster(ctx context.Context) error {
	from := newLayout(s.cfg.CopyFrom).data
	if out, err := s.acct.run(ctx, "", "cp", "-Rp", from, s.dir.fresh); err != nil {
		return fmt.Errorf("copy the cluster %s: %w %s", from, err, out)
	}
	return nil
}

// configure writes who may connect, on every start: the account may have
// changed, and nothing that was edited by hand should open the server.
func (s *Server) configure() error {
	files := map[string]string{
		"pg_hba.conf": "local all " + Role + " peer map=redrive\n" +
			"host all " + Role + " 127.0.0.1/32 scram-sha-256\n",
		// The kernel says who is at the other end of the socket.
		"pg_ident.conf": fmt.Sprintf("redrive \"%s\" %s\n", strings.ReplaceAll(s.acct.self, `"`, `""`), Role),
	}
	for name, text := range files {
		path := filepath.Join(s.dir.data, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
		if err := s.acct.own(path); err != nil {
			return fmt.Errorf("give %s to %s: %w", path, s.acct.name, err)
		}
	}
	return s.placeSocket()
}

const socketPrefix = "redrive-pg-"

// placeSocket finds a private directory for the socket: inside the data
// directory, or in a short temporary one when that path is too long.
func (s *Server) placeSocket() error {
	if len(s.dir.run) <= maxSocketDir {
		s.sock = s.dir.run
		return nil
	}
	var dir string
	var err error
	for _, base := range []string{os.TempDir(), "/tmp"} {
		if len(base)+len(socketPrefix)+12 > maxSocketDir {
			continue
		}
		if dir, err = os.MkdirTemp(base, socketPrefix); err == nil {
			break
		}
	}
	if dir == "" {
		return fmt.Errorf("the path %s is too long for a socket and there is no temporary folder for one: choose a shorter directory with --data-dir", s.dir.run)
	}
	s.sock = dir
	if err := errors.Join(s.acct.own(dir), os.WriteFile(s.dir.socket, []byte(dir+"\n"), 0o600)); err != nil {
		return fmt.Errorf("prepare the socket folder %s: %w", dir, err)
	}
	return nil
}

// arguments are the server's settings. They stand on the command line, so that
// a cluster made by an older Redrive gets today's.
func (s *Server) arguments() []string {
	listen := ""
	if s.cfg.Port != 0 {
		listen = "127.0.0.1"
	}
	settings := []string{
		"listen_addresses=" + listen,
		fmt.Sprintf("port=%d", s.port()),
		"unix_socket_directories=" + s.sock,
		"unix_socket_permissions=0700",
		"password_encryption=scram-sha-256",
		"max_connections=200",
		"shared_buffers=128MB",
		"wal_level=minimal",
		"max_wal_senders=0",
		"max_wal_size=2GB",
		"jit=off", // queries are small and many
		"timezone=UTC",
		"log_timezone=UTC",
		"logging_collector=off",
		"log_destination=stderr",
		"log_checkpoints=off",
		// Errors of statements quote data. They belong to whoever sent the
		// statement, not into a log: "log" leaves out everything below it.
		"log_min_messages=log",
		"log_min_error_statement=panic",
		"log_error_verbosity=terse",
		"log_parameter_max_length_on_error=0",
	}
	if s.cfg.Disposable {
		settings = append(settings, "fsync=off", "synchronous_commit=off", "full_page_writes=off",
			"checkpoint_timeout=1h", "autovacuum_naptime=10min",
			// Inside the directory, and so removed with it: the default lives
			// in /dev/shm and stays there when the server is ended hard.
			"dynamic_shared_memory_type=mmap")
	}
	args := []string{"-D", s.dir.data}
	for _, set := range append(settings, s.cfg.Settings...) {
		args = append(args, "-c", set)
	}
	return args
}
