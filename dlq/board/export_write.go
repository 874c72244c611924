package board

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/redrive-dlq/redrive/dlq"
)

// exportColumns heads a CSV export.
var exportColumns = []string{"dead_job", "generation", "payload_revision", "verdict", "verdict_detail", "replay", "job_id", "state",
	"outcome", "code", "detail", "effect_id", "released_at", "outcome_at", "new_fingerprint", "next_generation"}

// ExportCSV writes an export as CSV (RFC 4180) that no spreadsheet takes for
// formulas.
func ExportCSV(ctx context.Context, db dlq.DB, batch int64, w io.Writer) error {
	out := csv.NewWriter(w)
	if err := out.Write(exportColumns); err != nil {
		return fmt.Errorf("board: export: %w", err)
	}
	err := Export(ctx, db, batch, func(e Exported) error {
		return out.Write([]string{strconv.FormatInt(e.DeadJob, 10), strconv.Itoa(e.Generation), strconv.Itoa(e.PayloadVersion),
			e.Verdict, Cell(e.VerdictDetail), strconv.FormatInt(e.Replay, 10), Cell(e.JobID), e.State, e.Outcome, Cell(e.Code), Cell(e.Detail),
			Cell(e.EffectID), exportTime(e.ReleasedAt), exportTime(e.OutcomeAt), e.NewFingerprint, strconv.Itoa(e.NextGeneration)})
	})
	if err != nil {
		return err
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("board: export: %w", err)
	}
	return nil
}

// ExportJSON writes an export as one JSON object with the batch, its plan's
// hash and its replays.
func ExportJSON(ctx context.Context, db dlq.DB, b Batch, w io.Writer) error {
	head, err := json.Marshal(struct {
		Batch       int64  `json:"batch"`
		Environment string `json:"environment"`
		JobType     string `json:"job_type"`
		State       string `json:"state"`
		PlanHash    string `json:"plan_hash"`
	}{b.ID, b.Environment, b.JobType, b.State, b.PlanHash})
	if err != nil {
		return fmt.Errorf("board: export: %w", err)
	}
	if _, err := fmt.Fprintf(w, "%s,\"items\":[", head[:len(head)-1]); err != nil {
		return fmt.Errorf("board: export: %w", err)
	}
	separator := "\n"
	err = Export(ctx, db, b.ID, func(e Exported) error {
		line, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("board: export: %w", err)
		}
		_, err = fmt.Fprintf(w, "%s%s", separator, line)
		separator = ",\n"
		return err
	})
	if err != nil {
		return err
	}
	if _, err := io.WriteString(w, "\n]}\n"); err != nil {
		return fmt.Errorf("board: export: %w", err)
	}
	return nil
}

// Cell is a text as a cell of a CSV file: what a spreadsheet would take for a
// formula begins with an apostrophe (ASVS 1.2.10).
func Cell(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r\n\x00", rune(s[0])) {
		return "'" + s
	}
	return s
}

func exportTime(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}
