package providers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/jackc/pgx/v5"
)

// outageDDL keeps which providers are down.
const outageDDL = `
CREATE TABLE IF NOT EXISTS demo_app.outages (
    environment text NOT NULL,
    provider    text NOT NULL,
    after       integer NOT NULL DEFAULT 0,
    PRIMARY KEY (environment, provider)
);`

// Outage is a provider that is down for everybody in an environment: it answers
// 503 and does nothing. It is a switch, thrown by POST /outages and DELETE
// /outages, for watching a batch stop by itself and go on.
type Outage struct {
	Environment string `json:"environment"`
	Provider    string `json:"provider"`
	After       int    `json:"after"` // requests that it still answers; 0: down at once
}

// Begin makes a provider fail.
func Begin(ctx context.Context, q Querier, o Outage) error {
	var name string
	err := q.QueryRow(ctx, `
		INSERT INTO demo_app.outages (environment, provider, after)
		VALUES ($1, $2, $3)
		ON CONFLICT (environment, provider) DO UPDATE SET after = excluded.after
		RETURNING provider`, o.Environment, o.Provider, o.After).Scan(&name)
	if err != nil {
		return fmt.Errorf("demo providers: begin outage: %w", err)
	}
	return nil
}

// End makes a provider well again; it may be well already.
func End(ctx context.Context, q Querier, environment, provider string) error {
	var name string
	err := q.QueryRow(ctx, `
		DELETE FROM demo_app.outages
		WHERE environment = $1 AND provider = $2
		RETURNING provider`, environment, provider).Scan(&name)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("demo providers: end outage: %w", err)
	}
	return nil
}

// isDown counts a request and says whether its provider is down.
func isDown(ctx context.Context, q Querier, environment, provider string) (down bool, err error) {
	err = q.QueryRow(ctx, `
		UPDATE demo_app.outages
		SET after = after - 1
		WHERE environment = $1 AND provider = $2
		RETURNING after < 0`, environment, provider).Scan(&down)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("demo providers: outage: %w", err)
	}
	return down, nil
}

// beginOutage and endOutage are the switch.
func (s *Server) beginOutage(w http.ResponseWriter, r *http.Request) {
	s.switchOutage(w, r, func(o Outage) error { return Begin(r.Context(), s.pool, o) })
}

func (s *Server) endOutage(w http.ResponseWriter, r *http.Request) {
	s.switchOutage(w, r, func(o Outage) error { return End(r.Context(), s.pool, o.Environment, o.Provider) })
}

func (s *Server) switchOutage(w http.ResponseWriter, r *http.Request, act func(Outage) error) {
	var o Outage
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(&o)
	if err != nil || o.Environment == "" || !isProvider(o.Provider) || o.After < 0 {
		refuse(w, Refusal{Status: http.StatusUnprocessableEntity, Code: "invalid_outage", Message: "needs environment and provider, one that there is; after, the requests still answered, may be left out"})
		return
	}
	if err := act(o); err != nil {
		s.broken(w, err)
		return
	}
	answer(w, http.StatusOK, o)
}

func isProvider(name string) bool {
	for _, k := range kinds {
		if k.provider == name {
			return true
		}
	}
	return false
}
