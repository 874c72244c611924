package dlq

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// capturedCase captures a case file and returns the job's id.
func capturedCase(t *testing.T, name string) (*bundle, int64, *Document) {
	t.Helper()
	b := setup(t)
	doc := mustParse(t, caseFile(t, name))
	return b, b.one(t, doc).ID, doc
}

// readable is all that people may read of a job, in one text.
func readable(t *testing.T, b *bundle, id int64) string {
	t.Helper()
	return get[string](t, b, `
		SELECT concat_ws(E'\n', to_jsonb(d)::text,
			(SELECT string_agg(convert_from(p.redacted, 'UTF8'), E'\n') FROM redrive.payloads p WHERE p.dead_job_id = d.id AND d.payload_kind <> 'binary'),
			(SELECT string_agg(x.headers || x.extra, E'\n') FROM redrive.documents x WHERE x.dead_job_id = d.id),
			(SELECT string_agg(concat_ws(E'\n', a.error_class, a.message, a.stack, a.causes, a.at_raw, a.at_note), E'\n' ORDER BY a.seq)
			 FROM redrive.attempts a WHERE a.dead_job_id = d.id),
			(SELECT string_agg(k.template, E'\n') FROM redrive.deaths k WHERE k.dead_job_id = d.id))
		FROM redrive.dead_jobs d
		WHERE d.id = $1`, id)
}

func column1(t *testing.T, b *bundle, id int64, column string) string {
	t.Helper()
	return get[string](t, b, `SELECT coalesce(`+column+`::text, '') FROM redrive.dead_jobs WHERE id = $1`, id)
}

// wantText checks what a person's copy shows and hides.
func wantText(t *testing.T, text string, shown, hidden []string) {
	t.Helper()
	for _, s := range shown {
		if !strings.Contains(text, s) {
			t.Errorf("%q is not shown in %.3000s", s, text)
		}
	}
	for _, s := range hidden {
		if strings.Contains(text, s) {
			t.Errorf("%q is shown in %.3000s", s, text)
		}
	}
}

func TestCases(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		columns       map[string]string
		shown, hidden []string
	}{
		"01-nul-in-error-and-payload.json": {
			columns: map[string]string{"payload_kind": "json", "error_class": "NotAPdf", "error_message": "still not a PDF", "category": "invalid_input"},
			shown:   []string{`write \\u0000 to match a NUL`, "␀␀", "scan.go:88␀", "north␀wind"},
		},
		"04-numbers-beyond-float64.json": {
			columns: map[string]string{"job_id": "9223372036854775807"},
			shown: []string{"9007199254740993", "3344556677889900123", "1.10", "-0.0", "1E3", "1e400", "0.1000000000000000055511151231257827",
				"12345678901234567890"},
		},
		"08-markup-in-every-field.json": {
			columns: map[string]string{"job_type": "report.<b>build</b>", "job_id": `"><svg onload=alert(2)>`},
			shown:   []string{"<img src=x onerror=alert(1)>", "=HYPERLINK("},
		},
		"10-ansi-colours-and-terminal-codes.json": {
			columns: map[string]string{"error_message": "FAIL step lint exit 2 log"},
			shown:   []string{"at build.ts:41"},
			hidden:  []string{"\x1b", "\x07", "http://example.test", "[31m"},
		},
		"12-zero-byte-payload.json": {
			columns: map[string]string{"payload_kind": "empty", "payload_size": "0", "attempt_count": "0", "idempotency_key": "",
				"died_at_note": "no time of death was told: this is when it was captured"},
		},
		"13-protobuf-payload.json": {columns: map[string]string{"payload_kind": "binary", "payload_size": "27", "category": "transient"}},
		"15-kafka-binary-and-repeated-headers.json": {
			columns: map[string]string{"error_class": "test.pay.BalanceException", "error_message": "balance service refused"},
			shown: []string{`{"name":"kafka_dlt-original-topic","value":"payments","form":"text"},{"name":"kafka_dlt-original-topic","value":"payments-retry-0"`,
				`"value":"2","form":"int32"`, `"value":"918273645"`, "2026-03-15T01:00:00.123Z", `"0042"`, `"00ff80"`, `"empty","value":"","form":"empty"`, `"form":"null"`},
		},
		"16-bearer-and-jwt-in-cause-chain.json": {
			columns: map[string]string{"error_class": "Refresh"},
			shown:   []string{"bearer token expired is plain prose", "theme=dark"},
			hidden:  []string{"Zp4vQm9tLx2sKd7yRb1nHw6c", "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9", "Xy12Qa88LmPz"},
		},
		"18-card-numbers-and-lookalikes.json": {
			columns: map[string]string{"job_id": "7031908301661318", "idempotency_key": "charge:1773852601815"},
			shown: []string{`"order": "7031908301661318"`, "1773852601815", "41111111-1111-4111-8111-111111111111",
				"5f36b2ea290645ee34d943220a14b54ee5ea5be5", "8264-1993-5181-9093"},
			hidden: []string{"4111111111111111", "5555 5555 5555 4444", "cvv 123", "3704 0044"},
		},
		"19-email-and-token-in-url-query.json": {
			shown:  []string{"state=ok", "page=2", "@lena said", "10:30@noon", "a@b"},
			hidden: []string{"lena.hofer@example.com", "lena.hofer%2Bvip", "Qm3x9LpT", "Zk81yRb1nHw6cVt", "9f2c7a11de"},
		},
		"20-celery-args-only-as-repr.json": {
			columns: map[string]string{"payload_kind": "printout", "payload_size": "0", "idempotency_key": ""},
			shown:   []string{"argsrepr: (7, {'rows': [{...}, {...}, ...]})"},
			hidden:  []string{"pear-Lamp-77"},
		},
		"21-rabbitmq-death-loop.json": {
			columns: map[string]string{"error_class": "rejected"},
			shown:   []string{"5000000000", "orders.wait", "009f"},
		},
		"24-long-error-and-near-miss-text.json": {
			columns: map[string]string{"error_class": "X", "attempt_count": "2"},
			shown:   []string{"password='"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, id, doc := capturedCase(t, name)
			for col, want := range c.columns {
				if got := column1(t, b, id, col); got != want {
					t.Errorf("%s is %q, want %q", col, got, want)
				}
			}
			wantText(t, readable(t, b, id), c.shown, c.hidden)
			if doc.PayloadEncoding != EncodingNone && !bytes.Equal(b.payload(t, id, 1), doc.Payload) {
				t.Error("the stored bytes differ")
			}
			if headers := get[string](t, b, `SELECT headers FROM redrive.documents WHERE dead_job_id = $1`, id); !json.Valid([]byte(headers)) {
				t.Errorf("headers are not JSON: %s", headers)
			}
			if again := b.one(t, mustParse(t, caseFile(t, name))); again.Outcome != CaptureUnchanged {
				t.Errorf("sent again: %+v", again)
			}
		})
	}
}

