package jobtype_test

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/redrive-dlq/redrive/dlq/jobtype"
)

const welcomeSchema = `{
  "type": "object",
  "required": ["user_id", "to_email", "send_id"],
  "additionalProperties": false,
  "properties": {
    "user_id": {"type": "integer", "minimum": 1},
    "to_email": {"type": "string", "pattern": "^[^@\\s]+@[^@\\s]+$"},
    "send_id": {"type": "string", "minLength": 1},
    "locale": {"enum": ["en", "de"]},
    "ratio": {"type": "number", "maximum": 10, "multipleOf": 0.5}
  }
}`

const full = `
environments: [production, staging]
sources:
  - {name: app-prod, environment: production, kind: river, schema: app}
types:
  send_welcome_email:
    owner: growth
    runbook: https://runbooks.example.com/welcome-email
    side_effects: [{kind: email, text: sends one e-mail to the customer}]
    idempotency: {by: key, scope: welcome}
    schema: {1: schemas/welcome.v1.json}
    redact: {show: [/user_id], mask: {/to_email: email}}
    edits: {payload: [/to_email], target: false, options: [queue, priority]}
    rate: {per_minute: 120, burst: 20, per_tenant_per_minute: 30}
    batch: {approval_above: 1000, canary: 10, stop_at_failure_pct: 20, continue_entity: true}
    valid_for: 72h
    triage_within: 24h
    retention: {recovered: 30d, discarded: 2w}
    targets:
      production: {river: {client: app-prod, queue: mail}, outcome_within: 20m, concurrency: 8}
      staging: {http: {url: "http://127.0.0.1:9010/jobs", secret: env:STAGING_SECRET}}
    checks:
      - {name: customer exists, sql: "select 1 from customers where id = $1", args: [/user_id]}
  charge_card:
    side_effects: [{kind: money, text: charges the card}]
    idempotency: {by: key}
    targets:
      production: {river: {client: app-prod}}
  warm_cache:
    side_effects: [{kind: none}]
    idempotency: {by: none}
`

func load(t *testing.T, yaml string) (*jobtype.Catalogue, error) {
	t.Helper()
	return jobtype.Load(fstest.MapFS{
		"etc/types.yaml":              {Data: []byte(yaml)},
		"etc/schemas/welcome.v1.json": {Data: []byte(welcomeSchema)},
	}, "etc/types.yaml")
}

func mustLoad(t *testing.T, yaml string) *jobtype.Catalogue {
	t.Helper()
	c, err := load(t, yaml)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestLoadReadsEveryField(t *testing.T) {
	t.Parallel()
	c := mustLoad(t, full)
	got, ok := c.Type("send_welcome_email")
	if !ok {
		t.Fatal("send_welcome_email is missing")
	}
	want := &jobtype.Type{
		Name: "send_welcome_email", Owner: "growth", Runbook: "https://runbooks.example.com/welcome-email",
		SideEffects: []jobtype.SideEffect{{Kind: "email", Text: "sends one e-mail to the customer"}},
		Idempotency: jobtype.Idempotency{By: "key", Scope: "welcome"},
		SchemaFiles: map[int]string{1: "schemas/welcome.v1.json"},
		Redact:      jobtype.Redact{Show: []string{"/user_id"}, Mask: map[string]string{"/to_email": "email"}},
		Edits:       jobtype.Edits{Payload: []string{"/to_email"}, Options: []string{"queue", "priority"}},
		Rate:        jobtype.Rate{PerMinute: 120, Burst: 20, PerTenantPerMinute: 30},
		Batch:       jobtype.Batch{ApprovalAbove: 1000, Canary: 10, StopAtFailurePct: 20, ContinueEntity: true},
		ValidFor:    72 * time.Hour, TriageIn: 24 * time.Hour,
		Retention: jobtype.Retention{Recovered: 30 * 24 * time.Hour, Discarded: 14 * 24 * time.Hour},
		Targets: map[string]jobtype.Target{
			"production": {River: &jobtype.RiverTarget{Client: "app-prod", Queue: "mail"}, OutcomeWithin: 20 * time.Minute, Concurrency: 8},
			"staging":    {HTTP: &jobtype.HTTPTarget{URL: "http://127.0.0.1:9010/jobs", Secret: "env:STAGING_SECRET"}, OutcomeWithin: jobtype.DefaultOutcomeWithin},
		},
		Checks: []jobtype.Check{{Name: "customer exists", SQL: "select 1 from customers where id = $1", Args: []string{"/user_id"}}},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(jobtype.Type{})); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]jobtype.Source{{Name: "app-prod", Environment: "production", Kind: "river", Schema: "app"}}, c.Sources); diff != "" {
		t.Error(diff)
	}
	var names []string
	for _, ty := range c.Types() {
		names = append(names, ty.Name)
	}
	if diff := cmp.Diff([]string{"send_welcome_email", "charge_card", "warm_cache"}, names); diff != "" {
		t.Error("file order:", diff)
	}
}

