package embeddedpg_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/internal/embeddedpg"
)

func TestDataStaysBetweenRuns(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(folder(t), "data") // made by Start
	srv := startFresh(t, embeddedpg.Config{DataDir: dir})
	query(t, srv.URL(), `create table kept as select 'still here'::text as v`)
	pid := srv.PID()
	if err := srv.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if exists(pid) {
		t.Fatalf("postmaster %d runs on after Stop", pid)
	}
	if err := srv.Err(); err != nil {
		t.Errorf("Err() after a clean stop = %v", err)
	}
	again := start(t, embeddedpg.Config{DataDir: dir})
	if got := query(t, again.URL(), `select v from kept`); got != "still here" {
		t.Fatalf("after a restart: %q", got)
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	srv := startFresh(t, embeddedpg.Config{DataDir: folder(t), Settings: []string{"shared_buffers=64MB"}})
	for name, want := range map[string]string{
		"shared_buffers": "64MB", "listen_addresses": "", "fsync": "on", "synchronous_commit": "on",
		"TimeZone": "UTC", "server_encoding": "UTF8",
	} {
		if got := query(t, srv.URL(), "show "+name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	if got := query(t, srv.URL(), `select upper('straße é')`); got != "STRASSE É" && got != "STRAßE É" {
		t.Errorf("upper of letters beyond ASCII = %q", got)
	}
}

func TestUnexpectedEndIsReported(t *testing.T) {
	t.Parallel()
	srv := start(t, embeddedpg.Config{DataDir: folder(t), Disposable: true})
	process, err := os.FindProcess(srv.PID())
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-srv.Done()
	wantError(t, srv.Err(), "PostgreSQL ended")
}

func TestSecondProcessIsRefused(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	c := spawn(t, dir, nil)
	_, err := embeddedpg.Start(t.Context(), embeddedpg.Config{DataDir: dir})
	wantError(t, err, "another Redrive", fmt.Sprint(c.cmd.Process.Pid), dir, "--data-dir")
	wantError(t, embeddedpg.Remove(t.Context(), dir), "another Redrive")
	if got := query(t, c.url, `select 'fine'::text`); got != "fine" {
		t.Errorf("the first one afterwards: %q", got)
	}
}

func TestPort(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	dir := folder(t)
	_, err = embeddedpg.Start(t.Context(), embeddedpg.Config{DataDir: dir, Port: port, CopyFrom: copied(t)})
	wantError(t, err, fmt.Sprint(port), "in use")

	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	srv := start(t, embeddedpg.Config{DataDir: dir, Port: port})
	if got := query(t, srv.URL(), `select 'in'::text`); got != "in" {
		t.Errorf("by TCP with the password: %q", got)
	}
	for _, user := range []string{embeddedpg.Role, embeddedpg.Role + ":wrong"} {
		address := fmt.Sprintf("postgres://%s@127.0.0.1:%d/redrive?sslmode=disable", user, port)
		if conn, err := pgx.Connect(t.Context(), address); err == nil {
			_ = conn.Close(context.Background())
			t.Errorf("%s may connect by TCP", user)
		}
	}
}

func TestLongPath(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(folder(t), strings.Repeat("long-", 25), "data")
	srv := start(t, embeddedpg.Config{DataDir: dir})
	if got := query(t, srv.URL(), `select 'in'::text`); got != "in" {
		t.Fatalf("query: %q", got)
	}
	sock := query(t, srv.URL(), `show unix_socket_directories`)
	info, err := os.Stat(sock)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o700 {
		t.Errorf("socket folder %s has mode %v", sock, info.Mode())
	}
	if err := srv.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(sock); !os.IsNotExist(err) {
		t.Errorf("socket folder %s after Stop: %v", sock, err)
	}
}

// lockedBuffer is a log that the server writes to and the test reads.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func TestNoDataInTheLog(t *testing.T) {
	t.Parallel()
	var log lockedBuffer
	srv := start(t, embeddedpg.Config{
		DataDir: folder(t),
		Logger:  slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	conn, err := pgx.Connect(t.Context(), srv.URL())
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{
		`select 'hunter2-a'::int`,
		`do $$ begin raise warning 'hunter2-b'; raise exception 'hunter2-c'; end $$`,
		`create table u (v text unique); insert into u values ('hunter2-d'); insert into u values ('hunter2-d')`,
	} {
		if _, err := conn.Exec(t.Context(), sql); err == nil {
			t.Errorf("%s: no error", sql)
		}
	}
	_ = conn.Close(context.Background())
	if err := srv.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "ready to accept connections") {
		t.Errorf("the server's messages are missing:\n%s", log.String())
	}
	if strings.Contains(log.String(), "hunter2") {
		t.Errorf("data in the log:\n%s", log.String())
	}
}
