package sample_test

import (
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"
	"github.com/a-h/templ"

	"github.com/redrive-dlq/redrive/views/account"
	"github.com/redrive-dlq/redrive/views/admin"
	"github.com/redrive-dlq/redrive/views/audit"
	"github.com/redrive-dlq/redrive/views/batches"
	"github.com/redrive-dlq/redrive/views/groups"
	"github.com/redrive-dlq/redrive/views/job"
	"github.com/redrive-dlq/redrive/views/jobs"
	"github.com/redrive-dlq/redrive/views/login"
	"github.com/redrive-dlq/redrive/views/message"
	"github.com/redrive-dlq/redrive/views/overview"
	"github.com/redrive-dlq/redrive/views/sources"
	"github.com/redrive-dlq/redrive/views/targets"
	"github.com/redrive-dlq/redrive/views/types"
)

// markup is what attackers put into job names, errors and headers. Each holds
// the word planted, which must come out as text.
var markup = []string{
	`<script>planted()</script>`,
	`"><img src=x onerror=planted()>`,
	`' onmouseover='planted()' x='`,
	`</title></textarea></pre><svg onload=planted()>`,
	`javascript:planted()`,
	`JaVaScRiPt:planted()`,
	`data:text/html,<script>planted()</script>`,
	`{{constructor.constructor('planted()')()}}`,
	`<!--planted--><iframe srcdoc="<script>planted()</script>">`,
	"\x00planted\x1b[31m<b>",
}

func everyPage(text string) map[string]templ.Component {
	detail, raw, binary := filled[job.Props](text), filled[job.Props](text), filled[job.Props](text)
	detail.Payload.Kind, detail.Payload.View = "json", "tree"
	detail.Payload.Text = `{"a":"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\x00", `\u0000`, "\x1b", `\u001b`).Replace(text) + `"}`
	raw.Payload.Kind, raw.Payload.View = "text", "raw"
	binary.Payload.Kind, binary.Payload.View = "binary", "hex"
	form := filled[job.ReplayProps](text)
	form.Blocks = nil
	return map[string]templ.Component{
		"login": login.View(filled[login.Props](text)), "message": message.View(filled[message.Props](text)),
		"overview": overview.View(filled[overview.Props](text)), "jobs": jobs.List(filled[jobs.Props](text)),
		"job": job.Detail(detail), "job raw": job.Detail(raw), "job binary": job.Detail(binary),
		"edit": job.EditForm(filled[job.EditProps](text)), "edit diff": job.EditDiff(filled[job.EditDiffProps](text)),
		"fix": job.Fix(filled[job.FixProps](text)), "settle": job.Settle(filled[job.SettleProps](text)),
		"replay": job.Replay(form), "replay refused": job.Replay(filled[job.ReplayProps](text)),
		"resolve": job.Resolve(filled[job.ResolveProps](text)), "discard": job.Discard(filled[job.Act](text)),
		"reopen": job.Reopen(filled[job.Act](text)), "note": job.NoteForm(filled[job.Act](text), text),
		"snooze": job.Snooze(filled[job.SnoozeProps](text)), "assign": job.Assign(filled[job.AssignProps](text)),
		"refused": job.Refused(filled[job.Act](text), "/jobs/1", text),
		"batches": batches.List(filled[batches.ListProps](text)), "batch": batches.View(filled[batches.Props](text)),
		"types": types.View(filled[types.Props](text)), "sources": sources.View(filled[sources.Props](text)),
		"targets": targets.View(filled[targets.Props](text)), "audit": audit.View(filled[audit.Props](text)),
		"account": account.View(filled[account.Props](text)), "users": admin.Users(filled[admin.UsersProps](text)),
		"groups": groups.List(filled[groups.ListProps](text)), "group": groups.View(filled[groups.Props](text)),
		"passphrase": account.Passphrase(filled[account.PassphraseProps](text)), "confirm": login.Confirm(filled[login.ConfirmProps](text)),
		"new user": admin.NewUser(filled[admin.NewUserProps](text)), "user": admin.Person(filled[admin.PersonProps](text)),
		"new token": admin.NewToken(filled[admin.NewTokenProps](text)), "minted": admin.Minted(filled[admin.MintedProps](text)),
		"revoke": admin.Revoke(filled[admin.RevokeProps](text)),
		"tokens": admin.Tokens(filled[admin.TokensProps](text)),
	}
}

// TestMarkupIsShownAsText puts markup into every field of every page.
func TestMarkupIsShownAsText(t *testing.T) {
	t.Parallel()
	for _, text := range markup {
		for name, page := range everyPage(text) {
			doc := render(t, page)
			if !strings.Contains(doc.Find("body").Text(), "planted") {
				t.Errorf("%s does not show %q at all", name, text)
			}
			for _, problem := range unsafeParts(doc) {
				t.Errorf("%s with %q: %s", name, text, problem)
			}
		}
	}
}

// unsafeParts lists what could run a script or carry a style inline.
func unsafeParts(doc *goquery.Document) []string {
	var found []string
	doc.Find("*").Each(func(_ int, s *goquery.Selection) {
		node := s.Get(0)
		for _, attr := range node.Attr {
			key, value := strings.ToLower(attr.Key), strings.ToLower(strings.TrimSpace(attr.Val))
			switch {
			case strings.HasPrefix(key, "on"), key == "style", key == "srcdoc":
				found = append(found, node.Data+" has the attribute "+key)
			case key == "href", key == "src", key == "action", key == "formaction":
				if strings.HasPrefix(value, "javascript:") || strings.HasPrefix(value, "data:") || strings.HasPrefix(value, "vbscript:") {
					found = append(found, node.Data+" leads to "+value)
				}
			}
		}
		switch node.Data {
		case "script":
			if src, _ := s.Attr("src"); s.Text() != "" || !strings.HasPrefix(src, "/static/") {
				found = append(found, "a script that is not ours")
			}
		case "iframe", "object", "embed", "base", "style":
			found = append(found, "the element "+node.Data)
		case "img":
			if src, _ := s.Attr("src"); !strings.HasPrefix(src, "/static/") {
				found = append(found, "an image from "+src)
			}
		}
	})
	return found
}
