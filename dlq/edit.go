package dlq

// EditPolicy says what of a type's payloads may be edited and what they must
// look like.
type EditPolicy interface {
	// EditPointers are the JSON pointers (RFC 6901) of the places that may be
	// edited; none: the type's payloads can't be edited.
	EditPointers(jobType string) []string
	// ValidatePayload checks a payload against the schema of its version.
	ValidatePayload(jobType string, version int, payload []byte) ([]EditFault, error)
}

// EditFault is one place where a payload breaks its schema.
type EditFault struct {
	Pointer string
	Message string // what was expected; never the value
}
