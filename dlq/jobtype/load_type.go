package jobtype

import "strconv"

// manyPerMinute bounds rates: above it, the number is a slip.
const manyPerMinute = 1_000_000

func (c *Catalogue) readType(name string, v value) *Type {
	t := &Type{Name: name, SchemaFiles: map[int]string{}, Targets: map[string]Target{}}
	v.fields(map[string]func(value){
		"owner":         func(v value) { t.Owner = v.text() },
		"runbook":       func(v value) { t.Runbook = v.webURL() },
		"side_effects":  func(v value) { t.SideEffects = readSideEffects(v) },
		"idempotency":   func(v value) { t.Idempotency = readIdempotency(v) },
		"schema":        func(v value) { readSchemaFiles(v, t) },
		"redact":        func(v value) { t.Redact = readRedact(v) },
		"edits":         func(v value) { t.Edits = readEdits(v) },
		"rate":          func(v value) { t.Rate = readRate(v) },
		"batch":         func(v value) { t.Batch = readBatch(v) },
		"valid_for":     func(v value) { t.ValidFor = v.duration() },
		"triage_within": func(v value) { t.TriageIn = v.duration() },
		"retention":     func(v value) { t.Retention = readRetention(v) },
		"targets":       func(v value) { c.readTargets(v, t.Targets) },
		"checks":        func(v value) { t.Checks = readChecks(v) },
	})
	// What a run may do is never guessed: silence would read as harmless.
	if len(t.SideEffects) == 0 {
		v.fault("needs side_effects; write [{kind: none}] if it has none")
	}
	if t.Idempotency.By == "" {
		v.fault("needs idempotency.by: key, unique_constraint, marker or none")
	}
	return t
}

func readSideEffects(v value) []SideEffect {
	var out []SideEffect
	for _, item := range v.items() {
		var e SideEffect
		item.fields(map[string]func(value){
			"kind": func(v value) { e.Kind = v.oneOf("email", "money", "webhook", "write", "none") },
			"text": func(v value) { e.Text = v.text() },
		})
		if e.Kind == "" {
			item.fault("needs a kind: email, money, webhook, write or none")
			continue
		}
		if e.Text == "" && e.Kind != "none" {
			item.fault("needs a text that says what happens, like: sends one e-mail to the customer")
		}
		out = append(out, e)
	}
	return out
}

func readIdempotency(v value) (i Idempotency) {
	v.fields(map[string]func(value){
		"by":                    func(v value) { i.By = v.oneOf("key", "unique_constraint", "marker", "none") },
		"scope":                 func(v value) { i.Scope = v.text() },
		"provider_deduplicates": func(v value) { i.ProviderDeduplicates = v.flag() },
	})
	return i
}

func readSchemaFiles(v value, t *Type) {
	for _, e := range v.entries() {
		version, err := strconv.Atoi(e.key)
		if err != nil || version < 1 || version > 1_000_000 {
			e.at.fault("%q is no payload version; use a whole number from 1", e.key)
			continue
		}
		t.SchemaFiles[version] = e.body.text()
		v.r.schemas[schemaPlace{t.Name, version}] = e.body
	}
}

func readRedact(v value) Redact {
	r := Redact{Mask: map[string]string{}}
	v.fields(map[string]func(value){
		"show": func(v value) { r.Show = v.pointers() },
		"mask": func(v value) {
			for _, e := range v.entries() {
				if !validPointer(e.key) {
					e.at.fault("%q is no JSON Pointer; write it like /customer/email", e.key)
					continue
				}
				r.Mask[e.key] = e.body.text()
			}
		},
	})
	return r
}

func readEdits(v value) (e Edits) {
	v.fields(map[string]func(value){
		"payload": func(v value) { e.Payload = v.pointers() },
		"target":  func(v value) { e.Target = v.flag() },
		"options": func(v value) {
			for _, item := range v.items() {
				if o := item.oneOf("queue", "priority"); o != "" {
					e.Options = append(e.Options, o)
				}
			}
		},
	})
	return e
}

func readRate(v value) (r Rate) {
	v.fields(map[string]func(value){
		"per_minute":            func(v value) { r.PerMinute = v.count(1, manyPerMinute) },
		"burst":                 func(v value) { r.Burst = v.count(1, manyPerMinute) },
		"per_tenant_per_minute": func(v value) { r.PerTenantPerMinute = v.count(1, manyPerMinute) },
	})
	return r
}

func readBatch(v value) (b Batch) {
	v.fields(map[string]func(value){
		"approval_above":      func(v value) { b.ApprovalAbove = v.count(1, 100_000_000) },
		"canary":              func(v value) { b.Canary = v.count(1, 10_000) },
		"stop_at_failure_pct": func(v value) { b.StopAtFailurePct = v.count(1, 100) },
		"continue_entity":     func(v value) { b.ContinueEntity = v.flag() },
	})
	return b
}

func readRetention(v value) (r Retention) {
	v.fields(map[string]func(value){
		"recovered": func(v value) { r.Recovered = v.duration() },
		"discarded": func(v value) { r.Discarded = v.duration() },
	})
	return r
}
