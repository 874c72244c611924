package embeddedpg

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

// offered are the versions that can be downloaded, newest first.
var offered = []embeddedpostgres.PostgresVersion{
	embeddedpostgres.V17, embeddedpostgres.V16, embeddedpostgres.V15,
}

// download fetches a PostgreSQL server into the data directory, where later
// runs find it. want is the major version needed, 0 for any.
//
// The library only knows how to fetch *and* run a server, and its way of
// running one lacks what this package is for. So it runs a throw-away cluster
// once; whether that worked (it can't as root) is not important, only whether
// the programs are there afterwards.
func (s *Server) download(ctx context.Context, want int) (binaries, error) {
	version := offered[0]
	if want != 0 {
		version = ""
		for _, v := range offered {
			if _, major := parseVersion("(PostgreSQL) " + string(v)); major == want {
				version = v
			}
		}
		if version == "" {
			return binaries{}, fmt.Errorf("version %d is not offered for download", want)
		}
	}
	s.cfg.Logger.Info("no PostgreSQL found here, downloading one", "version", string(version))

	scratch, err := os.MkdirTemp(s.dir.root, "download-")
	if err != nil {
		return binaries{}, err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	port, err := freePort()
	if err != nil {
		return binaries{}, err
	}
	server := filepath.Join(scratch, "server")
	tried := make(chan error, 1)
	go func() {
		pg := embeddedpostgres.NewDatabase(embeddedpostgres.DefaultConfig().
			Version(version).
			CachePath(filepath.Join(scratch, "cache")).
			RuntimePath(filepath.Join(scratch, "run")).
			DataPath(filepath.Join(scratch, "data")).
			BinariesPath(server).
			Port(uint32(port)).
			Logger(io.Discard))
		err := pg.Start()
		if err == nil {
			err = pg.Stop()
		}
		tried <- err
	}()
	select {
	case err = <-tried:
	case <-ctx.Done():
		return binaries{}, ctx.Err()
	}
	if _, statErr := os.Stat(filepath.Join(server, "bin", "initdb")); statErr != nil {
		return binaries{}, err
	}
	keep := filepath.Join(s.dir.pg, "server")
	if err := os.RemoveAll(keep); err != nil {
		return binaries{}, err
	}
	if err := os.Rename(server, keep); err != nil {
		return binaries{}, err
	}
	if b, ok := choose(s.installations(ctx, []string{filepath.Join(keep, "bin")}), want); ok {
		return b, nil
	}
	return binaries{}, fmt.Errorf("the downloaded server does not run on this system")
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port, nil
}