// Case 11: every attempt keeps its place and its raw time; what can't be right
// is flagged and never sorted by.
func TestCaseTimestamps(t *testing.T) {
	t.Parallel()
	b, id, _ := capturedCase(t, "11-mixed-timestamps-and-clock-skew.json")
	rows, err := b.pool.Query(t.Context(), `
		SELECT coalesce(to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS'), '-'), at_note
		FROM redrive.attempts
		WHERE dead_job_id = $1
		ORDER BY seq`, id)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var got []string
	for rows.Next() {
		var at, note string
		if err := rows.Scan(&at, &note); err != nil {
			t.Fatal(err)
		}
		got = append(got, strings.TrimSpace(at+" "+note))
	}
	want := []string{
		"2026-03-07T00:01:40.000", "2026-03-07T00:03:20.250", "2026-03-07T00:05:00.123", "2026-03-06T20:20:00.000",
		"2026-03-07T00:05:00.000 no zone, read as UTC", "2026-03-07T00:01:00.000", "2168-11-30T15:51:16.000 implausible",
		"0001-01-01T00:00:00.000 implausible", "- missing",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	died := get[time.Time](t, b, `SELECT died_at FROM redrive.dead_jobs WHERE id = $1`, id)
	if want := time.Date(2026, 3, 7, 0, 5, 0, 123e6, time.UTC); !died.Equal(want) {
		t.Errorf("died at %s", died)
	}
	if first := get[time.Time](t, b, `SELECT first_failed_at FROM redrive.dead_jobs WHERE id = $1`, id); first.UTC().Hour() != 20 {
		t.Errorf("first failed at %s", first)
	}
}

func TestCaseLongErrorStaysSmallInLists(t *testing.T) {
	t.Parallel()
	b, id, _ := capturedCase(t, "24-long-error-and-near-miss-text.json")
	if n := get[int](t, b, `SELECT pg_column_size(d.*) FROM redrive.dead_jobs d WHERE id = $1`, id); n > 3000 {
		t.Errorf("the list row has %d bytes", n)
	}
	hidden := get[bool](t, b, `SELECT causes LIKE '%password=%' AND causes NOT LIKE '%\\\\%' FROM redrive.attempts WHERE dead_job_id = $1 AND seq = 1`, id)
	if !hidden {
		t.Error("the unclosed password is not hidden to its end")
	}
	raw := get[int](t, b, `SELECT octet_length(r.raw) FROM redrive.attempt_raws r JOIN redrive.attempts a ON a.id = r.attempt_id WHERE a.dead_job_id = $1 AND a.seq = 1`, id)
	if raw < 10_000 {
		t.Errorf("the raw attempt has %d bytes", raw)
	}
}

// A worker's clock that is ahead makes no death of the future.
func TestCaptureNeverDiesInTheFuture(t *testing.T) {
	t.Parallel()
	b := setup(t)
	doc := job("a", 1, 1)
	doc.DeadAt = []byte(`"` + testNow.Add(5*time.Minute).Format(time.RFC3339) + `"`)
	b.one(t, doc)
	row := get[time.Time](t, b, `SELECT died_at FROM redrive.dead_jobs`)
	if !row.Equal(testNow) {
		t.Errorf("died at %s", row)
	}
	if note := get[string](t, b, `SELECT died_at_note FROM redrive.dead_jobs`); !strings.Contains(note, "clock is ahead") {
		t.Errorf("note: %q", note)
	}
	if got := b.one(t, doc); got.Outcome != CaptureUnchanged {
		t.Errorf("again: %+v", got)
	}
}
