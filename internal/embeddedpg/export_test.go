package embeddedpg

// Alive is alive, for tests.
var Alive = alive

// ParseVersion is parseVersion, for tests.
var ParseVersion = parseVersion

// Abandon gives the data directory free while the server goes on: what a
// killed process leaves where the kernel ends no children for it.
func (s *Server) Abandon() { s.release() }
