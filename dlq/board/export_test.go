package board

import (
	"bytes"
	"encoding/csv"
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestCellsAreNoFormulas: whatever a text is, no spreadsheet takes its cell for
// a formula, and nothing of it is lost.
func TestCellsAreNoFormulas(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SampledFrom([]string{"", "=", "+", "-", "@", "\t", "\r", "\n", "\x00", "a"}).Draw(t, "first") + rapid.String().Draw(t, "rest")
		cell := Cell(text)
		if strings.TrimPrefix(cell, "'") != strings.TrimPrefix(text, "'") {
			t.Fatalf("%q became %q", text, cell)
		}
		if cell != "" && strings.ContainsRune("=+-@\t\r\n\x00", rune(cell[0])) {
			t.Fatalf("%q is a formula", cell)
		}
	})
}

// TestExportReadsAllChunks exports more than one chunk, in order, once each.
func TestExportReadsAllChunks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	batch := b.batch(t, "production", "mail", "done")
	const n = 2*exportChunk + 1
	b.add(t, batch, n, item{state: "ended", outcome: "succeeded", released: time.Minute, ended: time.Minute})
	b.add(t, b.batch(t, "production", "mail", "done"), 10, item{})
	var last int64
	seen := 0
	err := Export(t.Context(), b.pool, batch, func(e Exported) error {
		if e.DeadJob <= last || e.Outcome != "succeeded" {
			t.Fatalf("job %d after %d: %+v", e.DeadJob, last, e)
		}
		last = e.DeadJob
		seen++
		return nil
	})
	if err != nil || seen != n {
		t.Errorf("%d rows, %v, want %d", seen, err, n)
	}
	stop := errors.New("the line is cut")
	if err := Export(t.Context(), b.pool, batch, func(Exported) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("%v, want that the line is cut", err)
	}
}

// TestExportOfAPlanThatChanges never looks whole.
func TestExportOfAPlanThatChanges(t *testing.T) {
	t.Parallel()
	for what, sql := range map[string]string{
		"judged again":           `UPDATE redrive.batches SET plan_revision = plan_revision + 1`,
		"still being judged":     `UPDATE redrive.batches SET state = 'planning'`,
		"the batch isn't stored": `TRUNCATE redrive.batches CASCADE`,
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			batch := b.batch(t, "production", "mail", "planned")
			b.add(t, batch, 2, item{})
			once := false
			err := Export(t.Context(), b.pool, batch, func(Exported) error {
				if !once {
					once = true
					b.exec(t, sql)
				}
				return nil
			})
			if err == nil {
				t.Error("half an export looked whole")
			}
		})
	}
}

// TestExportIsRedacted: no column tells a secret, and control characters don't
// get through.
func TestExportIsRedacted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	batch := b.batch(t, "production", "mail", "done")
	b.add(t, batch, 1, item{state: "ended", outcome: "failed", code: "http_400", released: time.Minute, ended: time.Minute})
	const secret = "Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
	b.exec(t, `UPDATE redrive.replays SET outcome_detail = $1, verdict_detail = $1, effect_id = E'a\x1b[31mb'`, "refused: Authorization: "+secret)
	var file bytes.Buffer
	if err := ExportCSV(t.Context(), b.pool, batch, &file); err != nil {
		t.Fatal(err)
	}
	if text := file.String(); strings.Contains(text, "eyJzdWI") || strings.Contains(text, "\x1b") {
		t.Errorf("the export tells too much:\n%s", text)
	}
	if lines, err := csv.NewReader(&file).ReadAll(); err != nil || len(lines) != 2 || len(lines[1]) != len(exportColumns) {
		t.Errorf("lines %v, %v", lines, err)
	}
}
