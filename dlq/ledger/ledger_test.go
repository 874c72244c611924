package ledger_test

import (
	"encoding/json"
	"testing"

	"github.com/redrive-dlq/redrive/dlq/ledger"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/migrations/testdb"
)

func TestBeginAndFinish(t *testing.T) {
	t.Parallel()
	pool, ctx := testdb.New(t), t.Context()
	key := ledger.Key{Environment: "production", Scope: "charge", Key: "k"}
	begin := func(k ledger.Key, want ledger.Answer) {
		t.Helper()
		got, err := ledger.Begin(ctx, pool, k)
		if err != nil || got != want {
			t.Fatalf("begin says %s, %v; want %s", got, err, want)
		}
	}
	begin(key, ledger.Begun)
	begin(key, ledger.Unknown)
	begin(ledger.Key{Environment: "staging", Scope: "charge", Key: "k"}, ledger.Begun) // another environment, another effect
	if err := ledger.Fail(ctx, pool, key, nil); err != nil {
		t.Fatal(err)
	}
	begin(key, ledger.Begun) // what failed may begin again
	if err := ledger.Finish(ctx, pool, key, json.RawMessage(`{"id":"ch_1"}`)); err != nil {
		t.Fatal(err)
	}
	begin(key, ledger.Done)
	// What is done stays done, with its first result.
	for _, again := range []func() error{
		func() error { return ledger.Finish(ctx, pool, key, json.RawMessage(`{"id":"ch_2"}`)) },
		func() error { return ledger.Fail(ctx, pool, key, nil) },
	} {
		if err := again(); err != nil {
			t.Fatal(err)
		}
	}
	row, ok, err := ledger.Of(ctx, pool, key)
	if err != nil || !ok || row.State != "done" || row.EffectID != "ch_1" || row.Result != `{"id":"ch_1"}` || row.Begins != 2 {
		t.Fatalf("%+v %v %v", row, ok, err)
	}
}

func TestResultsThatJSONBRefusesAreKept(t *testing.T) {
	t.Parallel()
	pool, ctx := testdb.New(t), t.Context()
	for name, result := range map[string]string{"nul": `{"id":"a\u0000b"}`, "half": `{"id":"\ud800"}`, "list": `[1]`} {
		key := ledger.Key{Environment: "production", Scope: "s", Key: name}
		if err := ledger.Finish(ctx, pool, key, json.RawMessage(result)); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		row, ok, err := ledger.Of(ctx, pool, key)
		if err != nil || !ok || row.Result != result || row.EffectID != "" {
			t.Errorf("%s: %+v %v %v", name, row, ok, err)
		}
	}
}

func TestKeysThatCantBe(t *testing.T) {
	t.Parallel()
	pool, ctx := testdb.New(t), t.Context()
	for _, k := range []ledger.Key{{}, {Environment: "e", Scope: "s"}, {Environment: "e", Key: "k"}, {Environment: "e", Scope: "s", Key: string(make([]byte, ledger.MaxKey+1))}} {
		if _, err := ledger.Begin(ctx, pool, k); !problem.Is(err, problem.Invalid) {
			t.Errorf("%.20v: %v", k, err)
		}
	}
	if _, ok, err := ledger.Of(ctx, pool, ledger.Key{Environment: "e", Scope: "s"}); ok || err != nil {
		t.Errorf("an empty key matches something: %v %v", ok, err)
	}
}
