package jobtype_test

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/redrive-dlq/redrive/dlq/jobtype"
)

// TestFilesMakeTheSameCatalogueAgain: a stored version is whole, schemas that
// schemas refer to included.
func TestFilesMakeTheSameCatalogueAgain(t *testing.T) {
	t.Parallel()
	const yaml = "types:\n  a:\n    side_effects: [{kind: none}]\n    idempotency: {by: key}\n    schema: {1: s/a.json}\n"
	c, err := jobtype.Load(fstest.MapFS{
		"etc/types.yaml":    {Data: []byte(yaml)},
		"etc/s/a.json":      {Data: []byte(`{"properties": {"n": {"$ref": "number.json"}}}`)},
		"etc/s/number.json": {Data: []byte(`{"type": "integer"}`)},
		"etc/other.json":    {Data: []byte(`not read`)},
	}, "etc/types.yaml")
	if err != nil {
		t.Fatal(err)
	}
	files := c.Files()
	if len(files.Texts) != 3 || files.Texts["etc/types.yaml"] != yaml || files.Texts["etc/s/number.json"] == "" {
		t.Fatalf("files %v", files.Texts)
	}
	again, err := jobtype.Parse(files)
	if err != nil {
		t.Fatal(err)
	}
	if again.Files().Hex() != files.Hex() {
		t.Error("the same files have another sum")
	}
	typ, _ := again.Type("a")
	if broken, err := typ.Validate(1, []byte(`{"n": "x"}`)); err != nil || len(broken) != 1 {
		t.Errorf("the schema beside the schema is lost: %v, %v", broken, err)
	}
	files.Texts["etc/s/number.json"] = `{"type": "string"}`
	if again.Files().Hex() == files.Hex() {
		t.Error("another schema has the same sum")
	}
	delete(files.Texts, "etc/s/a.json")
	var faults jobtype.Faults
	if _, err := jobtype.Parse(files); !errors.As(err, &faults) || !strings.Contains(err.Error(), "etc/types.yaml:5:") {
		t.Errorf("a lost schema has no line: %v", err)
	}
}

func TestConcurrencyIsOneForADestination(t *testing.T) {
	t.Parallel()
	c := mustLoad(t, `
types:
  a: {side_effects: [{kind: none}], idempotency: {by: key}, targets: {production: {river: {client: x}}, staging: {river: {client: x}}}}
  b: {side_effects: [{kind: none}], idempotency: {by: key}, targets: {production: {river: {client: x}, concurrency: 7}}}
`)
	a, _ := c.Type("a")
	if a.Targets["production"].InFlight() != 7 {
		t.Errorf("a says nothing, so b's limit holds: %d", a.Targets["production"].InFlight())
	}
	if a.Targets["staging"].InFlight() != jobtype.DefaultConcurrency {
		t.Error("a limit left its environment")
	}
}

func TestChecksMayQuote(t *testing.T) {
	t.Parallel()
	c := mustLoad(t, `
types:
  a:
    side_effects: [{kind: none}]
    idempotency: {by: key}
    checks:
      - {name: quotes, sql: "with x as (select ';' || $1) select $$;$9$$, $t$a;$t$ from x /* ; */ where $2 = $1;", args: [/a, /b]}
      - name: lines
        sql: |
          SELECT 1 -- it's; fine
          FROM t WHERE id = $1
        args: [/a]
`)
	if a, _ := c.Type("a"); len(a.Checks) != 2 {
		t.Errorf("checks %+v", a.Checks)
	}
}
