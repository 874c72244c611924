package httptarget_test

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/redrive-dlq/redrive/dlq/ledger"
	"github.com/redrive-dlq/redrive/dlq/replay"
)

// TestHostileAnswers: whatever a receiver answers, its outcome is written.
func TestHostileAnswers(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	b := setup(t, r.URL)
	for i, c := range []struct {
		status int
		body   string
		want   string
	}{
		{200, `{"id":"a\u0000b"}`, "ended succeeded http_200 recovered done 1 unknown"},
		{200, `{"id":"` + strings.Repeat("é", 4000) + `"}`, "ended succeeded http_200 recovered done 1 unknown"},
		{200, "\x00\xff", "ended succeeded http_200 recovered done 1 unknown"},
		{400, "\x00\xff\u202e" + strings.Repeat("\x00", 5000), "ended failed http_400 open none 2 invalid_input"},
		{400, `{"error":"\u0000\ud800"}`, "ended failed http_400 open none 2 invalid_input"},
		{599, "x", "ended failed http_599 open unknown 2 unknown"},
		{999, "x", "ended failed http_999 open unknown 2 unknown"},
	} {
		r.answers(func(w http.ResponseWriter) {
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.body)
		})
		job, replayID := b.released(t, strconv.Itoa(i), []byte("x"))
		if err := b.deliver(t, replayID); err != nil {
			t.Errorf("%d %.20q: %v", c.status, c.body, err)
		}
		if s := b.see(t, job, replayID); s != c.want {
			t.Errorf("%d %.20q: %s, want %s", c.status, c.body, s, c.want)
		}
	}
}

// TestKnownAnswerSurvivesABusyKey: the answer came while a worker's
// transaction held the key; it is written when the key is free.
func TestKnownAnswerSurvivesABusyKey(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	b := setup(t, r.URL)
	tx, err := b.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	job, replayID := b.released(t, "1", []byte("x"))
	locked := make(chan error, 1)
	r.answers(func(w http.ResponseWriter) {
		// The worker holds the job's row; then it asks for the key, which the
		// outcome's transaction holds.
		_, err := tx.Exec(context.Background(), `SELECT id FROM redrive.dead_jobs WHERE id = $1 FOR NO KEY UPDATE`, job)
		w.WriteHeader(http.StatusBadRequest)
		go func() {
			if err == nil {
				for b.waiting() == 0 {
				}
				err = ledger.Fail(context.Background(), tx, ledger.Key{Environment: "production", Scope: "hook", Key: "key-1"}, nil)
			}
			if err == nil {
				err = tx.Commit(context.Background())
			}
			locked <- err
		}()
	})
	if err := b.deliver(t, replayID); err != nil {
		t.Error(err)
	}
	if err := <-locked; err != nil {
		t.Fatalf("the worker lost: %v", err)
	}
	if s := b.see(t, job, replayID); s != "ended failed http_400 open none 2 invalid_input" {
		t.Error(s)
	}
}

// waiting counts the sessions that wait for a row.
func (b *bundle) waiting() (n int) {
	_ = b.pool.QueryRow(context.Background(), `
		SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event IN ('transactionid', 'tuple')`).Scan(&n)
	return n
}

// TestBrokenLogDoesntSendTwice: the outcome can't be written at all; the replay
// ends unconfirmed, and is never sent again.
func TestBrokenLogDoesntSendTwice(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	b := setup(t, r.URL)
	job, replayID := b.released(t, "1", []byte("x"))
	if _, err := b.pool.Exec(t.Context(), `ALTER TABLE redrive.replays ADD CONSTRAINT broken CHECK (outcome IS DISTINCT FROM 'succeeded')`); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		_ = b.deliver(t, replayID)
	}
	if n := len(r.all()); n != 1 {
		t.Fatalf("sent %d times", n)
	}
	if s := b.see(t, job, replayID); s != "released  replaying none 1 unknown" {
		t.Fatal(s)
	}
	if _, err := b.pool.Exec(t.Context(), `UPDATE redrive.replays SET deadline_at = now()`); err != nil {
		t.Fatal(err)
	}
	if _, err := b.svc.Expire(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := b.see(t, job, replayID); s != "ended unconfirmed deadline open unknown 1 unknown" {
		t.Fatal(s)
	}
}

// TestNamesThatNoHeaderCarries: nothing is sent under a changed key.
func TestNamesThatNoHeaderCarries(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	b := setup(t, r.URL)
	for id, want := range map[string]string{"a\nb": replay.TargetCantCarry, " a": replay.TargetCantCarry, "a\x7f": replay.TargetCantCarry, "é a": replay.Eligible} {
		job := b.job(t, id, []byte("x"))
		v, err := b.svc.Judge(t.Context(), oncall, job)
		if err != nil || v.Code != want {
			t.Errorf("%q: %s, %v, want %s", id, v.Code, err, want)
		}
	}
}
