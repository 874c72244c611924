package jobtype_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/migrations/testdb"
)

const coolTypes = `types:
  mail: {side_effects: [{kind: email, text: sends one}], idempotency: {by: key}}
  card: {side_effects: [{kind: money, text: charges one}], idempotency: {by: key}}
`

func TestCoolingOff(t *testing.T) {
	t.Parallel()
	load := func(head string) (*jobtype.Catalogue, error) {
		return jobtype.Load(fstest.MapFS{"types.yaml": {Data: []byte(head + coolTypes)}}, "types.yaml")
	}
	c, err := load("cooling_off: [staging]\nenvironments: [production, staging]\n")
	if err != nil {
		t.Fatal(err)
	}
	mail, _ := c.Type("mail")
	card, _ := c.Type("card")
	if !c.CoolsOff("staging", mail) || c.CoolsOff("production", mail) || c.CoolsOff("staging", card) {
		t.Errorf("it cools off in %v: mail %t, mail in production %t, money %t", c.CoolingOff,
			c.CoolsOff("staging", mail), c.CoolsOff("production", mail), c.CoolsOff("staging", card))
	}
	if c, err = load(""); err != nil || len(c.CoolingOff) != 0 || c.CoolsOff("production", mail) {
		t.Errorf("by default: %v, %v", c, err)
	}
	for head, want := range map[string]struct {
		line  int
		words string
	}{
		"environments: [production]\ncooling_off: [prodution]\n":                     {2, `did you mean "production"?`},
		"environments: [production]\ncooling_off:\n  - production\n  - production\n": {4, "stands twice"},
		"cooling_off: true\n": {1, "must be a list"},
	} {
		var faults jobtype.Faults
		if _, err := load(head); !errors.As(err, &faults) || len(faults) != 1 || faults[0].Line != want.line || !strings.Contains(faults[0].Message, want.words) {
			t.Errorf("%q: %v, want line %d with %q", head, err, want.line, want.words)
		}
	}
}

// The log says where nobody else has to agree any more, and where again.
func TestCoolingOffIsWrittenDown(t *testing.T) {
	t.Parallel()
	pool := testdb.New(t)
	f := &file{yaml: coolTypes}
	k := keep(t, pool, f, slog.New(slog.DiscardHandler))
	for _, head := range []string{"cooling_off: [staging]\n", "cooling_off: [staging, development]\n", ""} {
		f.write(head + coolTypes)
		if err := k.Reload(t.Context(), "SIGHUP on h1"); err != nil {
			t.Fatal(err)
		}
	}
	var said string
	err := pool.QueryRow(t.Context(), `
		SELECT string_agg(coalesce(body::jsonb #>> '{details,cooling_off_before}' || ' > ' || (body::jsonb #>> '{details,cooling_off}'), '-'), '; ' ORDER BY id)
		FROM redrive.audit_entries
		WHERE action = 'catalogue.load'`).Scan(&said)
	want := `-; [] > ["staging"]; ["staging"] > ["staging", "development"]; ["staging", "development"] > []`
	if err != nil || said != want {
		t.Errorf("%s, %v\nwant %s", said, err, want)
	}
}
