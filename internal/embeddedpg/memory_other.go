//go:build unix && !linux

package embeddedpg

import "os"

// TempDir is where disposable servers should live.
func TempDir() string { return os.TempDir() }
