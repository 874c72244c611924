package embeddedpg_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/internal/embeddedpg"
)

func TestServerEndsWithKilledProcess(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells a child of its parent's death; elsewhere the next start cleans up")
	}
	c := spawn(t, folder(t), nil)
	c.kill(t)
	eventually(t, "postmaster ends", func() bool { return !exists(c.pid) })
}

// A kill at once after the commit, and a restart at once after the kill, while
// the old server may still be on its way out.
func TestRestartAfterKill(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	for i := range 3 {
		c := spawn(t, dir, nil)
		if i == 0 {
			query(t, c.url, `create table runs (n int)`)
		}
		query(t, c.url, fmt.Sprintf(`insert into runs values (%d)`, i))
		c.kill(t)
	}
	srv := start(t, embeddedpg.Config{DataDir: dir})
	if got := query(t, srv.URL(), `select string_agg(n::text, ' ' order by n) from runs`); got != "0 1 2" {
		t.Fatalf("rows after three kills: %q", got)
	}
}

// Both are killed while connections are open: the backends notice by
// themselves, and the shared memory they use must not be taken from them.
func TestRestartAfterKillOfBoth(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	c := spawn(t, dir, nil)
	query(t, c.url, `create table kept as select 'kept'::text as v`)
	conn, err := pgx.Connect(t.Context(), c.url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	go func() { _, _ = conn.Exec(context.Background(), `select pg_sleep(60)`) }()
	time.Sleep(50 * time.Millisecond) // let the backend get into it
	if err := syscall.Kill(c.pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	c.kill(t)
	srv := start(t, embeddedpg.Config{DataDir: dir})
	if got := query(t, srv.URL(), `select v from kept`); got != "kept" {
		t.Fatalf("after both were killed: %q", got)
	}
}

func TestOrphanIsStopped(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	orphan := start(t, embeddedpg.Config{DataDir: dir})
	query(t, orphan.URL(), `create table kept as select 'kept'::text as v`)
	orphan.Abandon()
	srv := start(t, embeddedpg.Config{DataDir: dir})
	if exists(orphan.PID()) {
		t.Errorf("the orphan %d runs on", orphan.PID())
	}
	if got := query(t, srv.URL(), `select v from kept`); got != "kept" {
		t.Fatalf("data after the orphan's end: %q", got)
	}
}

// After a reboot the pid in the stale file may belong to anything. It is
// neither signalled nor an obstacle.
func TestStalePIDOfAnotherProgram(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	srv := start(t, embeddedpg.Config{DataDir: dir})
	if err := srv.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "postgres", "data")
	stale := fmt.Sprintf("%d\n%s\n1700000000\n5432\n%s\n\n  1 1\nready   \n", os.Getpid(), data, dir)
	if err := os.WriteFile(filepath.Join(data, "postmaster.pid"), []byte(stale), 0o600); err != nil {
		t.Fatal(err)
	}
	again := start(t, embeddedpg.Config{DataDir: dir})
	if got := query(t, again.URL(), `select 'up'::text`); got != "up" {
		t.Fatalf("query: %q", got)
	}
}

// Killed in the middle of making the cluster: the next start makes it anew.
func TestHalfMadeCluster(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	srv := start(t, embeddedpg.Config{DataDir: dir})
	if err := srv.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "postgres", "data")
	if err := os.Rename(data, data+".new"); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(data+".new", "global", "pg_control")); err != nil {
		t.Fatal(err)
	}
	again := start(t, embeddedpg.Config{DataDir: dir})
	if got := query(t, again.URL(), `select 'up'::text`); got != "up" {
		t.Fatalf("query: %q", got)
	}
}

func TestRemoveStopsWhatWasLeft(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(folder(t), "data")
	orphan := start(t, embeddedpg.Config{DataDir: dir, Disposable: true})
	orphan.Abandon()
	if err := embeddedpg.Remove(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if exists(orphan.PID()) {
		t.Errorf("the orphan %d runs on", orphan.PID())
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("directory after Remove: %v", err)
	}
}
