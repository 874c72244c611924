package web

import (
	"net/http"

	"github.com/redrive-dlq/redrive/rbac"
	"github.com/redrive-dlq/redrive/views/route"
)

// pageRoutes are the pages that read; what they show is limited to the reader's
// scope by the domain calls themselves.
func (s *Server) pageRoutes() []Route {
	read := Needs(rbac.Read)
	return []Route{
		{Method: http.MethodGet, Path: route.Overview, Name: "overview", Audience: Browser, Policy: read, Handle: s.overviewPage},
		{Method: http.MethodGet, Path: route.Jobs, Name: "jobs", Audience: Browser, Policy: read, Handle: s.jobsPage},
		{Method: http.MethodGet, Path: route.JobPattern, Name: "job", Audience: Browser, Policy: read, Handle: s.jobPage},
		{Method: http.MethodGet, Path: route.JobPayloadPattern, Name: "job.payload", Audience: Browser, Policy: read, Handle: s.jobPayload},
		{Method: http.MethodGet, Path: route.JobEventsPattern, Name: "job.events", Audience: Browser, Policy: read, Stream: true, Handle: s.jobEvents},
		{Method: http.MethodGet, Path: route.Groups, Name: "groups", Audience: Browser, Policy: read, Handle: s.groupsPage},
		{Method: http.MethodGet, Path: route.GroupPattern, Name: "group", Audience: Browser, Policy: read, Handle: s.groupPage},
		{Method: http.MethodGet, Path: route.Batches, Name: "batches", Audience: Browser, Policy: read, Handle: s.batchesPage},
		{Method: http.MethodGet, Path: route.BatchPattern, Name: "batch", Audience: Browser, Policy: read, Handle: s.batchPage},
		{Method: http.MethodGet, Path: route.BatchEvents, Name: "batch.events", Audience: Browser, Policy: read, Stream: true, Handle: s.batchEvents},
		{Method: http.MethodGet, Path: route.Types, Name: "types", Audience: Browser, Policy: read, Handle: s.typesPage},
		{Method: http.MethodGet, Path: route.TypePattern, Name: "type", Audience: Browser, Policy: read, Handle: s.typePage},
		{Method: http.MethodGet, Path: route.Sources, Name: "sources", Audience: Browser, Policy: read, Handle: s.sourcesPage},
		{Method: http.MethodGet, Path: route.Targets, Name: "targets", Audience: Browser, Policy: read, Handle: s.targetsPage},
		{Method: http.MethodGet, Path: route.Audit, Name: "audit", Audience: Browser, Policy: Needs(rbac.ReadAudit), Handle: s.auditPage},
	}
}
