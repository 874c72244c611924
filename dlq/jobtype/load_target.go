package jobtype

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
)

func (c *Catalogue) readTargets(v value, into map[string]Target) {
	for _, e := range v.entries() {
		if !slices.Contains(c.Environments, e.key) {
			e.at.fault("unknown environment %q; %s", e.key, suggestion(e.key, c.Environments))
			continue
		}
		into[e.key] = c.readTarget(e.key, e.body)
	}
}

func (c *Catalogue) readTarget(environment string, v value) Target {
	t := Target{OutcomeWithin: DefaultOutcomeWithin}
	var at value // of concurrency
	v.fields(map[string]func(value){
		"river":       func(v value) { t.River = c.readRiver(environment, v) },
		"http":        func(v value) { t.HTTP = readHTTP(v) },
		"concurrency": func(v value) { t.Concurrency, at = v.count(1, 100_000), v },
		"outcome_within": func(v value) {
			if d := v.duration(); d > 7*24*time.Hour {
				v.fault("is longer than 7 days; an outcome that late can't be told from none")
			} else if d > 0 {
				t.OutcomeWithin = d
			}
		},
	})
	if (t.River == nil) == (t.HTTP == nil) {
		v.fault("needs exactly one of river and http")
	}
	if t.Concurrency > 0 && t.Destination() != "" {
		at.r.say(environment, t, at)
	}
	return t
}

func (c *Catalogue) readRiver(environment string, v value) *RiverTarget {
	t := &RiverTarget{Queue: "default"}
	v.fields(map[string]func(value){
		"client": func(v value) { t.Client = v.text() },
		"queue":  func(v value) { t.Queue = v.text() },
	})
	switch s, known := c.Source(t.Client); {
	case t.Client == "":
		v.fault("needs a client: the name of a river source")
	case len(c.Sources) == 0: // declared elsewhere
	case !known || s.Kind != "river":
		v.fault("client %q is no river source of this file", t.Client)
	case s.Environment != environment:
		v.fault("client %q belongs to %s; a replay never leaves its environment", t.Client, s.Environment)
	}
	return t
}

func readHTTP(v value) *HTTPTarget {
	t := &HTTPTarget{}
	v.fields(map[string]func(value){
		"url": func(v value) {
			t.URL = v.webURL()
			if t.URL != "" && !loopback(t.URL) {
				v.fault("must point to this machine (127.0.0.1, ::1 or localhost); other hosts aren't supported yet")
			}
		},
		"secret": func(v value) { t.Secret = v.reference() },
	})
	if t.URL == "" {
		v.fault("needs a url")
	}
	return t
}

// webURL never quotes the text in its fault: a URL may hold a password.
func (v value) webURL() string {
	s := v.text()
	if s == "" {
		return ""
	}
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		v.fault("must be an http:// or https:// address")
	case u.User != nil:
		v.fault("must not hold a user or password; use secret: env:NAME")
	case u.Fragment != "" || strings.ContainsAny(s, " \t\r\n"):
		v.fault("must not hold spaces or a #fragment")
	default:
		return s
	}
	return ""
}

func loopback(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil {
		return false
	}
	if u.Hostname() == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(u.Hostname())
	return err == nil && addr.Unmap().IsLoopback()
}
