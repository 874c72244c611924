package httptarget

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/redrive-dlq/redrive/dlq/ledger"
	"github.com/redrive-dlq/redrive/dlq/replay"
)

// DeliverArgs is Redrive's own job for one delivery: it carries an id only.
type DeliverArgs struct {
	ReplayID int64 `json:"replay_id"`
}

// Kind implements river.JobArgs.
func (DeliverArgs) Kind() string { return "redrive_http_deliver" }

const (
	// SendTimeout bounds one delivery.
	SendTimeout = 20 * time.Second
	// answerLimit is how much of an answer is read, in bytes.
	answerLimit = 4 << 10

	recordTries = 3
	recordPause = 200 * time.Millisecond
)

// Worker sends claimed replays. A replay is claimed (committed) before its
// first byte leaves, so a crash in the middle never sends it twice: it ends
// as unconfirmed at its deadline.
type Worker struct {
	river.WorkerDefaults[DeliverArgs]
	Service *replay.Service
	Client  *http.Client
	// Retry is how long after a refused connection the next try is made.
	Retry time.Duration
}

// Timeout implements river.Worker.
func (w *Worker) Timeout(*river.Job[DeliverArgs]) time.Duration { return SendTimeout + 10*time.Second }

// Work implements river.Worker.
func (w *Worker) Work(ctx context.Context, job *river.Job[DeliverArgs]) error {
	it, payload, ok, err := w.Service.Claim(ctx, job.Args.ReplayID)
	if err != nil || !ok {
		return err
	}
	sendCtx, cancel := context.WithTimeout(ctx, SendTimeout)
	defer cancel()
	req, err := request(sendCtx, it, payload, contentType(payload))
	if err != nil {
		return w.record(ctx, it, replay.End{Outcome: replay.Skipped, Code: "bad_target", Detail: "the target's URL can't be used"})
	}
	start := time.Now()
	res, err := w.Client.Do(req)
	if err != nil {
		return w.transportFailed(ctx, it, err)
	}
	defer func() { _ = res.Body.Close() }() // nothing more is wanted from it
	body, _ := io.ReadAll(io.LimitReader(res.Body, answerLimit))
	return w.record(ctx, it, outcome(it, res.StatusCode, body, time.Since(start)))
}

// transportFailed: no connection means provably not accepted, so River tries
// the hand-over again; anything later is ambiguous and is never sent again.
func (w *Worker) transportFailed(ctx context.Context, it replay.Item, err error) error {
	if errors.Is(err, errNotLoopback) {
		return w.record(ctx, it, replay.End{Outcome: replay.Skipped, Code: "address_refused", Detail: "not replayed because the target's address isn't on this machine"})
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		if err := w.Service.Unclaim(ctx, it.ReplayID); err != nil {
			return err
		}
		return river.JobSnooze(w.Retry)
	}
	return w.record(ctx, it, replay.End{Outcome: replay.Unconfirmed, Code: "no_answer", EffectUnknown: true,
		Detail: "the request left and no answer came"})
}

// NextRetry implements river.Worker: a claim that failed is tried again soon
// and in small steps, since nothing has left.
func (w *Worker) NextRetry(job *river.Job[DeliverArgs]) time.Time {
	return time.Now().Add(time.Duration(min(job.Attempt, 30)) * time.Second)
}

// record writes the outcome. It is known only here, so it is tried again while
// a worker's transaction is in the way, and a few times after other faults.
func (w *Worker) record(ctx context.Context, it replay.Item, e replay.End) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	for try := 1; ; try++ {
		err := w.recordOnce(ctx, it, e)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil || (try >= recordTries && !ledger.IsBusy(err)) {
			return fmt.Errorf("http target: outcome of replay %d: %w", it.ReplayID, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(recordPause):
		}
	}
}

// recordOnce writes the outcome, and for a success the ledger's row, in one
// transaction: both or neither.
func (w *Worker) recordOnce(ctx context.Context, it replay.Item, e replay.End) error {
	return pgx.BeginFunc(ctx, w.Service.Pool, func(tx pgx.Tx) error {
		if err := ledger.GiveWay(ctx, tx); err != nil {
			return err
		}
		if e.Outcome == replay.Succeeded && it.Key.Key != "" {
			result, err := json.Marshal(map[string]string{"id": e.EffectID, "replay": strconv.FormatInt(it.ReplayID, 10)})
			if err != nil {
				return err
			}
			if err := ledger.Finish(ctx, tx, it.Key, result); err != nil {
				return err
			}
		}
		_, err := w.Service.RecordTx(ctx, tx, it.ReplayID, e)
		return err
	})
}

// contentType tells JSON from other bytes.
func contentType(payload []byte) string {
	if json.Valid(payload) {
		return "application/json"
	}
	return "application/octet-stream"
}
