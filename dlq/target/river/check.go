package river

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/redrive-dlq/redrive/dlq/replay"
)

// What River's args do to bytes that they can't carry.
var (
	notJSONB      = &replay.Refusal{Code: "not_jsonb", Detail: "River keeps arguments as jsonb, which can't hold these bytes"}
	jsonbRewrites = &replay.Refusal{Code: "jsonb_rewrites", Detail: "River keeps arguments as jsonb, which would rewrite these bytes"}
)

// Check says why River can't carry the payload: its args are jsonb, which
// rewrites numbers, drops repeated keys, refuses NUL and holds no binary. Only
// text that comes back the same is carried.
func (t *Target) Check(ctx context.Context, tx pgx.Tx, items []replay.Item, payloads [][]byte) ([]*replay.Refusal, error) {
	out := make([]*replay.Refusal, len(items))
	var at []int
	var texts []string
	for i, it := range items {
		if _, out[i] = t.client(it); out[i] == nil {
			at, texts = append(at, i), append(texts, string(payloads[i]))
		}
	}
	return out, carried(ctx, tx, texts, at, out)
}

// carried asks about all texts in one query. When one of them makes it fail,
// the halves are asked apart, so that one bad text harms only itself.
func carried(ctx context.Context, tx pgx.Tx, texts []string, at []int, out []*replay.Refusal) error {
	if len(texts) == 0 {
		return nil
	}
	var same []bool
	err := pgx.BeginFunc(ctx, tx, func(sp pgx.Tx) error {
		rows, err := sp.Query(ctx, `
			SELECT v.text::jsonb::text = v.text
			FROM unnest($1::text[]) WITH ORDINALITY v(text, place)
			ORDER BY v.place`, texts)
		if err != nil {
			return err
		}
		same, err = pgx.CollectRows(rows, pgx.RowTo[bool])
		return err
	})
	switch {
	case unfit(err) && len(texts) == 1:
		out[at[0]] = notJSONB
		return nil
	case unfit(err):
		half := len(texts) / 2
		if err := carried(ctx, tx, texts[:half], at[:half], out); err != nil {
			return err
		}
		return carried(ctx, tx, texts[half:], at[half:], out)
	case err != nil:
		return fmt.Errorf("river target: check payloads: %w", err)
	}
	for i, ok := range same {
		if !ok {
			out[at[i]] = jsonbRewrites
		}
	}
	return nil
}

// unfit says that a text is no jsonb: bad data, or nested too deeply.
func unfit(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (strings.HasPrefix(pg.Code, "22") || pg.Code == "54001")
}
