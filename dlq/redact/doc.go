// Package redact makes the copies of a dead job that people may read.
//
// It hides credentials, cookies, card numbers and the like in free text
// ([Text]), JSON ([JSON]), headers ([Headers]) and whole payloads ([Payload]),
// and makes any text safe to show and to store ([Visible]). What it returns is
// for eyes, lists and search only: a replay always sends the stored bytes.
//
// The engine is one forward pass over the bytes without regular expressions.
// A byte that can't start or end a secret costs one table lookup; every look
// back or ahead is bounded or covers bytes only once, so the cost is linear in
// the input whatever the input is. Above [MaxBytes] or [MaxDepth] nothing is
// shown: a limit fails closed.
//
// A hidden value is replaced by its kind in single guillemets, ‹password› or
// ‹card ••1111›, so that a reader sees why it is gone. Redacting a redacted
// text changes nothing.
package redact

// Version names this set of rules. Stored redacted copies carry it; a copy
// with a lower version was made by older rules and must be made again before
// it is searched or shown.
const Version = 1

const (
	// MaxBytes is the largest input, in bytes, that is looked into; anything
	// longer is hidden as a whole. It equals the capture limit of one document.
	MaxBytes = 16 << 20
	// MaxDepth is the deepest JSON nesting that is looked into; deeper
	// documents are hidden as a whole. PostgreSQL's own parser gives up far
	// later, a reader far earlier.
	MaxDepth = 512
)

// The kinds of hidden values, as they stand between ‹ and ›.
const (
	kindPassword   = "password"
	kindSecret     = "secret"
	kindToken      = "token"
	kindKey        = "key"
	kindCookie     = "cookie"
	kindSignature  = "signature"
	kindCode       = "code"
	kindCVV        = "cvv"
	kindJWT        = "jwt"
	kindPrivateKey = "private key"
)

const (
	markOpen  = "‹"
	markClose = "›"
)

func mark(kind string) string { return markOpen + kind + markClose }
