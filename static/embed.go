// Package static holds the console's built styles and scripts and serves them.
//
// The bundle is built by npm into dist/, which is not committed: a fresh clone
// compiles without it, and Built reports whether it is there.
package static

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
)

//go:embed all:dist
var dist embed.FS

// Prefix is the path below which Handler must be mounted.
const Prefix = "/static/"

// unbuilt stands in a path for a file that the bundle does not hold.
const unbuilt = "unbuilt"

// asset is one file with its compressed copies; none changes after start.
type asset struct {
	plain, gzip, brotli []byte
	sum, contentType    string
}

var assets = load()

func load() map[string]asset {
	all := map[string]asset{}
	entries, err := fs.ReadDir(dist, "dist")
	if err != nil {
		return all
	}
	for _, entry := range entries {
		name := entry.Name()
		ext := path.Ext(name)
		if ext == ".gz" || ext == ".br" || strings.HasPrefix(name, ".") {
			continue
		}
		plain, err := dist.ReadFile("dist/" + name)
		if err != nil {
			continue
		}
		sum := sha256.Sum256(plain)
		one := asset{plain: plain, sum: hex.EncodeToString(sum[:8]), contentType: contentType(ext)}
		// The copies are optional: without them the plain file is sent.
		one.gzip, _ = dist.ReadFile("dist/" + name + ".gz")
		one.brotli, _ = dist.ReadFile("dist/" + name + ".br")
		all[name] = one
	}
	return all
}

// contentType answers from a fixed table first, because the system's own
// table differs from machine to machine and nosniff makes a wrong one fatal.
func contentType(ext string) string {
	switch ext {
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	}
	if t := mime.TypeByExtension(ext); t != "" {
		return t
	}
	return "application/octet-stream"
}

// Built reports whether the bundle was built before the program was compiled.
func Built() bool {
	_, css := assets["app.css"]
	_, js := assets["app.js"]
	return css && js
}

// Path returns the URL path of a file of the bundle, with its checksum in it,
// so that a browser may keep it for ever.
func Path(name string) string {
	one, ok := assets[name]
	if !ok {
		return Prefix + unbuilt + "/" + name
	}
	return Prefix + one.sum + "/" + name
}

// Handler serves the bundle below Prefix. A path with the current checksum is
// immutable; one with an old checksum is answered with the current file, which
// must not be stored, so that a page rendered before an upgrade keeps working.
func Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "only GET and HEAD are answered here", http.StatusMethodNotAllowed)
			return
		}
		sum, name, found := strings.Cut(strings.TrimPrefix(r.URL.Path, Prefix), "/")
		one, ok := assets[name]
		if !found || !ok {
			http.NotFound(w, r)
			return
		}
		header := w.Header()
		header.Set("Content-Type", one.contentType)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Vary", "Accept-Encoding")
		header.Set("Cache-Control", "no-cache")
		if sum == one.sum {
			header.Set("Cache-Control", "public, max-age=31536000, immutable")
		}
		body := one.plain
		switch accepted := r.Header.Get("Accept-Encoding"); {
		case one.brotli != nil && accepts(accepted, "br"):
			header.Set("Content-Encoding", "br")
			body = one.brotli
		case one.gzip != nil && accepts(accepted, "gzip"):
			header.Set("Content-Encoding", "gzip")
			body = one.gzip
		}
		header.Set("Content-Length", strconv.Itoa(len(body)))
		if r.Method == http.MethodGet {
			_, _ = w.Write(body) // a reader that went away is nobody's error
		}
	})
}

// accepts reports whether an Accept-Encoding header names the coding without
// refusing it by q=0.
func accepts(header, coding string) bool {
	for part := range strings.SplitSeq(header, ",") {
		name, params, _ := strings.Cut(strings.TrimSpace(part), ";")
		if strings.TrimSpace(name) != coding {
			continue
		}
		q, isQ := strings.CutPrefix(strings.ReplaceAll(params, " ", ""), "q=")
		if !isQ {
			return true
		}
		weight, err := strconv.ParseFloat(q, 64)
		return err == nil && weight > 0
	}
	return false
}
