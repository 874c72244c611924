package board

import (
	"testing"
	"time"

	"github.com/redrive-dlq/redrive/dlq/problem"
)

// walk reads all pages of a query forwards and checks that they lead back.
func (b *bundle) walk(t *testing.T, batch int64, q ItemQuery) (rows []Replay) {
	t.Helper()
	var pages []ItemPage
	for {
		page, err := Items(t.Context(), b.pool, batch, q)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, page)
		rows = append(rows, page.Rows...)
		if page.Next == "" {
			break
		}
		q.Cursor = page.Next
	}
	for i := len(pages) - 1; i > 0; i-- {
		q.Cursor = pages[i].Prev
		back, err := Items(t.Context(), b.pool, batch, q)
		if err != nil || len(back.Rows) != len(pages[i-1].Rows) || back.Rows[0].ID != pages[i-1].Rows[0].ID {
			t.Fatalf("page %d leads back to %d rows, %v", i, len(back.Rows), err)
		}
	}
	if pages[0].Prev != "" {
		t.Error("there is a page before the first")
	}
	return rows
}

func TestItems(t *testing.T) {
	t.Parallel()
	b := setup(t)
	batch := b.batch(t, "production", "mail", "running")
	b.add(t, batch, 5, item{verdict: "key_done"})
	b.add(t, batch, 7, item{state: "pending"})
	b.add(t, batch, 3, item{state: "released", released: time.Second})
	b.add(t, batch, 4, item{state: "ended", outcome: "succeeded", released: time.Minute, ended: time.Second})
	b.add(t, batch, 2, item{state: "ended", outcome: "skipped", code: "changed", ended: time.Second})
	b.add(t, b.batch(t, "production", "mail", "running"), 9, item{state: "pending"})
	for _, c := range []struct {
		q    ItemQuery
		want int
	}{
		{ItemQuery{}, 21}, {ItemQuery{Limit: 1}, 21}, {ItemQuery{Limit: 21}, 21}, {ItemQuery{Limit: MaxItems}, 21},
		{ItemQuery{Verdict: "key_done", Limit: 2}, 5}, {ItemQuery{Verdict: "eligible", Limit: 3}, 16}, {ItemQuery{Verdict: "too_old"}, 0},
		{ItemQuery{State: "pending", Limit: 3}, 7}, {ItemQuery{State: "ready"}, 0}, {ItemQuery{State: "released", Limit: 2}, 3},
		{ItemQuery{State: "succeeded", Limit: 3}, 4}, {ItemQuery{State: "skipped", Limit: 1}, 2}, {ItemQuery{State: "failed"}, 0},
		{ItemQuery{State: "succeeded", Verdict: "key_done"}, 0},
	} {
		rows := b.walk(t, batch, c.q)
		if len(rows) != c.want {
			t.Errorf("%+v: %d rows, want %d", c.q, len(rows), c.want)
		}
		for i, r := range rows {
			if i > 0 && r.ID <= rows[i-1].ID || c.q.Verdict != "" && r.Verdict != c.q.Verdict || c.q.State != "" && r.State != c.q.State && r.Outcome != c.q.State {
				t.Errorf("%+v: row %d is %+v", c.q, i, r)
			}
		}
	}
}

func TestItemsRefuse(t *testing.T) {
	t.Parallel()
	b := setup(t)
	batch := b.batch(t, "production", "mail", "running")
	b.add(t, batch, 3, item{state: "pending"})
	page, err := Items(t.Context(), b.pool, batch, ItemQuery{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	for what, q := range map[string]ItemQuery{
		"an unknown state":           {State: "planned' OR true"},
		"too many":                   {Limit: MaxItems + 1},
		"less than none":             {Limit: -1},
		"no cursor":                  {Cursor: "nonsense"},
		"a cursor of another filter": {State: "pending", Limit: 1, Cursor: page.Next},
	} {
		if _, err := Items(t.Context(), b.pool, batch, q); !problem.Is(err, problem.Invalid) {
			t.Errorf("%s: %v, want Invalid", what, err)
		}
	}
}
