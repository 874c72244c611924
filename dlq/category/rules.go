package category

// rule maps lower-case phrases to a category.
type rule struct {
	category Category
	code     string
	phrases  []string
}

// byStatus stands in the rules where the HTTP status is asked.
const byStatus Category = "by status"

// rules are asked in order. Phrases are parts of messages and class names in
// lower case, SQLSTATEs and system error names among them. What comes before
// byStatus is more exact than a status: providers answer 400 or 403 for a
// refused key or a rate limit.
var rules = []rule{
	{Throttled, "rate_limit", []string{"rate limit", "ratelimit", "rate_limit", "rate exceeded", "too many requests", "toomanyrequests", "throttl", "slowdown", "slow down"}},
	{Throttled, "quota", []string{"quota", "resource_exhausted", "resourceexhausted", "límite de peticiones", "cuota"}},
	{Auth, "key_expired", []string{"key expired", "expired key", "expired api key", "key has expired", "token expired", "expired token", "expiredtoken", "token has expired", "clave caducada"}},
	{Auth, "invalid_key", []string{"invalid api key", "invalid_api_key", "invalidapikey", "invalid token", "invalidtoken", "invalidaccesskeyid", "invalid access token", "invalid credential", "bad credentials", "invalid_grant", "unknown api key", "key was revoked", "key revoked"}},
	{Auth, "authentication", []string{"unauthorized", "unauthorised", "unauthenticated", "authentication failed", "authenticationerror", "authentication required", "not authenticated", "28p01", "signature mismatch", "signaturedoesnotmatch", "oauth"}},
	{Auth, "permission", []string{"forbidden", "permission denied", "permissiondenied", "permission_denied", "access denied", "accessdenied", "not authorized", "notauthorized", "42501", "permiso"}},
	{category: byStatus},
	{Throttled, "retry_after", []string{"retry-after", "retry after", "try again in ", "intenta de nuevo en"}},
	{Transient, "timeout", []string{"timeout", "timed out", "timedout", "time out", "deadline exceeded", "deadline_exceeded", "deadlineexceeded", "gave up after", "tiempo de espera"}},
	{Transient, "connection", []string{"connection refused", "connection reset", "econnrefused", "econnreset", "epipe", "broken pipe", "connection closed", "closed the connection", "connectionerror", "connection error", "connection aborted", "connectexception", "unexpected eof", "network is unreachable", "no route to host", "server closed", "socket hang up", "conexión rechazada", "bad connection"}},
	{Transient, "name_lookup", []string{"no such host", "eai_again", "enotfound", "name resolution", "getaddrinfo"}},
	{Transient, "unavailable", []string{"unavailable", "temporarily", "bad gateway", "internal server error", "overloaded", "no disponible", "try again later", "service away"}},
	{Transient, "database", []string{"deadlock", "could not serialize", "40001", "40p01", "lock timeout", "55p03", "too many connections", "53300", "57p01", "57p03", "starting up", "database is locked"}},
	{MissingState, "missing_record", []string{"record not found", "recordnotfound", "no rows", "norows", "not found", "notfound", "not_found", "does not exist", "doesn't exist", "doesnotexist", "no longer exists", "no such", "nosuchkey", "was deleted", "has been deleted", "foreign key", "23503", "missing record", "no existe", "no encontrado"}},
	{Unknown, "program_fault", []string{"index out of range", "slice bounds out of range", "nil pointer", "nil map", "null pointer", "nullpointerexception", "index out of bounds", "division by zero", "divide by zero"}},
	{InvalidInput, "invalid_recipient", []string{"invalid recipient", "invalid_recipient", "invalid email", "invalid e-mail", "invalid address", "email inválido", "receptor inválido"}},
	{InvalidInput, "missing_field", []string{"missing required", "required field", "is required", "missing field", "must not be null", "can't be blank", "not-null", "23502", "campo requerido"}},
	{InvalidInput, "schema", []string{"schema", "does not match pattern", "additional propert", "unknown field"}},
	{InvalidInput, "unreadable", []string{"unmarshal", "cannot parse", "can't parse", "parse error", "parseerror", "unexpected token", "malformed", "syntax error", "decode", "deserializ", "encodingerror", "not a pdf", "notapdf"}},
	{InvalidInput, "validation", []string{"validation", "invalid", "inválid", "bad request", "unprocessable", "not a valid", "out of range", "overflow", "illegal argument", "illegalargument", "valueerror", "argumenterror", "23514", "22p02", "22003", "unsupported media"}},
}

// ofStatus is the category of an HTTP status. The statuses that it doesn't
// know say too little (402, 409) or ask for a change of the server (501, 505).
func ofStatus(s int) Category {
	switch s {
	case 408, 425, 500, 502, 503, 504, 507, 520, 521, 522, 523, 524:
		return Transient
	case 429, 529:
		return Throttled
	case 404, 410:
		return MissingState
	case 400, 405, 406, 411, 413, 414, 415, 416, 422, 431:
		return InvalidInput
	case 401, 403, 407, 511:
		return Auth
	}
	return Unknown
}
