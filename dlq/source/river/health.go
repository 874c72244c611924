package river

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/redrive-dlq/redrive/dlq/source"
)

// healthEvery is how often an unchanged state is written again.
const healthEvery = 5 * time.Second

// health keeps what is wrong per activity and writes it to the source's row.
type health struct {
	store *pgxpool.Pool
	id    source.ID
	log   *slog.Logger

	mu         sync.Mutex
	registered bool
	polled     bool              // the last poll succeeded
	faults     map[string]string // activity → what is wrong; guarded by mu
	written    string            // the message last written
	writtenAt  time.Time
}

func newHealth(store *pgxpool.Pool, id source.ID, log *slog.Logger) *health {
	return &health{store: store, id: id, log: log, faults: map[string]string{}}
}

// register makes the source's row once.
func (h *health) register(ctx context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.registered {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, defaultTimeout)
	defer cancel()
	if err := source.Register(ctx, h.store, h.id, source.KindRiver); err != nil {
		return err
	}
	h.registered = true
	return nil
}

// report takes the end of a step: nil is good news.
func (h *health) report(ctx context.Context, what string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.faults[what]
	delete(h.faults, what)
	if what == "poll" {
		h.polled = err == nil
	}
	if err != nil {
		h.faults[what] = describe(err)
		if h.faults[what] != before {
			h.log.WarnContext(ctx, "a source can't be read", "step", what, "error", h.faults[what])
		}
	}
	message := h.message()
	if message == h.written && time.Since(h.writtenAt) < healthEvery {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, defaultTimeout)
	defer cancel()
	if h.write(ctx, message) == nil {
		h.written, h.writtenAt = message, time.Now()
	}
}

// message joins the faults, each text once.
func (h *health) message() string {
	var list []string
	for _, what := range []string{"poll", "pass", "counts", "prune"} {
		if s := h.faults[what]; s != "" && (len(list) == 0 || list[len(list)-1] != s) {
			list = append(list, s)
		}
	}
	return strings.Join(list, " ")
}

// write fails only when the store is down, and then nobody could read it.
func (h *health) write(ctx context.Context, message string) error {
	if h.polled {
		if err := source.Seen(ctx, h.store, h.id); err != nil {
			return err
		}
	}
	if message == "" {
		return nil
	}
	return source.Failed(ctx, h.store, h.id, message)
}

// describe says what is wrong in words. Connection errors are not quoted: they
// name hosts and users.
func describe(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		switch pg.Code {
		case "42P01", "3F000":
			return "There is no table river_job in the configured schema: check its name, and that River's migrations ran there."
		case "42501":
			return "The database role may not read river_job: grant it USAGE on the schema and SELECT on the table."
		case "28P01", "28000":
			return "The source's database refused the sign-in: check the user and password of its address."
		case "3D000":
			return "The source's database doesn't exist: check its address."
		}
		return "The database answered with an error (" + pg.Code + "): " + forPeople(errors.New(pg.Message))
	}
	var connect *pgconn.ConnectError
	if errors.As(err, &connect) {
		return "The source's database can't be reached."
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "The source's database doesn't answer in time."
	}
	return forPeople(err)
}
