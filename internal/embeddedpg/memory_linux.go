package embeddedpg

import (
	"os"
	"syscall"
)

// enough is the free space that a memory file system must have: a server is
// about 100 MB, and each package's tests run one.
const enough = 4 << 30

// TempDir is where disposable servers should live: in memory when there is
// plenty, since a new database is some 400 small files, which took 300 ms on a
// disk and 20 ms there. A TMPDIR set by the caller wins.
func TempDir() string {
	const memory = "/dev/shm"
	var st syscall.Statfs_t
	if os.Getenv("TMPDIR") != "" || syscall.Statfs(memory, &st) != nil {
		return os.TempDir()
	}
	if st.Bavail*uint64(st.Bsize) < enough {
		return os.TempDir()
	}
	if info, err := os.Stat(memory); err != nil || info.Mode()&os.ModeSticky == 0 {
		return os.TempDir()
	}
	return memory
}
