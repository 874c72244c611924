package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/redrive-dlq/redrive/cmd/internal/demo"
	"github.com/redrive-dlq/redrive/views/route"
)

// picturesEnv is a folder: with it, each page is photographed there, to be
// looked at and for the documents.
const picturesEnv = "REDRIVE_PICTURES"

var notForNames = regexp.MustCompile(`[^a-z0-9]+`)

// TestPictures photographs every page, light and dark, wide and narrow.
func TestPictures(t *testing.T) {
	folder := os.Getenv(picturesEnv)
	if folder == "" {
		t.Skip("takes pictures only where " + picturesEnv + " names a folder")
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	b := newTab(t)
	b.demo.find(t, "key:"+demo.ArticleSendID)
	article := route.Job(jobPath(b.demo.find(t, "env:production key:"+demo.ArticleSendID)[0]))
	b.photograph(folder, route.Login)
	b.signIn("oncall")
	for _, path := range append(b.everyPage("oncall"), article) {
		b.photograph(folder, path)
	}
	b.signOut()
	b.signIn("admin")
	for _, path := range b.everyPage("admin") {
		b.photograph(folder, path)
	}
}

func (b *tab) photograph(folder, path string) {
	b.t.Helper()
	b.open(path)
	name := strings.Trim(notForNames.ReplaceAllString(strings.ToLower(path), "-"), "-")
	if name == "" {
		name = "overview"
	}
	for _, l := range looks {
		b.prefers(l.theme)
		b.do(chromedp.EmulateViewport(l.width, 900))
		b.read(`document.getAnimations().forEach((fade) => fade.finish())`)
		picture, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
		if err != nil {
			b.t.Fatal(err)
		}
		file := filepath.Join(folder, fmt.Sprintf("%s-%s-%d.png", name, l.theme, l.width))
		if err := os.WriteFile(file, picture, 0o644); err != nil {
			b.t.Fatal(err)
		}
	}
}
