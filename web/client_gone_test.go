package web

import (
	"crypto/rand"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
)

// A client that closes its connection in the middle of an answer is not a
// failure of ours, though the error reads like a broken database's.
func TestAClientThatLeavesIsNoFailure(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	b := setup(t, func(config *Config) {
		config.Routes = append(config.Routes, Route{Method: "GET", Path: "/odd/endless", Name: "odd.endless", Audience: Browser, Policy: Public(),
			Handle: func(c echo.Context) error {
				noise := make([]byte, 64<<10)
				_, _ = rand.Read(noise)
				for {
					if err := c.Blob(200, "text/plain", noise); err != nil {
						ended <- err
						return err
					}
				}
			}})
	})
	server := httptest.NewServer(b.server)
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte("GET /odd/endless HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil { // with bytes unread: a reset
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if !unavailable(err) || !clientGone(err) {
			t.Errorf("the failure to write: %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the answer never ended")
	}
	server.Close()
	if log := b.log.String(); strings.Contains(log, `"level":"ERROR"`) || !strings.Contains(log, `"msg":"failed"`) || strings.Contains(log, `"level":"WARN"`) {
		t.Errorf("the log:\n%s", log)
	}
}
