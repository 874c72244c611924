package embeddedpg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// minMajor is the oldest PostgreSQL that the schema works on.
const minMajor = 15

// binaries is one installation of the PostgreSQL server.
type binaries struct {
	dir     string
	version string // "15.14"
	major   int
}

func (b binaries) postgres() string { return filepath.Join(b.dir, "postgres") }
func (b binaries) initdb() string   { return filepath.Join(b.dir, "initdb") }

// places are where systems put the server's programs, which are often not in
// PATH: Debian, Red Hat, Alpine, Homebrew (both processors), Postgres.app, EDB.
var places = []string{
	"/usr/lib/postgresql/*/bin",
	"/usr/pgsql-*/bin",
	"/usr/libexec/postgresql*",
	"/opt/homebrew/opt/postgresql@*/bin",
	"/usr/local/opt/postgresql@*/bin",
	"/usr/local/pgsql/bin",
	"/Applications/Postgres.app/Contents/Versions/*/bin",
	"/Library/PostgreSQL/*/bin",
}

// findBinaries picks the installation to use: the one that the cluster was
// made with, or the newest for a new cluster. Without any it downloads one.
func (s *Server) findBinaries(ctx context.Context) (binaries, error) {
	want, err := clusterMajor(s.dir)
	if err == nil && want == 0 && s.cfg.CopyFrom != "" {
		want, err = clusterMajor(newLayout(s.cfg.CopyFrom))
	}
	if err != nil {
		return binaries{}, err
	}
	var dirs []string
	if s.cfg.BinDir != "" {
		dirs = []string{s.cfg.BinDir}
	} else {
		dirs = append(searchDirs(ctx), filepath.Join(s.dir.pg, "server", "bin"))
	}
	found := s.installations(ctx, dirs)
	if b, ok := choose(found, want); ok {
		return b, nil
	}
	if want != 0 && len(found) > 0 {
		return binaries{}, fmt.Errorf("%s was made by PostgreSQL %d, but here is only %s: install PostgreSQL %d, or choose another directory with --data-dir (or move this one away to start afresh)", s.dir.data, want, versions(found), want)
	}
	if s.cfg.BinDir != "" {
		return binaries{}, fmt.Errorf("no PostgreSQL server %d or newer in %s (it needs initdb and postgres)", minMajor, s.cfg.BinDir)
	}
	b, err := s.download(ctx, want)
	if err != nil {
		have := ""
		if len(found) > 0 {
			have = " (found only " + versions(found) + ")"
		}
		return binaries{}, fmt.Errorf("no PostgreSQL server %d or newer is installed%s, and downloading one failed: %w\ninstall it with one of: apt-get install postgresql; dnf install postgresql-server; apk add postgresql; brew install postgresql@17", minMajor, have, err)
	}
	return b, nil
}

// choose takes the installation of major version want, or the newest that is
// new enough when want is 0.
func choose(found []binaries, want int) (binaries, bool) {
	var best binaries
	for _, b := range found {
		if b.major < minMajor || (want != 0 && b.major != want) {
			continue
		}
		if b.major > best.major {
			best = b
		}
	}
	return best, best.major != 0
}

func searchDirs(ctx context.Context) []string {
	var dirs []string
	if p, err := exec.LookPath("initdb"); err == nil {
		if real, err := filepath.EvalSymlinks(p); err == nil {
			p = real
		}
		dirs = append(dirs, filepath.Dir(p))
	}
	if out, err := exec.CommandContext(ctx, "pg_config", "--bindir").Output(); err == nil {
		dirs = append(dirs, strings.TrimSpace(string(out)))
	}
	for _, pattern := range places {
		m, _ := filepath.Glob(pattern) // the patterns are well formed
		dirs = append(dirs, m...)
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// installations asks each directory's postgres for its version, as the account
// that will run it: a directory it can't enter is of no use.
func (s *Server) installations(ctx context.Context, dirs []string) []binaries {
	var found []binaries
	for _, dir := range dirs {
		b := binaries{dir: dir}
		if _, err := os.Stat(b.initdb()); err != nil {
			continue
		}
		out, err := s.acct.run(ctx, "", b.postgres(), "--version")
		if err != nil {
			continue
		}
		if b.version, b.major = parseVersion(out); b.major != 0 {
			found = append(found, b)
		}
	}
	return found
}

var versionPattern = regexp.MustCompile(`\(PostgreSQL\) ((\d+)[.\w]*)`)

// parseVersion reads "postgres (PostgreSQL) 15.14 (Debian …)".
func parseVersion(out string) (version string, major int) {
	m := versionPattern.FindStringSubmatch(out)
	if m == nil {
		return "", 0
	}
	major, _ = strconv.Atoi(m[2])
	return m[1], major
}

func versions(found []binaries) string {
	var v []string
	for _, b := range found {
		v = append(v, b.version)
	}
	return strings.Join(v, ", ")
}

// clusterMajor is the major version that made the cluster; 0 when there is
// none yet.
func clusterMajor(d layout) (int, error) {
	path := filepath.Join(d.data, "PG_VERSION")
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		if entries, err := os.ReadDir(d.data); err == nil && len(entries) > 0 {
			return 0, fmt.Errorf("%s is not empty, but is no PostgreSQL cluster (it has no PG_VERSION): move it away, or choose another directory with --data-dir", d.data)
		}
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the version of the cluster: %w", err)
	}
	major, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return 0, fmt.Errorf("%s does not hold a PostgreSQL major version of %d or newer: choose another directory with --data-dir", path, minMajor)
	}
	return major, nil
}
