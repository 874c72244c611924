package river_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/dlq/replay"
)

// TestManyPayloadsAreCheckedAtOnce asks about good and bad ones together: each
// gets the answer that it would get alone, and the transaction stays usable.
func TestManyPayloadsAreCheckedAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, true)
	kinds := []struct{ payload, code string }{
		{`{"a": 1}`, ""},
		{`{"a":1}`, "jsonb_rewrites"},
		{`{"a": "\u0000"}`, "not_jsonb"},
		{"\x00\xff", "not_jsonb"},
		{string(bytes.Repeat([]byte("["), 50_000)), "not_jsonb"}, // deeper than the server's stack
		{``, "not_jsonb"},
	}
	river := jobtype.Target{River: &jobtype.RiverTarget{Client: "app-prod", Queue: "default"}}
	var items []replay.Item
	var payloads [][]byte
	var want []string
	for i := range 60 {
		k := kinds[0]
		if i%7 == 0 {
			k = kinds[(i/7)%len(kinds)]
		}
		items = append(items, replay.Item{DeadJobID: int64(i), Environment: "production", Target: river})
		payloads, want = append(payloads, []byte(k.payload)), append(want, k.code)
	}
	items[30].Environment, want[30] = "staging", "environment"
	err := pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) error {
		got, err := b.target.Check(t.Context(), tx, items, payloads)
		if err != nil {
			return err
		}
		for i, refusal := range got {
			code := ""
			if refusal != nil {
				code = refusal.Code
			}
			if code != want[i] {
				return fmt.Errorf("%.20q: %q, want %q", payloads[i], code, want[i])
			}
		}
		_, err = tx.Exec(t.Context(), `SELECT 1`)
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