func TestPolicy(t *testing.T) {
	t.Parallel()
	c := mustLoad(t, full)
	mail, _ := c.Type("send_welcome_email")
	charge, _ := c.Type("charge_card")
	cache, _ := c.Type("warm_cache")
	if mail.Scope() != "welcome" || charge.Scope() != "charge_card" {
		t.Errorf("scopes %q, %q", mail.Scope(), charge.Scope())
	}
	if mail.MoneyRisk() || !charge.MoneyRisk() {
		t.Error("only charge_card moves money")
	}
	if !mail.HasEffect() || cache.HasEffect() || !cache.Idempotent() || !charge.Idempotent() {
		t.Error("effects are wrong")
	}
	if err := charge.Replayable("production"); err != nil {
		t.Error(err)
	}
	if err := charge.Replayable("staging"); !errors.Is(err, jobtype.ErrNotReplayable) || !strings.Contains(err.Error(), "staging") {
		t.Errorf("a charge has no staging target, got %v", err)
	}
	if target, ok := charge.Target("production"); !ok || target.Destination() != "river:app-prod/default" {
		t.Errorf("target %+v", target)
	}
	if !mail.EditAllowed("/to_email") || mail.EditAllowed("/to_email/0") || mail.EditAllowed("/user_id") {
		t.Error("only /to_email may be edited")
	}
	if _, ok := c.Type("Send_Welcome_Email"); ok {
		t.Error("names are exact")
	}
}

