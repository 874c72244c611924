// Package providers are the demo's fake third parties: a mail provider, a
// payment provider, a CRM and others, served on loopback. They fail the way
// real ones do, and they remember every effect, so that "exactly once" can be
// checked from outside.
package providers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// EnvironmentHeader says which environment's account at the provider is used.
const EnvironmentHeader = "Demo-Environment"

// maxHang ends a hanging answer even when the client never gives up.
const maxHang = 15 * time.Second

// Server serves all providers on one loopback address.
type Server struct {
	pool   *pgxpool.Pool
	log    *slog.Logger
	http   *http.Server
	listen net.Listener
	done   chan struct{}
	stop   chan struct{} // closed to end hanging answers
}

// Start listens on addr (127.0.0.1:0 picks a port) and serves until Stop.
// [Migrate] must have run.
func Start(pool *pgxpool.Pool, addr string, log *slog.Logger) (*Server, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil || !net.ParseIP(host).IsLoopback() {
		return nil, fmt.Errorf("demo providers: %q is no loopback address; use 127.0.0.1:0", addr)
	}
	listen, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("demo providers: listen on %s: %w", addr, err)
	}
	s := &Server{pool: pool, log: log, listen: listen, done: make(chan struct{}), stop: make(chan struct{})}
	s.http = &http.Server{Handler: s.routes(), ReadHeaderTimeout: 5 * time.Second}
	go func() {
		defer close(s.done)
		if err := s.http.Serve(listen); !errors.Is(err, http.ErrServerClosed) {
			log.Error("demo providers stopped", "error", err)
		}
	}()
	return s, nil
}

// URL is the base address: http://127.0.0.1:PORT.
func (s *Server) URL() string { return "http://" + s.listen.Addr().String() }

// Stop ends hanging answers and the server.
func (s *Server) Stop(ctx context.Context) error {
	close(s.stop)
	err := s.http.Shutdown(ctx)
	if err != nil {
		_ = s.http.Close()
	}
	<-s.done
	return err
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	for _, k := range kinds {
		path := "/" + k.provider + "/" + k.resource
		mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) { s.act(w, r, k) })
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) { s.list(w, r, k) })
	}
	mux.HandleFunc("GET /effects", func(w http.ResponseWriter, r *http.Request) { s.list(w, r, kind{}) })
	mux.HandleFunc("POST /faults", s.plant)
	mux.HandleFunc("POST /outages", s.beginOutage)
	mux.HandleFunc("DELETE /outages", s.endOutage)
	return mux
}

// act is one request for an effect.
func (s *Server) act(w http.ResponseWriter, r *http.Request, k kind) {
	raw, body, err := readBody(w, r)
	if err != nil {
		refuse(w, Refusal{Status: http.StatusBadRequest, Code: "invalid_body", Message: "the body is no JSON object"})
		return
	}
	environment, key := r.Header.Get(EnvironmentHeader), r.Header.Get("Idempotency-Key")
	if environment == "" {
		environment = "production"
	}
	if key == "" {
		key, _ = body[k.keyField].(string)
	}
	down, err := isDown(r.Context(), s.pool, environment, k.provider)
	if err != nil {
		s.broken(w, err)
		return
	}
	if down {
		refuse(w, Refusal{Status: http.StatusServiceUnavailable, Code: "outage", Message: "the service is down; we are working on it"})
		return
	}
	if k.validate != nil {
		if no := k.validate(body); no != nil {
			refuse(w, *no)
			return
		}
	}
	fault, err := takeFault(r.Context(), s.pool, environment, k.provider, key)
	if err != nil {
		s.broken(w, err)
		return
	}
	if fault != nil && fault.Mode == Answer {
		refuse(w, Refusal{Status: fault.Status, RetryAfter: fault.RetryAfter, Code: fault.Code, Message: fault.Message})
		return
	}
	if fault != nil && fault.Mode == Hang {
		s.hang(r)
		return
	}
	// The effect is not undone by a client that went away: neither is a real one.
	id, err := Record(context.WithoutCancel(r.Context()), s.pool, environment, k.provider, k.resource, key, raw, time.Now())
	if err != nil {
		s.broken(w, err)
		return
	}
	if fault != nil { // HangAfter
		s.hang(r)
		return
	}
	answer(w, http.StatusCreated, map[string]string{"id": id})
}

// hang gives no answer until the client has left, then cuts the connection.
func (s *Server) hang(r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-s.stop:
	case <-time.After(maxHang):
	}
	panic(http.ErrAbortHandler) // closes the connection without an answer
}

// list answers what happened, by key (also send_id) and environment.
func (s *Server) list(w http.ResponseWriter, r *http.Request, k kind) {
	q := r.URL.Query()
	key := q.Get("key")
	if key == "" && k.keyField != "" {
		key = q.Get(k.keyField)
	}
	provider := k.provider
	if provider == "" {
		provider = q.Get("provider")
	}
	effects, err := Effects(r.Context(), s.pool, q.Get("environment"), provider, k.resource, key)
	if err != nil {
		s.broken(w, err)
		return
	}
	if effects == nil {
		effects = []Effect{}
	}
	answer(w, http.StatusOK, map[string]any{"items": effects, "total": len(effects)})
}

// plant lets a test make the next requests of a key fail.
func (s *Server) plant(w http.ResponseWriter, r *http.Request) {
	var f Fault
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(&f)
	if err != nil || f.Environment == "" || f.Provider == "" || f.Key == "" || f.Remaining < 1 ||
		f.Mode != Hang && f.Mode != HangAfter && (f.Mode != Answer || f.Status < 400 || f.Status > 599) {
		refuse(w, Refusal{Status: http.StatusUnprocessableEntity, Code: "invalid_fault", Message: "needs environment, provider, key, remaining ≥ 1 and mode: answer with a status from 400 to 599, hang or hang_after"})
		return
	}
	if err := Plant(r.Context(), s.pool, f); err != nil {
		s.broken(w, err)
		return
	}
	answer(w, http.StatusCreated, f)
}

func (s *Server) broken(w http.ResponseWriter, err error) {
	s.log.Error("demo provider failed", "error", err)
	refuse(w, Refusal{Status: http.StatusInternalServerError, Code: "internal", Message: "internal error"})
}

func readBody(w http.ResponseWriter, r *http.Request) (raw []byte, body map[string]any, err error) {
	raw, err = io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		return nil, nil, err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	err = d.Decode(&body)
	return raw, body, err
}

func refuse(w http.ResponseWriter, no Refusal) {
	if no.RetryAfter != "" {
		w.Header().Set("Retry-After", no.RetryAfter)
	}
	answer(w, no.Status, map[string]any{"error": no})
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client has left: nothing to tell it
}
