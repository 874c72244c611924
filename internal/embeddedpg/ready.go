package embeddedpg

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// startTimeout is generous: after a crash the server first replays its log.
const startTimeout = 2 * time.Minute

// launchUntilReady starts the server and waits until it accepts connections.
func (s *Server) launchUntilReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := s.checkPort(); err != nil {
		return err
	}
	for try := 0; ; try++ {
		if err := s.launch(); err != nil {
			return err
		}
		conn, err := s.connect(ctx)
		if err == nil {
			err = s.setUp(ctx, conn)
			_ = conn.Close(context.WithoutCancel(ctx))
			if err == nil {
				return nil
			}
		}
		s.endNow()
		words := s.logs.words()
		if strings.Contains(words, "pre-existing shared memory block") && try < 50 && ctx.Err() == nil {
			// Backends of a killed server are still on their way out.
			time.Sleep(200 * time.Millisecond)
			continue
		}
		if portTaken(words) {
			return s.portError()
		}
		return fmt.Errorf("PostgreSQL %s did not start on %s: %w%s", s.bin.version, s.dir.data, err, s.logs.suffix())
	}
}

// connect opens the first connection, by the socket.
func (s *Server) connect(ctx context.Context) (*pgx.Conn, error) {
	for {
		conn, err := pgx.Connect(ctx, s.socketURL("postgres"))
		if err == nil {
			return conn, nil
		}
		select {
		case <-s.done:
			if s.exit != nil {
				return nil, errors.New("it ended at once")
			}
			return nil, errors.New("it was stopped")
		case <-ctx.Done():
			return nil, fmt.Errorf("%w (%w)", ctx.Err(), err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// setUp makes the database and, for TCP, a password of this run, which is
// written down nowhere.
func (s *Server) setUp(ctx context.Context, conn *pgx.Conn) error {
	var exists bool
	err := conn.QueryRow(ctx, `select exists (select from pg_database where datname = $1)`, Database).Scan(&exists)
	if err != nil {
		return fmt.Errorf("look for the database: %w", err)
	}
	if !exists {
		if _, err := conn.Exec(ctx, `create database `+Database); err != nil {
			return fmt.Errorf("make the database: %w", err)
		}
	}
	if s.cfg.Port == 0 {
		return nil
	}
	s.password = rand.Text()
	if _, err := conn.Exec(ctx, `alter role `+Role+` password '`+s.password+`'`); err != nil {
		return fmt.Errorf("set the password of this run: %w", err)
	}
	return nil
}

// endNow stops a server that failed to come up.
func (s *Server) endNow() {
	select {
	case <-s.done:
		return
	default:
	}
	_ = s.cmd.Process.Signal(syscall.SIGQUIT)
	select {
	case <-s.done:
	case <-time.After(5 * time.Second):
		_ = s.cmd.Process.Kill()
		<-s.done
	}
}

func (s *Server) checkPort() error {
	if s.cfg.Port == 0 {
		return nil
	}
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", s.cfg.Port))
	if err != nil {
		return s.portError()
	}
	return l.Close()
}

func (s *Server) portError() error {
	return fmt.Errorf("port %d on 127.0.0.1 is in use by another program: stop that, or choose another port for the private PostgreSQL", s.cfg.Port)
}
