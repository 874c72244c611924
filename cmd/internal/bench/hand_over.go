package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/redrive-dlq/redrive/dlq/replay"
	httptarget "github.com/redrive-dlq/redrive/dlq/target/http"
	"github.com/redrive-dlq/redrive/migrations"
)

// handOver is a target that hands over as the console does, and counts it as
// delivered: nobody works on these jobs.
type handOver struct {
	client *river.Client[pgx.Tx]
	handed atomic.Int64

	mu sync.Mutex
	at map[int64]time.Time // when a replay was handed over last; nil: not noted
}

func newHandOver(pool *pgxpool.Pool) (*handOver, error) {
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{Schema: migrations.Schema, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, fmt.Errorf("hand-over: %w", err)
	}
	return &handOver{client: client}, nil
}

func (h *handOver) insert(ctx context.Context, tx pgx.Tx, ids []int64) error {
	all := make([]river.InsertManyParams, len(ids))
	for i, id := range ids {
		all[i] = river.InsertManyParams{Args: httptarget.DeliverArgs{ReplayID: id}, InsertOpts: &river.InsertOpts{Queue: "hand_over", MaxAttempts: 25}}
	}
	_, err := h.client.InsertManyFastTx(ctx, tx, all)
	return err
}

// Check implements replay.Target.
func (h *handOver) Check(_ context.Context, _ pgx.Tx, items []replay.Item, _ [][]byte) ([]*replay.Refusal, error) {
	return make([]*replay.Refusal, len(items)), nil
}

// Release implements replay.Target.
func (h *handOver) Release(ctx context.Context, tx pgx.Tx, items []replay.Item) ([]replay.Released, error) {
	ids, out := make([]int64, len(items)), make([]replay.Released, len(items))
	for i, it := range items {
		ids[i], out[i] = it.ReplayID, replay.Released{Ref: json.RawMessage("{}"), Delivered: true}
	}
	err := h.insert(ctx, tx, ids)
	h.handed.Add(int64(len(ids)))
	h.note(ids)
	return out, err
}

// note writes down when replays were handed over, by this process's clock and
// not by what the release says of itself.
func (h *handOver) note(ids []int64) {
	now := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.at == nil {
		return
	}
	for _, id := range ids {
		h.at[id] = now
	}
}

// noting begins to note, or ends it, and returns what was noted.
func (h *handOver) noting(on bool) map[int64]time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	noted := h.at
	h.at = nil
	if on {
		h.at = map[int64]time.Time{}
	}
	return noted
}
