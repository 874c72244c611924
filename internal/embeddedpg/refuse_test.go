package embeddedpg_test

import (
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/redrive-dlq/redrive/internal/embeddedpg"
)

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to act as two users")
	}
}

// nobody is an ordinary user.
func nobody(t *testing.T) *syscall.Credential {
	t.Helper()
	u, err := user.Lookup("nobody")
	if err != nil {
		t.Skip("this system has no user nobody")
	}
	uid, _ := strconv.ParseUint(u.Uid, 10, 32)
	gid, _ := strconv.ParseUint(u.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

func TestOrdinaryUser(t *testing.T) {
	t.Parallel()
	needRoot(t)
	cred := nobody(t)
	dir := filepath.Join(folder(t), "home")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, int(cred.Uid), int(cred.Gid)); err != nil {
		t.Fatal(err)
	}
	c := spawn(t, filepath.Join(dir, "data"), cred)
	info, err := os.Stat("/proc/" + strconv.Itoa(c.pid))
	if err != nil {
		t.Fatal(err)
	}
	if uid := info.Sys().(*syscall.Stat_t).Uid; uid != cred.Uid {
		t.Errorf("the server runs as uid %d, want %d", uid, cred.Uid)
	}
	// Root may enter the folder, but isn't the account that may connect.
	if got := connectAs(t, c.url, nil); !strings.HasPrefix(got, "refused") {
		t.Errorf("another user: %s", got)
	}
	c.kill(t)
	eventually(t, "postmaster ends", func() bool { return !exists(c.pid) })
	again := spawn(t, filepath.Join(dir, "data"), cred)
	if got := connectAs(t, again.url, cred); got != "connected" {
		t.Errorf("the same user after a restart: %s", got)
	}
	_, err = embeddedpg.Start(t.Context(), embeddedpg.Config{DataDir: filepath.Join(dir, "data")})
	wantError(t, err, "belongs to nobody", "root", "--data-dir")
}

func connectAs(t *testing.T, url string, cred *syscall.Credential) string {
	t.Helper()
	cmd := exec.Command(binary(t, cred), "-test.run=^$")
	cmd.Env = []string{childConnect + "=" + url}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: cred}
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func TestOthersCannotConnect(t *testing.T) {
	t.Parallel()
	needRoot(t)
	srv := start(t, embeddedpg.Config{DataDir: folder(t)})
	if got := connectAs(t, srv.URL(), nobody(t)); !strings.HasPrefix(got, "refused") {
		t.Errorf("another user of the machine: %s", got)
	}
	if got := connectAs(t, srv.URL(), nil); got != "connected" {
		t.Errorf("ourselves in another process: %s", got)
	}
}

// mktemp -d makes a folder that PostgreSQL's account could not enter.
func TestRootsPrivateFolder(t *testing.T) {
	t.Parallel()
	needRoot(t)
	dir := filepath.Join(folder(t), "private")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	srv := startFresh(t, embeddedpg.Config{DataDir: dir})
	if got := query(t, srv.URL(), `select 'up'::text`); got != "up" {
		t.Fatalf("query: %q", got)
	}
	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o710 {
		t.Errorf("folder is %v now, want it open for the group only", info.Mode())
	}
}

func TestUnreachableFolder(t *testing.T) {
	t.Parallel()
	needRoot(t)
	closed := filepath.Join(folder(t), "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := embeddedpg.Start(t.Context(), embeddedpg.Config{DataDir: filepath.Join(closed, "data")})
	wantError(t, err, "can't enter the folder "+closed+":", "chmod o+x "+closed, "--data-dir")
}

func TestClusterOfAnotherOwner(t *testing.T) {
	t.Parallel()
	needRoot(t)
	cred := nobody(t)
	dir := folder(t)
	pg := filepath.Join(dir, "postgres")
	if err := os.Mkdir(pg, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(pg, int(cred.Uid), int(cred.Gid)); err != nil {
		t.Fatal(err)
	}
	_, err := embeddedpg.Start(t.Context(), embeddedpg.Config{DataDir: dir})
	wantError(t, err, pg, "belongs to nobody", "postgres")
}

func TestFolderThatCannotBeMade(t *testing.T) {
	t.Parallel()
	file := filepath.Join(folder(t), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := embeddedpg.Start(t.Context(), embeddedpg.Config{DataDir: file})
	wantError(t, err, file, "is a file", "--data-dir")
	_, err = embeddedpg.Start(t.Context(), embeddedpg.Config{DataDir: filepath.Join(file, "data")})
	wantError(t, err, file, "--data-dir")
	_, err = embeddedpg.Start(t.Context(), embeddedpg.Config{})
	wantError(t, err, "no data directory")
}

func TestClusterOfAnotherVersion(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	srv := start(t, embeddedpg.Config{DataDir: dir})
	if err := srv.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	version := filepath.Join(dir, "postgres", "data", "PG_VERSION")
	if err := os.WriteFile(version, []byte("14\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := embeddedpg.Start(t.Context(), embeddedpg.Config{DataDir: dir})
	wantError(t, err, "made by PostgreSQL 14", srv.Version(), "--data-dir")
	if err := os.WriteFile(version, []byte("9.6\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = embeddedpg.Start(t.Context(), embeddedpg.Config{DataDir: dir})
	wantError(t, err, version, "15 or newer")
	if err := os.Remove(version); err != nil {
		t.Fatal(err)
	}
	_, err = embeddedpg.Start(t.Context(), embeddedpg.Config{DataDir: dir})
	wantError(t, err, "no PostgreSQL cluster", "PG_VERSION")
}

func TestNoServerInBinDir(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	_, err := embeddedpg.Start(t.Context(), embeddedpg.Config{DataDir: filepath.Join(dir, "data"), BinDir: dir})
	wantError(t, err, "15 or newer", dir, "initdb")
}

func TestParseVersion(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		out, version string
		major        int
	}{
		{"postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)", "15.14", 15},
		{"postgres (PostgreSQL) 17.5", "17.5", 17},
		{"postgres (PostgreSQL) 18beta2", "18beta2", 18},
		{"postgres (PostgreSQL) 9.6.24", "9.6.24", 9},
		{"something else", "", 0},
	} {
		version, major := embeddedpg.ParseVersion(c.out)
		if version != c.version || major != c.major {
			t.Errorf("%q: %q, %d; want %q, %d", c.out, version, major, c.version, c.major)
		}
	}
}
