package embeddedpg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Remove deletes a data directory, after stopping a server that a killed
// process left behind in it. It refuses one that is in use.
func Remove(ctx context.Context, dataDir string) error {
	acct, err := currentAccount()
	if err != nil {
		return err
	}
	root, err := filepath.EvalSymlinks(dataDir)
	if err != nil {
		return fmt.Errorf("remove the data directory: %w", err)
	}
	s := &Server{cfg: Config{Logger: slog.New(slog.DiscardHandler)}, acct: acct, dir: newLayout(root)}
	if s.lock, err = lockDir(s.dir, 0); err != nil {
		return err
	}
	defer s.release()
	if err := s.recover(ctx); err != nil {
		return err
	}
	if err := os.RemoveAll(root); err != nil {
		return fmt.Errorf("remove the data directory: %w", err)
	}
	return nil
}

// recover cleans up after a process that was killed: it stops the server that
// process left behind and removes its leavings. We hold the directory's lock,
// so whatever still works in here has lost its owner.
func (s *Server) recover(ctx context.Context) error {
	pidFile := filepath.Join(s.dir.data, "postmaster.pid")
	pid := readPID(pidFile)
	if pid > 1 && servesDir(pid, s.dir.data) {
		s.cfg.Logger.Warn("stopping the PostgreSQL of an earlier run", "pid", pid)
		if err := s.end(ctx, pid); err != nil {
			return err
		}
	}
	if err := s.endChildren(ctx); err != nil {
		return err
	}
	// A pid that is gone is PostgreSQL's own business: it takes the file over
	// after a look at the shared memory that it names. One that is there but
	// is something else (reused after a reboot, or a zombie that no init
	// collects) would make it refuse.
	if pid > 1 && !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		if err := os.Remove(pidFile); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove the stale %s: %w", pidFile, err)
		}
	}
	// The socket's own lock file has the same two cases. Nothing runs any more.
	sockets, _ := filepath.Glob(filepath.Join(s.dir.run, ".s.PGSQL.*"))
	for _, file := range sockets {
		_ = os.Remove(file)
	}
	if err := os.RemoveAll(s.dir.fresh); err != nil {
		return fmt.Errorf("remove a half made cluster: %w", err)
	}
	leftovers, _ := filepath.Glob(filepath.Join(s.dir.root, "download-*"))
	for _, l := range leftovers {
		_ = os.RemoveAll(l)
	}
	if old, err := os.ReadFile(s.dir.socket); err == nil {
		if dir := strings.TrimSpace(string(old)); strings.HasPrefix(filepath.Base(dir), socketPrefix) {
			_ = os.RemoveAll(dir)
		}
		_ = os.Remove(s.dir.socket)
	}
	return nil
}

// end stops a postmaster that is not our child: gently, then hard.
func (s *Server) end(ctx context.Context, pid int) error {
	for _, step := range []struct {
		sig  syscall.Signal
		wait time.Duration
	}{
		{syscall.SIGINT, 20 * time.Second},
		{syscall.SIGQUIT, 10 * time.Second},
	} {
		// Look again right before the signal: pids are reused.
		if !servesDir(pid, s.dir.data) {
			return nil
		}
		if err := syscall.Kill(pid, step.sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("stop the PostgreSQL of an earlier run (pid %d): %w", pid, err)
		}
		if gone, err := wait(ctx, step.wait, func() bool { return !alive(pid) }); gone || err != nil {
			return err
		}
	}
	return fmt.Errorf("the PostgreSQL of an earlier run (pid %d) still works in %s and does not stop: end it with \"kill -QUIT %d\"", pid, s.dir.data, pid)
}

// endChildren waits for backends whose postmaster was killed. They notice it
// by themselves; two servers on the same files would destroy them.
func (s *Server) endChildren(ctx context.Context) error {
	none := func() bool { return len(serversOf(s.dir.data)) == 0 }
	if gone, err := wait(ctx, 5*time.Second, none); gone || err != nil {
		return err
	}
	for _, pid := range serversOf(s.dir.data) {
		_ = syscall.Kill(pid, syscall.SIGQUIT)
	}
	if gone, err := wait(ctx, 5*time.Second, none); gone || err != nil {
		return err
	}
	return fmt.Errorf("processes of an earlier PostgreSQL still work in %s and do not stop: %v", s.dir.data, serversOf(s.dir.data))
}

// wait polls until ok, at most d. It errs only when ctx is done.
func wait(ctx context.Context, d time.Duration, ok func() bool) (bool, error) {
	deadline := time.Now().Add(d)
	for {
		if ok() {
			return true, nil
		}
		if time.Now().After(deadline) {
			return false, nil
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// readPID is the first line of a postmaster.pid; 0 when there is none.
func readPID(path string) int {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(b), "\n")
	pid, _ := strconv.Atoi(strings.TrimSpace(first))
	return pid
}
