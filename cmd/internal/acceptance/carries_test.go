package acceptance

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq/replay"
)

// carries judges for the test's own orders; releasing is the console's.
type carries struct{}

func (carries) Check(context.Context, pgx.Tx, replay.Item, []byte) (*replay.Refusal, error) {
	return nil, nil
}

func (carries) Release(context.Context, pgx.Tx, replay.Item) (replay.Released, *replay.Refusal, error) {
	return replay.Released{}, nil, errors.New("the test itself releases nothing")
}
