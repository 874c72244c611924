//go:build unix && !linux

package embeddedpg

import (
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// onParentDeath does nothing: only Linux has a parent death signal. Elsewhere a
// killed process leaves its server running until the next Start stops it.
func onParentDeath(*syscall.SysProcAttr, syscall.Signal) {}

// alive reports whether a process exists.
func alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}

// servesDir reports whether a process is a PostgreSQL started on dataDir.
func servesDir(pid int, dataDir string) bool {
	out, err := exec.Command("ps", "-ww", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	line := string(out)
	return err == nil && strings.Contains(line, "postgres") && strings.Contains(line, "-D "+dataDir+" ")
}

// serversOf lists nothing: children can't be told by their directory here.
// PostgreSQL's own shared memory check stands in for it.
func serversOf(string) []int { return nil }
