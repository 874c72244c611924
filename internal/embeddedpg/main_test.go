package embeddedpg_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/internal/embeddedpg"
)

// childDir, when set, turns the test binary into a program that runs a server
// there until its standard input ends. Tests kill it.
const childDir = "EMBEDDEDPG_TEST_CHILD"

// childCopy is the child's Config.CopyFrom.
const childCopy = "EMBEDDEDPG_TEST_COPY"

// childConnect, when set, turns it into one that tries to connect.
const childConnect = "EMBEDDEDPG_TEST_CONNECT"

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(childDir) != "":
		os.Exit(runChild(os.Getenv(childDir)))
	case os.Getenv(childConnect) != "":
		conn, err := pgx.Connect(context.Background(), os.Getenv(childConnect))
		if err != nil {
			fmt.Println("refused:", err)
			os.Exit(0)
		}
		_ = conn.Close(context.Background())
		fmt.Println("connected")
		os.Exit(0)
	}
	code := m.Run()
	if baseline.dir != "" {
		_ = os.RemoveAll(baseline.dir)
	}
	os.Exit(code)
}

func runChild(dir string) int {
	srv, err := embeddedpg.Start(context.Background(), embeddedpg.Config{DataDir: dir, CopyFrom: os.Getenv(childCopy)})
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	fmt.Println("ready", srv.PID(), srv.URL())
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := srv.Stop(context.Background()); err != nil {
		fmt.Println("error", err)
		return 1
	}
	return 0
}

// child is another process that runs a server.
type child struct {
	cmd   *exec.Cmd
	stdin io.Closer
	pid   int // of its postmaster
	url   string
}

// spawn runs a child on dir, as the given user when cred is not nil.
func spawn(t *testing.T, dir string, cred *syscall.Credential) child {
	t.Helper()
	cmd := exec.Command(binary(t, cred), "-test.run=^$")
	cmd.Env = []string{childDir + "=" + dir, "PATH=" + os.Getenv("PATH"), "HOME=/"}
	if cred == nil {
		cmd.Env = append(cmd.Env, childCopy+"="+copied(t))
	}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: cred}
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Wait()
	})
	all, err := bufio.NewReader(stdout).ReadString('\n')
	c := child{cmd: cmd, stdin: stdin}
	if _, scanErr := fmt.Sscanf(all, "ready %d %s", &c.pid, &c.url); scanErr != nil {
		rest, _ := io.ReadAll(stdout)
		t.Fatalf("child did not start: %s%s (%v)", all, rest, err)
	}
	return c
}

// kill ends a child as the kernel would when memory runs out.
func (c child) kill(t *testing.T) {
	t.Helper()
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.cmd.Wait()
}

// binary is the test binary at a place where other users can run it.
func binary(t *testing.T, cred *syscall.Credential) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if cred == nil {
		return self
	}
	b, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	open := filepath.Join(folder(t), "child")
	if err := os.WriteFile(open, b, 0o755); err != nil {
		t.Fatal(err)
	}
	return open
}

// folder is a temporary folder that other users can pass through, which
// t.TempDir is not.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(embeddedpg.TempDir(), "epg-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// baseline is a stopped server that tests copy: making a cluster takes seconds.
var baseline struct {
	once sync.Once
	dir  string
	err  error
}

func copied(t *testing.T) string {
	t.Helper()
	baseline.once.Do(func() {
		dir, err := os.MkdirTemp(embeddedpg.TempDir(), "epg-base-")
		if err == nil {
			err = os.Chmod(dir, 0o711)
		}
		if err != nil {
			baseline.err = err
			return
		}
		baseline.dir = dir
		srv, err := embeddedpg.Start(context.Background(), embeddedpg.Config{DataDir: dir, Disposable: true})
		if err == nil {
			err = srv.Shutdown(context.Background())
		}
		baseline.err = err
	})
	if baseline.err != nil {
		t.Fatal(baseline.err)
	}
	return baseline.dir
}

// start runs a server on a copy of the baseline.
func start(t *testing.T, cfg embeddedpg.Config) *embeddedpg.Server {
	t.Helper()
	if cfg.CopyFrom == "" {
		cfg.CopyFrom = copied(t)
	}
	return startFresh(t, cfg)
}

// startFresh runs a server on a cluster of its own making.
func startFresh(t *testing.T, cfg embeddedpg.Config) *embeddedpg.Server {
	t.Helper()
	srv, err := embeddedpg.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Stop(context.Background()) })
	return srv
}

// query runs SQL on its own connection and returns the first value as text.
func query(t *testing.T, url, sql string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	rows, err := conn.Query(t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatal(err)
	}
	values, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(values, ",")
}

func exists(pid int) bool { return embeddedpg.Alive(pid) }

// eventually waits for something that another process does.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("did not happen in 20 s: %s", what)
		}
	}
}

// wantError checks that an error names all of the given words.
func wantError(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error; want one with %q", words)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q does not say %q", err, w)
		}
	}
}
