// Package rbac says who may do what: roles, permissions, users, tokens and
// session rows.
package rbac

import "slices"

// Role is one of the six roles of the product. Roles of a person add up.
type Role string

// The roles.
const (
	Viewer   Role = "viewer"
	Operator Role = "operator"
	OnCall   Role = "oncall"
	Approver Role = "approver"
	Auditor  Role = "auditor"
	Admin    Role = "admin"
)

// AllRoles lists the roles in the order in which people read them.
func AllRoles() []Role { return []Role{Viewer, Operator, OnCall, Approver, Auditor, Admin} }

// Permission names one thing that a role may allow.
type Permission string

// The permissions.
const (
	Read         Permission = "read"          // masked lists and pages
	Triage       Permission = "triage"        // note, assign, snooze, resolve, discard, reopen
	Edit         Permission = "edit"          // a new payload version at the allowed places
	DeclareFix   Permission = "declare_fix"   // lift invalid input and auth
	SettleEffect Permission = "settle_effect" // "it happened, id …" or "it did not"
	ReplayOne    Permission = "replay_one"    // one replay of an idempotent type without money
	PlanBatch    Permission = "plan_batch"
	RunBatch     Permission = "run_batch"    // confirm, pause, resume, cancel
	ReplayMoney  Permission = "replay_money" // replay a type that moves money
	HoldReplays  Permission = "hold_replays"
	ApproveBatch Permission = "approve_batch"
	Reveal       Permission = "reveal" // a raw payload
	ReadAudit    Permission = "read_audit"
	Administer   Permission = "administer" // users, tokens, keys, catalogue, purge
	Capture      Permission = "capture"    // write dead jobs: tokens only
)

// grants is the table of design.md, "Who may what".
var grants = map[Role][]Permission{
	Viewer:   {Read},
	Operator: {Read, Triage, Edit, DeclareFix, SettleEffect, ReplayOne, PlanBatch, HoldReplays},
	OnCall: {Read, Triage, Edit, DeclareFix, SettleEffect, ReplayOne, PlanBatch, HoldReplays,
		RunBatch, ReplayMoney, Reveal},
	Approver: {Read, HoldReplays, ApproveBatch},
	Auditor:  {Read, ReadAudit},
	Admin:    {Read, HoldReplays, ReadAudit, Administer},
}

// Allows reports whether the role holds the permission.
func (r Role) Allows(p Permission) bool { return slices.Contains(grants[r], p) }

// Valid reports whether r is one of the six roles.
func (r Role) Valid() bool { _, ok := grants[r]; return ok }
