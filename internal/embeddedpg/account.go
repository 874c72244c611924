package embeddedpg

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// account is the operating system account that PostgreSQL runs as: our own, or
// "postgres" when we are root, because PostgreSQL refuses to run as root.
type account struct {
	name string // PostgreSQL's account
	uid  int
	gid  int
	self string              // our own account, which may connect
	cred *syscall.Credential // nil when PostgreSQL runs as ourselves
}

func currentAccount() (account, error) {
	me, err := user.Current()
	if err != nil {
		return account{}, fmt.Errorf("private PostgreSQL: uid %d has no name on this system, and PostgreSQL refuses such an account; run as a user that is listed in /etc/passwd: %w", os.Geteuid(), err)
	}
	if os.Geteuid() != 0 {
		return account{name: me.Username, uid: os.Geteuid(), gid: os.Getegid(), self: me.Username}, nil
	}
	pg, err := user.Lookup("postgres")
	if err != nil {
		return account{}, errors.New(`private PostgreSQL: PostgreSQL refuses to run as root, and there is no user "postgres" to run it as; run as an ordinary user, or make one: useradd --system --no-create-home postgres`)
	}
	uid, err := strconv.ParseUint(pg.Uid, 10, 32)
	if err != nil {
		return account{}, fmt.Errorf("private PostgreSQL: uid of user postgres: %w", err)
	}
	gid, err := strconv.ParseUint(pg.Gid, 10, 32)
	if err != nil {
		return account{}, fmt.Errorf("private PostgreSQL: gid of user postgres: %w", err)
	}
	return account{
		name: pg.Username,
		uid:  int(uid),
		gid:  int(gid),
		self: me.Username,
		cred: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid), Groups: []uint32{uint32(gid)}},
	}, nil
}

// command prepares a program that runs as the account, with an environment of
// its own: PGDATA, PGOPTIONS and their like from outside must not leak in.
func (a account) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: a.cred}
	cmd.Dir = "/"
	cmd.Env = []string{"LC_ALL=C", "TZ=UTC", "PATH=" + os.Getenv("PATH")}
	if lib := os.Getenv("LD_LIBRARY_PATH"); lib != "" {
		cmd.Env = append(cmd.Env, "LD_LIBRARY_PATH="+lib)
	}
	return cmd
}

// run executes a short program as the account and returns what it printed. It
// dies with us and with ctx.
func (a account) run(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := a.command(name, args...)
	if dir != "" {
		cmd.Dir = dir
	}
	onParentDeath(cmd.SysProcAttr, syscall.SIGKILL)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out

	started, ended := make(chan error, 1), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // see Server.launch
		err := cmd.Start()
		started <- err
		if err == nil {
			ended <- cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return "", err
	}
	select {
	case err := <-ended:
		return strings.TrimSpace(out.String()), err
	case <-ctx.Done():
		_ = cmd.Process.Kill()
		<-ended
		return strings.TrimSpace(out.String()), ctx.Err()
	}
}

// own gives a path to the account; nothing to do when that is ourselves.
func (a account) own(path string) error {
	if a.cred == nil {
		return nil
	}
	return os.Lchown(path, a.uid, a.gid)
}

// userName is the account name of a uid, or "uid N" when it has none.
func userName(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return u.Username
	}
	return "uid " + strconv.Itoa(uid)
}
