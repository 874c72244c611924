// Package route holds the paths of the console's pages and actions. Handlers
// register them and views link to them, so that neither writes a path by hand.
package route

import (
	"net/url"
	"strconv"
)

// Pages and actions without an id in their path.
const (
	Login     = "/login"
	Logout    = "/logout"
	Overview  = "/"
	Jobs      = "/jobs"
	Groups    = "/groups"
	Batches   = "/batches"
	Types     = "/types"
	Sources   = "/sources"
	Targets   = "/targets"
	Audit     = "/audit"
	Account   = "/account"
	Users     = "/admin/users"
	Tokens    = "/admin/tokens"
	EndOthers = "/account/sessions/end-others"
)

// Patterns for registering routes that hold an id; ":id" is Echo's notation.
const (
	JobPattern        = "/jobs/:id"
	JobEventsPattern  = "/jobs/:id/events"
	JobPayloadPattern = "/jobs/:id/payload"
	GroupPattern      = "/groups/:id"
	TypePattern       = "/types/:id"
	BatchPattern      = "/batches/:id"
	BatchEvents       = "/batches/:id/events"
	EndSessionPattern = "/account/sessions/:id/end"
)

// Action is one thing a person may do to a dead job. Each has a page of its
// own (GET) and a form that posts to the same path (POST).
type Action string

// The actions on a dead job.
const (
	Edit    Action = "edit"
	Fix     Action = "fix"
	Settle  Action = "settle"
	Replay  Action = "replay"
	Resolve Action = "resolve"
	Discard Action = "discard"
	Reopen  Action = "reopen"
	Note    Action = "note"
	Snooze  Action = "snooze"
	Assign  Action = "assign"
	Cancel  Action = "cancel" // of a replay that has not left
)

// Actions lists every action on a dead job, in the order they are offered.
var Actions = []Action{Edit, Fix, Settle, Replay, Cancel, Resolve, Snooze, Discard, Reopen, Assign, Note}

// Pattern returns the path to register for the action, in Echo's notation.
func (a Action) Pattern() string { return JobPattern + "/" + string(a) }

// Names of the query parameters of the job list; they are its filter form.
const (
	ParamQuery       = "q"
	ParamStatus      = "status"
	ParamType        = "type"
	ParamCategory    = "category"
	ParamEnvironment = "env"
	ParamClass       = "class"
	ParamJob         = "job"
	ParamKey         = "key"
	ParamFrom        = "from" // a date, UTC, inclusive
	ParamTo          = "to"   // a date, UTC, inclusive
	ParamCursor      = "cursor"
)

// AnyStatus is the status parameter's value for jobs of every status; without
// the parameter the list shows open ones, unless it is asked for by name.
const AnyStatus = "any"

// Names of the audit page's query parameters, besides from, to and cursor.
const (
	ParamActor  = "actor"
	ParamAction = "action"
	ParamObject = "object"
)

// Names of the query parameters of a job's page.
const (
	ParamVersion = "version" // payload version, 1 is the captured one
	ParamView    = "view"    // tree, raw, hex, base64 or diff
)

// Names of form fields that several forms share.
const (
	FieldEmail    = "email"
	FieldPassword = "password"
	FieldNext     = "next"
	FieldReason   = "reason"
	FieldConfirm  = "confirm" // "yes" on the second step of an edit
	FieldVersion  = "version" // what the form was made from; another one is a conflict
	FieldAt       = "at"      // 2026-01-02T15:04, UTC
	FieldWhen     = "when"    // now or later
	FieldEnded    = "ended"   // happened or not
	FieldEffectID = "effect_id"
	FieldKind     = "kind" // of a declared fix: worker_version, ticket or record
	FieldRef      = "reference"
	FieldText     = "text"
	FieldUntil    = "until" // 2026-01-02T15:04, UTC
	FieldAssignee = "assignee"
	// FieldPointer starts the name of an edited place; a JSON Pointer follows it.
	FieldPointer = "edit:"
)

// Job returns the page of a dead job.
func Job(id string) string { return Jobs + "/" + url.PathEscape(id) }

// JobAction returns the page, and the form's target, of an action on a job.
func JobAction(id string, action Action) string { return Job(id) + "/" + string(action) }

// JobEvents returns the stream that tells when a job's page changed.
func JobEvents(id string) string { return Job(id) + "/events" }

// JobView returns a job's page with one view of one payload version.
func JobView(id string, version int, view string) string {
	values := url.Values{}
	if version > 0 {
		values.Set(ParamVersion, strconv.Itoa(version))
	}
	if view != "" {
		values.Set(ParamView, view)
	}
	return with(Job(id), values) + "#payload"
}

// Group returns the page of a group of dead jobs.
func Group(fingerprint string) string { return Groups + "/" + url.PathEscape(fingerprint) }

// Type returns the page of a job type.
func Type(name string) string { return Types + "/" + url.PathEscape(name) }

// BatchLive returns the stream that tells when a batch's page changed.
func BatchLive(id string) string { return Batch(id) + "/events" }

// JobPayload returns the download of one payload version, redacted.
func JobPayload(id string, version int) string {
	return Job(id) + "/payload?" + url.Values{ParamVersion: {strconv.Itoa(version)}}.Encode()
}

// Batch returns the page of a batch.
func Batch(id string) string { return Batches + "/" + url.PathEscape(id) }

// EndSession returns the form target that ends one session of the reader.
func EndSession(id string) string { return Account + "/sessions/" + url.PathEscape(id) + "/end" }

// JobsWhere returns the job list with one or more filters: name, value, name,
// value. Empty values are left out.
func JobsWhere(pairs ...string) string { return with(Jobs, pairValues(pairs)) }

// AuditWhere returns the audit page with one or more filters.
func AuditWhere(pairs ...string) string { return with(Audit, pairValues(pairs)) }

func pairValues(pairs []string) url.Values {
	values := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			values.Set(pairs[i], pairs[i+1])
		}
	}
	return values
}

func with(path string, values url.Values) string {
	if len(values) == 0 {
		return path
	}
	return path + "?" + values.Encode()
}

// Change returns the path and query of u with the given parameters set; an
// empty value removes its parameter. The cursor never survives a change of
// filter, since it belongs to the old one.
func Change(u *url.URL, pairs ...string) string {
	values := u.Query()
	values.Del(ParamCursor)
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			values.Del(pairs[i])
			continue
		}
		values.Set(pairs[i], pairs[i+1])
	}
	path := u.EscapedPath()
	if path == "" {
		path = Overview
	}
	return with(path, values)
}
