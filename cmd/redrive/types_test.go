package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMain lets the test binary be the command itself, so that its exit codes
// are the real ones.
func TestMain(m *testing.M) {
	if os.Getenv("REDRIVE_TEST_MAIN") == "1" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// redrive runs the command and returns what it printed and its exit code.
func redrive(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(os.Environ(), "REDRIVE_TEST_MAIN=1")
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func TestTypesCheck(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const good = "types:\n  a:\n    side_effects: [{kind: none}]\n    idempotency: {by: key}\n"
	for name, tt := range map[string]struct {
		yaml           string
		code           int
		stdout, stderr string
	}{
		"good":   {good, 0, "1 types, 0 sources: no fault", ""},
		"faults": {good + "    ownr: x\n    valid_for: soon\n", 1, "", "faults.yaml:5:5: types.a.ownr: unknown key \"ownr\"; did you mean \"owner\"?\nfaults.yaml:6:16: types.a.valid_for"},
	} {
		file := filepath.Join(dir, name+".yaml")
		if err := os.WriteFile(file, []byte(tt.yaml), 0o600); err != nil {
			t.Fatal(err)
		}
		stdout, stderr, code := redrive(t, "types", "check", file)
		if code != tt.code || !strings.Contains(stdout, tt.stdout) || !strings.Contains(stderr, tt.stderr) {
			t.Errorf("%s: exit code %d\n%s%s", name, code, stdout, stderr)
		}
	}
	if _, stderr, code := redrive(t, "types", "check", filepath.Join(dir, "none.yaml")); code != 1 || !strings.Contains(stderr, "none.yaml") {
		t.Errorf("no file: exit code %d, %s", code, stderr)
	}
}
