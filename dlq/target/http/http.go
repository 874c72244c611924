// Package httptarget sends a replay's stored bytes to a URL and reads the
// outcome from the answer.
package httptarget

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq/replay"
)

// Request headers that name the replay to the receiver. They never change
// between two deliveries of one replay.
const (
	HeaderKey     = "Idempotency-Key"
	HeaderJobID   = "Redrive-Job-Id"
	HeaderReplay  = "Redrive-Replay-Id"
	HeaderJobType = "Redrive-Job-Type"
)

// Target is replay.Target for URLs. Release only enqueues the hand-over, in
// the releasing transaction; the Worker sends.
type Target struct {
	// HandOver enqueues the delivery of replays inside tx.
	HandOver func(ctx context.Context, tx pgx.Tx, replayIDs []int64) error
}

// Check implements replay.Target: HTTP carries any bytes, but the names travel
// as headers, which would be refused or, worse, trimmed to another key.
func (t *Target) Check(_ context.Context, _ pgx.Tx, items []replay.Item, _ [][]byte) ([]*replay.Refusal, error) {
	out := make([]*replay.Refusal, len(items))
	for i, it := range items {
		out[i] = check(it)
	}
	return out, nil
}

func check(it replay.Item) *replay.Refusal {
	for _, name := range []struct{ what, value string }{{"idempotency key", it.Key.Key}, {"job id", it.JobID}, {"job type", it.JobType}} {
		if !inHeader(name.value) {
			return &replay.Refusal{Code: "not_a_header", Detail: "its " + name.what + " holds control characters, or spaces at an end, which no HTTP header carries"}
		}
	}
	return nil
}

// IgnoresPayload says that any bytes are carried.
func (t *Target) IgnoresPayload() bool { return true }

func inHeader(s string) bool {
	if strings.Trim(s, " \t") != s {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// Release implements replay.Target.
func (t *Target) Release(ctx context.Context, tx pgx.Tx, items []replay.Item) ([]replay.Released, error) {
	out := make([]replay.Released, len(items))
	var ids []int64
	for i, it := range items {
		if out[i].Refusal = check(it); out[i].Refusal == nil {
			ids = append(ids, it.ReplayID)
		}
	}
	if len(ids) == 0 {
		return out, nil
	}
	if err := t.HandOver(ctx, tx, ids); err != nil {
		return nil, fmt.Errorf("http target: hand over: %w", err)
	}
	return out, nil
}

// errNotLoopback refuses an address outside this machine. The check sits where
// the connection is made, so a name that resolves elsewhere is caught too.
var errNotLoopback = errors.New("only loopback addresses are allowed")

// NewClient makes the HTTP client for deliveries: no proxy from the
// environment, no redirects, loopback addresses only.
func NewClient() *http.Client {
	dialer := &net.Dialer{
		Timeout: 3 * time.Second,
		Control: func(_, address string, _ syscall.RawConn) error {
			host, _, err := net.SplitHostPort(address)
			if err != nil {
				return err
			}
			if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
				return errNotLoopback
			}
			return nil
		},
	}
	return &http.Client{
		Transport: &http.Transport{DialContext: dialer.DialContext, MaxIdleConnsPerHost: 4, IdleConnTimeout: 30 * time.Second,
			// A kept connection that the server closed would make net/http send again by itself.
			DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// request builds the delivery of one replay.
func request(ctx context.Context, it replay.Item, payload []byte, contentType string) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, it.Target.HTTP.URL, bytes.NewReader(payload))
	if err != nil {
		return nil, fmt.Errorf("http target: request: %w", err)
	}
	req.GetBody = nil // net/http must not send it twice by itself
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("User-Agent", "Redrive")
	set := func(name, value string) {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	set(HeaderKey, it.Key.Key)
	set(HeaderJobID, it.JobID)
	set(HeaderJobType, it.JobType)
	set(HeaderReplay, strconv.FormatInt(it.ReplayID, 10))
	return req, nil
}
