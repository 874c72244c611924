package acceptance

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq/replay"
)

// carries judges for the test's own orders; releasing is the console's.
type carries struct{}

func (carries) Check(_ context.Context, _ pgx.Tx, items []replay.Item, _ [][]byte) ([]*replay.Refusal, error) {
	return make([]*replay.Refusal, len(items)), nil
}

func (carries) Release(context.Context, pgx.Tx, []replay.Item) ([]replay.Released, error) {
	return nil, errors.New("the test itself releases nothing")
}
