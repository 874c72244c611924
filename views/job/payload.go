package job

import (
	"encoding/base64"
	"encoding/hex"
	"strings"

	"github.com/redrive-dlq/redrive/views/component"
	"github.com/redrive-dlq/redrive/views/route"
)

type viewLink struct {
	name, word, href string
	current          bool
}

// views lists the ways in which this payload can be looked at.
func (p Props) views() []viewLink {
	var names [][2]string
	switch p.Payload.Kind {
	case "json":
		names = [][2]string{{"tree", "Tree"}, {"raw", "As text"}}
	case "text":
		names = [][2]string{{"raw", "As text"}}
	case "binary":
		names = [][2]string{{"hex", "Hex"}, {"base64", "Base64"}}
	}
	if p.Payload.Version > 1 {
		names = append(names, [2]string{"diff", "What the edit changed"})
	}
	links := make([]viewLink, 0, len(names))
	for _, name := range names {
		links = append(links, viewLink{
			name:    name[0],
			word:    name[1],
			href:    route.JobView(p.ID, p.Payload.Version, name[0]),
			current: name[0] == p.Payload.view(),
		})
	}
	return links
}

// view is the chosen view, or the first that fits the kind.
func (p Payload) view() string {
	switch {
	case p.View == "diff" && p.Version > 1:
		return "diff"
	case p.Kind == "json" && (p.View == "raw" || p.View == "tree"):
		return p.View
	case p.Kind == "json":
		return "tree"
	case p.Kind == "text":
		return "raw"
	case p.Kind == "binary" && p.View == "base64":
		return "base64"
	case p.Kind == "binary":
		return "hex"
	}
	return ""
}

// facts is the line below the payload's title.
func (p Payload) facts() string {
	facts := []string{component.Bytes(p.Size)}
	if p.Encoding != "" {
		facts = append(facts, p.Encoding)
	}
	if p.MediaType != "" {
		facts = append(facts, p.MediaType)
	}
	return strings.Join(facts, " · ")
}

func (p Payload) hexDump() string { return strings.TrimRight(hex.Dump(p.Binary), "\n") }

// base64Lines breaks at 76 characters, as MIME does.
func (p Payload) base64Lines() string {
	encoded := base64.StdEncoding.EncodeToString(p.Binary)
	var lines []string
	for len(encoded) > 76 {
		lines = append(lines, encoded[:76])
		encoded = encoded[76:]
	}
	return strings.Join(append(lines, encoded), "\n")
}

// shown is how many bytes of the payload the page holds.
func (p Payload) shown() int {
	if p.Kind == "binary" {
		return len(p.Binary)
	}
	return len(p.Text)
}

func (p Payload) hiddenText() string {
	return component.Plural(p.Hidden, "value is hidden", "values are hidden")
}
