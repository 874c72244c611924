package dlq

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// secret is planted everywhere a worker may put one.
const secret = "Zp4vQm9tLx2sKd7yRb1nHw6c"

func TestCaptureHidesPlantedSecrets(t *testing.T) {
	t.Parallel()
	b := setup(t)
	raw := strings.ReplaceAll(`{"job_type":"t","job_id":"1","payload":{"password":"S","note":"Authorization: Bearer S"},
		"headers":{"authorization":"Bearer S","x-api-key":"S","note":"token=S"},"api_key":"S","destination":"https://bob:S@example.com/x",
		"reason":{"code":"E","text":"password=S"},
		"attempts":[{"at":"token=S","error_class":"E: token=S","message":"GET https://x.example.com/?access_token=S&page=2","stack":"curl -H 'Authorization: Bearer S'",
			"side_effect":"secret=S","cause":{"error_class":"C","message":"api_key: S","cause":{"message":"password='S' wrong"}}}]}`, "S", secret)
	b.one(t, mustParse(t, []byte(raw)))
	assertNoSecret(t, b, secret)
	if _, err := b.pool.Exec(t.Context(), `INSERT INTO redrive.inbox (document) VALUES ($1)`, raw[:len(raw)-1]); err != nil {
		t.Fatal(err)
	}
	if _, err := (&Inbox{Pool: b.pool, Capturer: b.c}).Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := get[int](t, b, `SELECT count(*) FROM redrive.quarantine`); n != 1 {
		t.Fatalf("%d quarantined", n)
	}
	if _, err := FoldCounters(t.Context(), b.pool); err != nil {
		t.Fatal(err)
	}
	assertNoSecret(t, b, secret)
}

// rawColumns hold what the door gave; nobody reads them without a reveal.
var rawColumns = map[string]bool{
	"payloads.bytes": true, "documents.headers_raw": true, "documents.extra_raw": true, "attempt_raws.raw": true, "quarantine.raw": true,
}

// assertNoSecret looks into every column of every table.
func assertNoSecret(t *testing.T, b *bundle, secret string) {
	t.Helper()
	rows, err := b.pool.Query(t.Context(), `
		SELECT table_name, column_name, data_type
		FROM information_schema.columns
		WHERE table_schema = 'redrive'`)
	if err != nil {
		t.Fatal(err)
	}
	type columnName struct{ Table, Column, Type string }
	columns, err := pgx.CollectRows(rows, pgx.RowToStructByPos[columnName])
	if err != nil || len(columns) < 100 {
		t.Fatalf("%d columns: %v", len(columns), err)
	}
	found := 0
	for _, c := range columns {
		text := c.Column + "::text"
		if c.Type == "bytea" {
			text = "encode(" + c.Column + ", 'escape')"
		}
		n := get[int](t, b, fmt.Sprintf(`SELECT count(*) FROM redrive.%s WHERE strpos(%s, $1) > 0`, pgx.Identifier{c.Table}.Sanitize(), text), secret)
		if rawColumns[c.Table+"."+c.Column] {
			found += n
		} else if n > 0 {
			t.Errorf("%s.%s tells the secret", c.Table, c.Column)
		}
	}
	if found < 4 {
		t.Errorf("the raw columns hold it %d times; this test looks for the wrong thing", found)
	}
}

func TestCaptureLargePayload(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var p bytes.Buffer
	p.WriteString(`{"rows":[`)
	for i := 0; p.Len() < 8<<20; i++ {
		fmt.Fprintf(&p, `{"sku": "SKU-%d", "qty": 1, "note": "row %d"},`, i, i)
	}
	p.WriteString(`{}],"long":"` + strings.Repeat("x", 2<<20) + `"}`)
	raw := []byte(`{"job_type":"import.catalog","job_id":"imp-10m","payload":` + p.String() + `}`)
	id := b.one(t, mustParse(t, raw)).ID
	if !bytes.Equal(b.payload(t, id, 1), p.Bytes()) {
		t.Error("the bytes differ")
	}
}
