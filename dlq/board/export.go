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

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/dlq/redact"
)

// Exported is one replay in an export. With job, generation, payload version
// and verdict of all of them, in their order, anybody can make the plan's hash
// again.
type Exported struct {
	DeadJob        int64      `json:"dead_job"`
	Generation     int        `json:"generation"`
	PayloadVersion int        `json:"payload_revision"` // ours: an edit raises it
	Verdict        string     `json:"verdict"`
	VerdictDetail  string     `json:"verdict_detail,omitempty"`
	Replay         int64      `json:"replay"`
	JobID          string     `json:"job_id"`
	State          string     `json:"state"`
	Outcome        string     `json:"outcome,omitempty"`
	Code           string     `json:"code,omitempty"`
	Detail         string     `json:"detail,omitempty"`
	EffectID       string     `json:"effect_id,omitempty"`
	ReleasedAt     *time.Time `json:"released_at,omitempty"`
	OutcomeAt      *time.Time `json:"outcome_at,omitempty"`
	NewFingerprint string     `json:"new_fingerprint,omitempty"`
	NextGeneration int        `json:"next_generation,omitempty"`
}

// exportColumns heads a CSV export.
var exportColumns = []string{"dead_job", "generation", "payload_revision", "verdict", "verdict_detail", "replay", "job_id", "state",
	"outcome", "code", "detail", "effect_id", "released_at", "outcome_at", "new_fingerprint", "next_generation"}

// Export streams the replays of a batch that BatchOf returned, in the order of
// their jobs' ids; its memory doesn't grow with them.
func Export(ctx context.Context, db dlq.DB, batch int64, each func(Exported) error) error {
	rows, err := db.Query(ctx, `
		SELECT dead_job_id, generation, payload_version, verdict, verdict_detail, id, job_id, state, coalesce(outcome, ''),
		       outcome_code, outcome_detail, effect_id, released_at, outcome_at, new_fingerprint, next_generation
		FROM redrive.replays
		WHERE batch_id = $1
		ORDER BY dead_job_id`, batch)
	if err != nil {
		return fmt.Errorf("board: export: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		e, err := pgx.RowToStructByPos[Exported](rows)
		if err != nil {
			return fmt.Errorf("board: export: %w", err)
		}
		for _, text := range []*string{&e.VerdictDetail, &e.JobID, &e.Detail, &e.EffectID} {
			*text = redact.Readable(*text)
		}
		if err := each(e); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("board: export: %w", err)
	}
	return nil
}

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