func TestFaultsNamePlaceAndRemedy(t *testing.T) {
	t.Parallel()
	const head = "types:\n  a:\n    side_effects: [{kind: none}]\n    idempotency: {by: key}\n"
	for name, tt := range map[string]struct{ yaml, want string }{
		"misspelt key":        {head + "    ownr: me\n", `etc/types.yaml:5:5: types.a.ownr: unknown key "ownr"; did you mean "owner"?`},
		"foreign key":         {head + "    colour: red\n", `known here: batch, checks`},
		"misspelt value":      {"types:\n  a:\n    side_effects: [{kind: emial, text: x}]\n    idempotency: {by: key}\n", `"emial" isn't allowed; did you mean "email"?`},
		"no side effects":     {"types:\n  a:\n    idempotency: {by: key}\n", "needs side_effects"},
		"no idempotency":      {"types:\n  a:\n    side_effects: [{kind: none}]\n", "needs idempotency.by"},
		"unknown environment": {head + "    targets: {prodution: {river: {client: x}}}\n", `unknown environment "prodution"; did you mean "production"?`},
		"two ways":            {head + "    targets: {production: {river: {client: x}, http: {url: 'http://127.0.0.1/'}}}\n", "exactly one of river and http"},
		"no way":              {head + "    targets: {production: {outcome_within: 5m}}\n", "exactly one of river and http"},
		"other host":          {head + "    targets: {production: {http: {url: 'http://10.0.0.1/'}}}\n", "must point to this machine"},
		"lookalike host":      {head + "    targets: {production: {http: {url: 'http://localhost.evil.test/'}}}\n", "must point to this machine"},
		"mapped address":      {head + "    targets: {production: {http: {url: 'http://[::ffff:10.0.0.1]/'}}}\n", "must point to this machine"},
		"other scheme":        {head + "    targets: {production: {http: {url: 'file:///etc/passwd'}}}\n", "http:// or https://"},
		"literal secret":      {head + "    targets: {production: {http: {url: 'http://127.0.0.1/', secret: hunter2}}}\n", "must name an environment variable"},
		"duration":            {head + "    valid_for: 3 days\n", `"3 days" is no length of time`},
		"negative duration":   {head + "    valid_for: -3h\n", "no length of time"},
		"percentage":          {head + "    batch: {stop_at_failure_pct: 120}\n", "whole number from 1 to 100"},
		"pointer":             {head + "    edits: {payload: [to_email]}\n", `"to_email" is no JSON Pointer`},
		"version":             {head + "    schema: {one: x.json}\n", `"one" is no payload version`},
		"schema missing":      {head + "    schema: {1: schemas/none.json}\n", "schemas/none.json"},
		"schema outside":      {head + "    schema: {1: ../../secret.json}\n", "below the catalogue's folder"},
		"twice":               {"types:\n  a: {side_effects: [{kind: none}], idempotency: {by: key}}\n  a: {}\n", "etc/types.yaml:3:"},
		"broken YAML":         {"types:\n  a: [\n", "etc/types.yaml:"},
		"empty":               {"", "exactly one document"},
		"no types":            {"environments: [x]\n", "declares no types"},
		"not a mapping":       {"- a\n", "must be a mapping"},
		"odd type name":       {"types: {' a': {}}\n", "can't be a type's name"},
		"two concurrencies": {head + "    targets: {production: {river: {client: x}, concurrency: 5}}\n  b:\n    side_effects: [{kind: none}]\n    idempotency: {by: key}\n    targets:\n      production: {river: {client: x}, concurrency: 6}\n",
			"etc/types.yaml:10:53: types.b.targets.production.concurrency: says 6 for river:x/default in production, and types.a.targets.production.concurrency in line 5 says 5"},
		"concurrency":         {head + "    targets: {production: {river: {client: x}, concurrency: 0}}\n", "whole number from 1 to 100000"},
		"check writes":        {head + "    checks: [{name: c, sql: 'delete from x'}]\n", "begins with select or with"},
		"check in two":        {head + "    checks: [{name: c, sql: 'select 1; drop table x'}]\n", "must be one statement"},
		"check lacks an arg":  {head + "    checks: [{name: c, sql: 'select $1, $2', args: [/a]}]\n", "uses $2, and args lists 1"},
		"check leaves an arg": {head + "    checks: [{name: c, sql: \"select $1, '$2'\", args: [/a, /b]}]\n", "doesn't use $2, and args lists 2"},
		"check's pointer":     {head + "    checks: [{name: c, sql: 'select $1', args: [a]}]\n", `"a" is no JSON Pointer`},
		"check twice":         {head + "    checks: [{name: c, sql: 'select 1'}, {name: c, sql: 'select 2'}]\n", `check "c" stands twice`},
		"no text":             {head + "    owner: \"\xff\"\n", "no text in UTF-8"},
		"other environment":   {"sources: [{name: s, environment: staging}]\n" + head + "    targets: {production: {river: {client: s}}}\n", "a replay never leaves its environment"},
		"unknown client":      {"sources: [{name: s, environment: staging}]\n" + head + "    targets: {production: {river: {client: z}}}\n", "no river source of this file"},
		"source url":          {"sources: [{name: s, environment: staging, url: 'postgres://u:hunter2@h/d'}]\n" + head, "must name an environment variable"},
		"password in runbook": {head + "    runbook: https://u:hunter2@example.com/\n", "must not hold a user or password"},
	} {
		_, err := load(t, tt.yaml)
		var faults jobtype.Faults
		if !errors.As(err, &faults) && name != "no text" || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want it to hold %q", name, err, tt.want)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the fault repeats a secret: %v", name, err)
		}
	}
}

func TestAllFaultsAtOnce(t *testing.T) {
	t.Parallel()
	_, err := load(t, "types:\n  a: {ownr: x}\n  b: {rnbook: y}\n")
	var faults jobtype.Faults
	if !errors.As(err, &faults) || len(faults) != 6 {
		t.Errorf("want six faults (two keys, four omissions), got %v", err)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add(full)
	f.Add("types: {a: &x {side_effects: *x}}")
	f.Add("types:\n  <<: [1]\n")
	f.Fuzz(func(t *testing.T, yaml string) {
		c, err := jobtype.Load(fstest.MapFS{"t.yaml": {Data: []byte(yaml)}}, "t.yaml")
		if (c == nil) == (err == nil) {
			t.Fatalf("Load gave %v and %v", c, err)
		}
	})
}
