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
	b.signOut()

	// The pages of a batch by the order in which a person meets them.
	first, second := newTab(t), newTab(t)
	first.signIn("oncall")
	second.signIn("approver")
	n := 0
	each := func(b *tab) hand {
		return pointer(b, func() {
			n++
			b.snap(folder, fmt.Sprintf("batch-%02d-%s", n, pictureName(b.path())))
		})
	}
	each(first).batchByHand(each(second), "pictures", "update_search_index")
}

func pictureName(path string) string {
	if name := strings.Trim(notForNames.ReplaceAllString(strings.ToLower(path), "-"), "-"); name != "" {
		return name
	}
	return "overview"
}

func (b *tab) photograph(folder, path string) {
	b.t.Helper()
	b.open(path)
	b.snap(folder, pictureName(path))
}

// snap photographs the page that is open, in every look.
func (b *tab) snap(folder, name string) {
	b.t.Helper()
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
	b.do(chromedp.EmulateViewport(1440, 900))
}
