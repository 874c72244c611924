package river

import "encoding/json"

// metaPrefix marks the keys of River's metadata that are for Redrive. A worker
// or the code that inserts a job may write them:
//
//	redrive:key, :tenant, :entity, :event, :destination, :payload_version   about the job
//	redrive:gave_up, :category, :effect, :effect_id                         about its end, until it is replayed
//	redrive:job        {idempotency_key, tenant, entity, …}                 the same as one object
//	redrive:attempts   [{attempt, worker_version, duration_ms, side_effect}]
//	redrive:death      {attempt, gave_up, category, reason, effect, …}      of the death at that attempt
//
// Redrive writes redrive:replay on re-entry, and redrive:job_id on a new row for
// a job whose own row is gone, so that its death is the same job's again.
const metaPrefix = "redrive:"

// metadata is what River's metadata tells us.
type metadata struct {
	all      map[string]json.RawMessage
	job      map[string]json.RawMessage
	death    deathFacts
	attempts map[int]said
}

type deathFacts struct {
	Attempt int `json:"attempt"`
	said
}

// readMetadata reads what it can; what has another form than expected is shown
// to people and otherwise ignored, since metadata belongs to the application.
func readMetadata(raw json.RawMessage) metadata {
	m := metadata{all: fields(raw), attempts: map[int]said{}, death: deathFacts{Attempt: -1}}
	m.job = fields(m.all[metaPrefix+"job"])
	if raw, ok := m.all[metaPrefix+"death"]; ok && json.Unmarshal(raw, &m.death) != nil {
		m.death = deathFacts{Attempt: -1}
	}
	var list []json.RawMessage
	_ = json.Unmarshal(m.all[metaPrefix+"attempts"], &list)
	for _, raw := range list {
		var f deathFacts
		if json.Unmarshal(raw, &f) == nil {
			m.attempts[f.Attempt] = f.said
		}
	}
	return m
}

// word is the first of the names that is told, as a flat key or in the job's
// object.
func (m metadata) word(names ...string) string {
	for _, name := range names {
		if s := word(m.all, metaPrefix+name); s != "" {
			return s
		}
	}
	for _, name := range names {
		if s := word(m.job, name); s != "" {
			return s
		}
	}
	return ""
}

// atEnd is a flat word about the job's end. It names no attempt, so after a
// re-entry it may speak of the death before that: then only what names its
// attempt is believed.
func (m metadata) atEnd(name string) string {
	if _, again := m.all[metaPrefix+"replay"]; again {
		return ""
	}
	return m.word(name)
}
