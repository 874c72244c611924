package static

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func get(t *testing.T, path, encoding string) *http.Response {
	t.Helper()
	request := httptest.NewRequest(http.MethodGet, path, nil)
	request.Header.Set("Accept-Encoding", encoding)
	answer := httptest.NewRecorder()
	Handler().ServeHTTP(answer, request)
	return answer.Result()
}

func TestUnknownPathsAreNotFound(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/static/", "/static/x", "/static/x/nothing.css", "/static/x/../embed.go", "/static/x/.gitkeep", "/static//etc/passwd"} {
		if answer := get(t, path, ""); answer.StatusCode != http.StatusNotFound {
			t.Errorf("%s answers %d", path, answer.StatusCode)
		}
	}
}

func TestOnlyReading(t *testing.T) {
	t.Parallel()
	answer := httptest.NewRecorder()
	Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodPost, Path("app.css"), nil))
	if answer.Code != http.StatusMethodNotAllowed || answer.Header().Get("Allow") != "GET, HEAD" {
		t.Errorf("POST answers %d, Allow %q", answer.Code, answer.Header().Get("Allow"))
	}
}

func TestAccepts(t *testing.T) {
	t.Parallel()
	for _, one := range []struct {
		header, coding string
		want           bool
	}{
		{"gzip, deflate, br", "br", true},
		{"gzip;q=0.5", "gzip", true},
		{"gzip; q=0", "gzip", false},
		{"br;q=0.000, gzip", "br", false},
		{"brotli", "br", false},
		{"", "gzip", false},
		{"gzip;q=much", "gzip", false},
	} {
		if got := accepts(one.header, one.coding); got != one.want {
			t.Errorf("accepts(%q, %q) = %t", one.header, one.coding, got)
		}
	}
}

func TestBundleIsServedCompressedAndImmutable(t *testing.T) {
	t.Parallel()
	if !Built() {
		t.Skip("the bundle is not built: run npm run build in static")
	}
	plain := get(t, Path("app.css"), "")
	packed := get(t, Path("app.css"), "gzip")
	if got := packed.Header.Get("Cache-Control"); got != "public, max-age=31536000, immutable" {
		t.Errorf("Cache-Control is %q", got)
	}
	if got := get(t, Prefix+"0123/app.css", "").Header.Get("Cache-Control"); got != "no-cache" {
		t.Errorf("Cache-Control of an old checksum is %q", got)
	}
	unpacked, err := gzip.NewReader(packed.Body)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := io.ReadAll(plain.Body)
	got, err := io.ReadAll(unpacked)
	if err != nil || string(got) != string(want) || len(got) == 0 {
		t.Errorf("the compressed copy differs from the file (%v)", err)
	}
	if strings.Contains(string(want), "http://") && strings.Contains(string(want), "@import") {
		t.Error("the styles load something from elsewhere")
	}
}
