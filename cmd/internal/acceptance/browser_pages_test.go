package acceptance

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/redrive-dlq/redrive/views/route"
)

// axe runs the accessibility rules RULES (all when empty) and looks for what a
// narrow window would spoil. It answers with one line for each problem.
const axe = `(async () => {
	// A change of theme fades; what counts is where it ends.
	for (const fade of document.getAnimations()) fade.finish();
	const only = RULES.length ? { runOnly: RULES } : {};
	const result = await axe.run(document, { resultTypes: ["violations"], preload: false, ...only });
	const found = result.violations.flatMap((rule) => rule.nodes.map((node) =>
		rule.id + ": " + node.target.join(" ") + ": " + node.failureSummary.split("\n")[1]));
	if (document.documentElement.scrollWidth > innerWidth)
		found.push("the page scrolls sideways: " + document.documentElement.scrollWidth + " > " + innerWidth);
	if (!document.title.includes("Redrive")) found.push("the title does not name the product: " + document.title);
	return found;
})()`

// looks are the ways a page is looked at. Dark differs from light in colours
// only, so that the rules about colours are enough there.
var looks = []struct {
	theme string
	width int64
	rules string
}{
	{"light", 1440, `[]`}, {"dark", 1440, `["color-contrast", "link-in-text-block"]`},
	{"dark", 390, `["color-contrast", "link-in-text-block"]`}, {"light", 390, `[]`},
}

// TestPagesAreAccessible opens every page of the real demo, in both themes and
// two widths, and lets axe look at it.
func TestPagesAreAccessible(t *testing.T) {
	t.Parallel()
	script := axeScript(t)
	for name, pages := range map[string]func(*tab) map[string]int{
		"first": func(b *tab) map[string]int {
			pages := b.signedIn("oncall", 0)
			pages[route.Audit] = 403
			return pages
		},
		"second": func(b *tab) map[string]int {
			pages := b.signedIn("oncall", 1)
			pages["/jobs?q=status%3Anonsense"], pages["/nowhere"] = 422, 404
			return pages
		},
		"admin": func(b *tab) map[string]int {
			b.look(script, route.Login, 200)
			b.look(script, route.Login+"?next=%2Fjobs", 200)
			return b.signedIn("admin", -1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newTab(t)
			for path, status := range pages(b) {
				b.look(script, path, status)
			}
		})
	}
}

// axeScript is what looks for what keeps people out.
func axeScript(t *testing.T) string {
	t.Helper()
	script, err := os.ReadFile(filepath.Join("..", "..", "..", "static", "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatalf("axe-core is not installed (make build installs it): %v", err)
	}
	return string(script)
}

// signedIn signs in and returns every second page of the role, from the given
// one on, or all when half is negative.
func (b *tab) signedIn(role string, half int) map[string]int {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(1440, 900))
	b.signIn(role)
	pages := map[string]int{}
	for i, path := range b.everyPage(role) {
		if half < 0 || i%2 == half {
			pages[path] = 200
		}
	}
	return pages
}

// look opens a page and lets axe look at it.
func (b *tab) look(script, path string, status int) {
	b.t.Helper()
	if got := b.open(path); got != status {
		b.t.Errorf("%s answers %d, want %d", path, got, status)
	}
	b.axe(script)
}

// axe looks at the page that is open, in every way.
func (b *tab) axe(script string) {
	b.t.Helper()
	path := b.path()
	// By the protocol, not by the page: the content policy would refuse it.
	b.read("(() => {" + script + "})()")
	for _, l := range looks {
		b.prefers(l.theme)
		b.do(chromedp.EmulateViewport(l.width, 900))
		found, err := chromedp.Run(b.ctx, chromedp.Evaluate[[]string](strings.ReplaceAll(axe, "RULES", l.rules), chromedp.EvalAwaitPromise))
		if err != nil {
			b.t.Fatalf("%s: axe: %v", path, err)
		}
		for _, problem := range found {
			b.t.Errorf("%s, %s, %d px: %s", path, l.theme, l.width, problem)
		}
	}
	b.do(chromedp.EmulateViewport(1440, 900))
}

func (b *tab) signOut() {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(1440, 900))
	b.open(route.Account)
	b.do(chromedp.Click(chromedp.CSS(`header details:has(form[action="/logout"]) summary`)))
	b.follow(`form[action="/logout"] button`)
}

// everyPage lists the pages that a role may open, with what each shows.
func (b *tab) everyPage(role string) []string {
	b.t.Helper()
	if role == "admin" {
		return []string{route.Audit, route.Users, route.NewUser, route.Tokens, route.NewToken}
	}
	d := b.demo
	// Jobs that no other test changes.
	paths := []string{
		route.Overview, route.Jobs, "/jobs?env=production&category=transient", "/jobs?job=there-is-none",
		route.Groups, route.Batches, route.Holds, route.Types, route.Type("charge_card"), route.Sources, route.Targets,
		route.Account, route.Passphrase,
	}
	bad := d.find(b.t, "type:import_catalog category:invalid_input status:open")[0]
	unknown := d.find(b.t, "key:charge:8835:b2")[0]
	overloaded := d.find(b.t, "type:send_invoice class:ServiceUnavailable status:open")[0]
	paths = append(paths, route.Group(bad.Fingerprint))
	for _, j := range []listed{bad, unknown, overloaded} {
		paths = append(paths, route.Job(jobPath(j)), route.Job(jobPath(j))+"?view=raw")
	}
	for _, action := range route.Actions {
		id := jobPath(bad)
		switch action {
		case route.Settle:
			id = jobPath(unknown)
		case route.Replay:
			id = jobPath(overloaded)
		case route.Reopen, "cancel":
			continue // an open job has nothing to reopen or to take back
		}
		paths = append(paths, route.JobAction(id, action))
	}
	return slices.Compact(paths)
}

func jobPath(j listed) string { return strconv.FormatInt(j.ID, 10) }
