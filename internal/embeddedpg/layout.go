package embeddedpg

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// maxSocketDir is what is left of the 104 bytes (macOS; 108 on Linux) of a
// socket path after "/.s.PGSQL.65535" and the final NUL.
const maxSocketDir = 104 - 16

// layout names the parts of a data directory.
type layout struct {
	root   string // the DataDir, absolute, symbolic links resolved
	pg     string // everything of PostgreSQL's account
	data   string // the cluster (PGDATA)
	fresh  string // a cluster being made; renamed to data when complete
	run    string // the socket
	lock   string // held by the process that runs the server
	socket string // says where the socket is when its path would be too long
}

func newLayout(root string) layout {
	pg := filepath.Join(root, "postgres")
	return layout{
		root:   root,
		pg:     pg,
		data:   filepath.Join(pg, "data"),
		fresh:  filepath.Join(pg, "data.new"),
		run:    filepath.Join(pg, "run"),
		lock:   filepath.Join(root, "postgres.lock"),
		socket: filepath.Join(root, "postgres.socket"),
	}
}

// prepare makes the directories and checks whose they are. Root keeps the data
// directory itself and lets PostgreSQL's group pass through it; only the part
// below is PostgreSQL's.
func prepare(dataDir string, acct account) (layout, error) {
	abs, err := filepath.Abs(dataDir)
	if err != nil {
		return layout{}, fmt.Errorf("data directory %s: %w", dataDir, err)
	}
	if err := os.MkdirAll(filepath.Dir(abs), 0o755); err != nil {
		return layout{}, fmt.Errorf("make the folder above the data directory: %w; choose another one with --data-dir", err)
	}
	if err := os.Mkdir(abs, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return layout{}, fmt.Errorf("make the data directory: %w; choose another one with --data-dir", err)
	}
	abs, err = filepath.EvalSymlinks(abs)
	if err != nil {
		return layout{}, fmt.Errorf("data directory %s: %w", dataDir, err)
	}
	info, err := os.Stat(abs)
	switch {
	case err != nil:
		return layout{}, fmt.Errorf("data directory %s: %w", abs, err)
	case !info.IsDir():
		return layout{}, fmt.Errorf("data directory %s is a file; choose a folder with --data-dir", abs)
	}
	if err := ownedBy(abs, info, os.Geteuid(), "Redrive"); err != nil {
		return layout{}, err
	}
	if acct.cred != nil && groupOf(info) == 0 && info.Mode().Perm()&0o007 == 0 {
		// root:root 0700, as mktemp -d makes it: open it for the group only.
		if err := errors.Join(os.Chown(abs, -1, acct.gid), os.Chmod(abs, info.Mode().Perm()|0o010)); err != nil {
			return layout{}, fmt.Errorf("let PostgreSQL's account %s enter %s: %w", acct.name, abs, err)
		}
	}
	d := newLayout(abs)
	for _, dir := range []string{d.pg, d.run} {
		if err := os.Mkdir(dir, 0o700); err == nil {
			err = acct.own(dir)
			if err != nil {
				return layout{}, fmt.Errorf("give %s to %s: %w", dir, acct.name, err)
			}
		} else if !errors.Is(err, fs.ErrExist) {
			return layout{}, fmt.Errorf("make PostgreSQL's folder: %w", err)
		}
		info, err := os.Lstat(dir)
		if err != nil {
			return layout{}, fmt.Errorf("PostgreSQL's folder: %w", err)
		}
		if err := ownedBy(dir, info, acct.uid, "PostgreSQL"); err != nil {
			return layout{}, err
		}
		// Nobody else may enter: the socket is in here.
		if err := os.Chmod(dir, 0o700); err != nil {
			return layout{}, fmt.Errorf("close %s for others: %w", dir, err)
		}
	}
	return d, nil
}

// ownedBy refuses a directory of another user: its owner could read or replace
// what we put there, and PostgreSQL would not start.
func ownedBy(path string, info fs.FileInfo, uid int, who string) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(st.Uid) == uid {
		return nil
	}
	owner := userName(int(st.Uid))
	return fmt.Errorf("%s belongs to %s, but %s runs as %s here: start it as the user it was made by, or choose another directory with --data-dir", path, owner, who, userName(uid))
}

func groupOf(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Gid)
	}
	return -1
}

// reachable makes sure that PostgreSQL's account can get to its folder, and
// names the folder that is in the way otherwise.
func reachable(d layout, acct account) error {
	if acct.cred == nil {
		return nil
	}
	out, err := acct.run(context.Background(), d.pg, "/bin/sh", "-c", "cd . && test -w .")
	if err == nil {
		return nil
	}
	if dir := blocking(d.pg, acct); dir != "" {
		return fmt.Errorf("PostgreSQL runs as user %s here (it refuses root), and %s can't enter the folder %s: allow it with \"chmod o+x %s\", or choose a directory it can reach with --data-dir", acct.name, acct.name, dir, dir)
	}
	return fmt.Errorf("PostgreSQL runs as user %s here and can't use %s: %w %s", acct.name, d.pg, err, out)
}

// blocking is the topmost folder on the way to path that the account can't
// pass through, by its mode bits; empty when none is seen.
func blocking(path string, acct account) string {
	dir := "/"
	for part := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if info, err := os.Stat(dir); err == nil {
			bit := fs.FileMode(0o001)
			if st, ok := info.Sys().(*syscall.Stat_t); ok {
				if int(st.Uid) == acct.uid {
					bit = 0o100
				} else if int(st.Gid) == acct.gid {
					bit = 0o010
				}
			}
			if info.Mode().Perm()&bit == 0 {
				return dir
			}
		}
		dir = filepath.Join(dir, part)
	}
	return ""
}

// lockWait is how long Start waits for a process that is on its way out.
const lockWait = time.Second

// lockDir takes the directory for this process, waiting at most patience. The
// lock goes with the process, however that ends; PostgreSQL does not inherit it.
func lockDir(d layout, patience time.Duration) (*os.File, error) {
	f, err := os.OpenFile(d.lock, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the data directory: %w", err)
	}
	_, _ = wait(context.Background(), patience, func() bool {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		return !errors.Is(err, syscall.EWOULDBLOCK)
	})
	if err != nil {
		buf := make([]byte, 32)
		n, _ := f.ReadAt(buf, 0)
		holder := strings.TrimSpace(string(buf[:n]))
		_ = f.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock the data directory %s: %w", d.root, err)
		}
		return nil, fmt.Errorf("another Redrive (pid %s) is running on the data directory %s: stop it, or choose another one with --data-dir", holder, d.root)
	}
	_ = f.Truncate(0)
	_, _ = fmt.Fprintf(f, "%d\n", os.Getpid()) // only for the message above
	return f, nil
}
