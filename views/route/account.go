package route

import "net/url"

// Tokens that a signed-in person mints for their own scripts.
const (
	NewOwnToken           = Account + "/tokens/new"
	RevokeOwnTokenPattern = Account + "/tokens/:id/revoke"
)

// FieldMinutes names how long such a token lives.
const FieldMinutes = "minutes"

// RevokeOwnToken returns the form target that stops a token of one's own.
func RevokeOwnToken(id string) string { return Account + "/tokens/" + url.PathEscape(id) + "/revoke" }
