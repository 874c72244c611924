package route

import "net/url"

// Pages and actions of administrators.
const (
	NewUser            = Users + "/new"
	UserPattern        = Users + "/:id"
	AddGrantPattern    = UserPattern + "/grants"
	RemoveGrantPattern = UserPattern + "/grants/remove"
	DisablePattern     = UserPattern + "/disable"
	EnablePattern      = UserPattern + "/enable"
	NewToken           = Tokens + "/new"
	RevokePattern      = Tokens + "/:id/revoke"
	Passphrase         = Account + "/passphrase"
)

// Names of the administrators' form fields.
const (
	FieldName        = "name"
	FieldRole        = "role"
	FieldEnvironment = "environment"
	FieldType        = "job_type"
	FieldOwner       = "owner"
	FieldCapture     = "capture"
	FieldSources     = "sources"
	FieldDays        = "days"
	FieldNew         = "new_password"
)

// User returns the page of a person.
func User(id string) string { return Users + "/" + url.PathEscape(id) }

// UserAction returns the form target of an action on a person: grants,
// grants/remove, disable or enable.
func UserAction(id, action string) string { return User(id) + "/" + action }

// RevokeToken returns the page, and the form's target, that revokes a token.
func RevokeToken(id string) string { return Tokens + "/" + url.PathEscape(id) + "/revoke" }
