package embeddedpg

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// onParentDeath makes the kernel send sig to the child when the thread that
// forked it ends. Go sets it after the change of user, which would clear it.
func onParentDeath(attr *syscall.SysProcAttr, sig syscall.Signal) { attr.Pdeathsig = sig }

// alive reports whether a process exists and still runs. A zombie that nobody
// collects (containers without an init) counts as ended.
func alive(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, after, ok := strings.Cut(string(stat), ") ") // the name may hold blanks
	return ok && !strings.HasPrefix(after, "Z") && !strings.HasPrefix(after, "X")
}

// servesDir reports whether a process is a PostgreSQL that works in dataDir:
// the postmaster and each of its children have changed into it.
func servesDir(pid int, dataDir string) bool {
	proc := "/proc/" + strconv.Itoa(pid)
	cwd, err := os.Readlink(proc + "/cwd")
	if err != nil || cwd != dataDir {
		return false
	}
	exe, err := os.Readlink(proc + "/exe")
	if err != nil {
		return false
	}
	// After an upgrade of the package the running binary reads "… (deleted)".
	name := filepath.Base(strings.TrimSuffix(exe, " (deleted)"))
	return (name == "postgres" || name == "postmaster") && alive(pid)
}

// serversOf lists the live PostgreSQL processes that work in dataDir.
func serversOf(dataDir string) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var pids []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && servesDir(pid, dataDir) {
			pids = append(pids, pid)
		}
	}
	return pids
}
