package testdb

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redrive-dlq/redrive/internal/embeddedpg"
)

const (
	runPrefix     = "run-"     // the server of one test process
	clusterPrefix = "cluster-" // a migrated cluster to copy
)

// startPrivate starts this process's server. One process at a time does it:
// the first makes the cluster, the others copy it.
func startPrivate(ctx context.Context) (server, error) {
	base, err := baseDir()
	if err != nil {
		return server{}, err
	}
	unlock, err := lockBase(ctx, base)
	if err != nil {
		return server{}, err
	}
	defer unlock()
	sum, err := hash()
	if err != nil {
		return server{}, fmt.Errorf("hash the migrations: %w", err)
	}
	cluster := filepath.Join(base, clusterPrefix+sum)
	removeDead(ctx, base, cluster)
	if _, err := os.Stat(cluster); errors.Is(err, fs.ErrNotExist) {
		if err := makeCluster(ctx, base, cluster); err != nil {
			return server{}, err
		}
	}
	s, err := startCopy(ctx, base, cluster)
	if err == nil {
		return s, nil
	}
	// The cluster may be of a PostgreSQL that is no longer installed.
	_ = embeddedpg.Remove(ctx, cluster)
	if err := makeCluster(ctx, base, cluster); err != nil {
		return server{}, err
	}
	return startCopy(ctx, base, cluster)
}

func startCopy(ctx context.Context, base, cluster string) (server, error) {
	dir, err := os.MkdirTemp(base, runPrefix)
	if err != nil {
		return server{}, err
	}
	pg, err := embeddedpg.Start(ctx, embeddedpg.Config{DataDir: dir, Disposable: true, CopyFrom: cluster})
	if err != nil {
		_ = os.RemoveAll(dir)
		return server{}, err
	}
	return attach(ctx, pg.URL()) // finds the template in place
}

// makeCluster makes a migrated cluster beside its place and moves it there.
func makeCluster(ctx context.Context, base, cluster string) error {
	dir, err := os.MkdirTemp(base, runPrefix)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	pg, err := embeddedpg.Start(ctx, embeddedpg.Config{DataDir: dir, Disposable: true})
	if err != nil {
		return err
	}
	_, err = attach(ctx, pg.URL())
	// A clean shutdown: what is copied needs no recovery.
	if stopErr := pg.Shutdown(ctx); err == nil {
		err = stopErr
	}
	if err != nil {
		return err
	}
	return os.Rename(dir, cluster)
}

// removeDead removes servers whose process is gone and clusters of other
// migrations that nobody used for two hours.
func removeDead(ctx context.Context, base, keep string) {
	entries, err := os.ReadDir(base)
	if err != nil {
		return
	}
	for _, e := range entries {
		path := filepath.Join(base, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), runPrefix):
			_ = embeddedpg.Remove(ctx, path) // refuses one that is in use
		case strings.HasPrefix(e.Name(), clusterPrefix) && path != keep:
			if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > 2*time.Hour {
				_ = os.RemoveAll(path)
			}
		}
	}
	now := time.Now()
	_ = os.Chtimes(keep, now, now)
}

// baseDir is this user's folder for all test servers. It is in a temporary
// folder, where anybody may have put something of that name first.
func baseDir() (string, error) {
	dir := filepath.Join(embeddedpg.TempDir(), "redrive-testdb-"+strconv.Itoa(os.Geteuid()))
	if err := os.Mkdir(dir, 0o711); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("make the folder of the test servers: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return "", fmt.Errorf("folder of the test servers: %w", err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || !ok || int(st.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return "", fmt.Errorf("%s is not a folder that only you can write to: remove it, or set TMPDIR to another place", dir)
	}
	// PostgreSQL's account passes through when we are root, whatever the umask.
	return dir, os.Chmod(dir, 0o711)
}

func lockBase(ctx context.Context, base string) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(base, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, fmt.Errorf("wait for another test process to start its server: %w", ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}
