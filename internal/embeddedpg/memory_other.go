//go:build !linux

package testdb

import "os"

// tempDir is where test servers live.
func tempDir() string { return os.TempDir() }
