package acceptance

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/cmd/internal/demo/providers"
	"github.com/redrive-dlq/redrive/internal/embeddedpg"
	"github.com/redrive-dlq/redrive/static"
)

// demoJobs is how many dead jobs the browser tests start with: enough of every
// type, category and environment, and quickly there.
const demoJobs = "150"

// demoProcess is the real "redrive demo", one for all browser tests.
type demoProcess struct {
	base      string // http://127.0.0.1:PORT
	providers string // address of the fake providers
	dir       string // binary and data, removed at the end
	cmd       *exec.Cmd
	log       lockedBuffer
}

// theDemo is started by the first test that needs it and stopped by TestMain.
var theDemo struct {
	sync.Once
	process *demoProcess
	err     error
}

// demoWorld returns the running demo.
func demoWorld(t *testing.T) *demoProcess {
	t.Helper()
	if testing.Short() {
		t.Skip("drives a browser against the whole demo")
	}
	if !static.Built() {
		t.Fatal("the styles and scripts are not built, and the pages need them: run make test, or make build first")
	}
	theDemo.Do(func() { theDemo.process, theDemo.err = startDemo() })
	if theDemo.err != nil {
		t.Fatal(theDemo.err)
	}
	return theDemo.process
}

// startDemo builds the binary, as make does, and waits until it serves.
func startDemo() (*demoProcess, error) {
	dir, err := os.MkdirTemp(embeddedpg.TempDir(), "redrive-browser-")
	if err != nil {
		return nil, err
	}
	d := &demoProcess{dir: dir}
	// PostgreSQL's account has to pass through.
	if err := os.Chmod(dir, 0o755); err != nil {
		return d, err
	}
	binary := filepath.Join(dir, "redrive")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", binary, "github.com/redrive-dlq/redrive/cmd/redrive")
	if out, err := build.CombinedOutput(); err != nil {
		return d, fmt.Errorf("build the demo: %w\n%s", err, out)
	}
	d.cmd = exec.Command(binary, "demo", "--listen", "127.0.0.1:0", "--data-dir", filepath.Join(dir, "data"), "--jobs", demoJobs, "--trickle=-1s")
	d.cmd.Stderr = &d.log
	stdout, err := d.cmd.StdoutPipe()
	if err != nil {
		return d, err
	}
	if err := d.cmd.Start(); err != nil {
		return d, err
	}
	if d.base, err = readyAddress(stdout, 90*time.Second); err != nil {
		return d, fmt.Errorf("the demo does not serve: %w\n%s", err, d.log.tail())
	}
	d.providers, err = providersOf(filepath.Join(dir, "data"))
	return d, err
}

// readyAddress reads the line that the demo prints when it serves.
func readyAddress(stdout io.Reader, within time.Duration) (string, error) {
	found := make(chan string, 1)
	go func() {
		defer close(found)
		lines := bufio.NewScanner(stdout)
		for lines.Scan() {
			if _, address, ok := strings.Cut(lines.Text(), "Redrive is ready: "); ok {
				found <- address
				break
			}
		}
		_, _ = io.Copy(io.Discard, stdout)
	}()
	select {
	case address, ok := <-found:
		if !ok {
			return "", errors.New("it ended before it was ready")
		}
		return address, nil
	case <-time.After(within):
		return "", fmt.Errorf("not ready within %s", within)
	}
}

// providersOf asks the demo's database where its fake providers listen.
func providersOf(dataDir string) (address string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	socket := filepath.Join(dataDir, "postgres", "run")
	if elsewhere, err := os.ReadFile(filepath.Join(dataDir, "postgres.socket")); err == nil {
		socket = strings.TrimSpace(string(elsewhere))
	}
	conn, err := pgx.Connect(ctx, fmt.Sprintf("host=%s user=%s dbname=%s", socket, embeddedpg.Role, embeddedpg.Database))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	err = conn.QueryRow(ctx, `SELECT value FROM demo_app.settings WHERE name = 'providers_url'`).Scan(&address)
	return address, err
}

// stopDemo ends the demo as a person would, and removes what it left.
func stopDemo() error {
	d := theDemo.process
	if d == nil {
		return nil
	}
	var errs []error
	if d.cmd != nil && d.cmd.Process != nil {
		errs = append(errs, d.cmd.Process.Signal(syscall.SIGTERM))
		if err := d.cmd.Wait(); err != nil {
			errs = append(errs, fmt.Errorf("the demo did not end cleanly: %w\n%s", err, d.log.tail()))
		}
	}
	// Whatever the tests did, the program itself must not have failed.
	for _, line := range d.log.faults() {
		errs = append(errs, errors.New("the demo logged: "+line))
	}
	return errors.Join(append(errs, os.RemoveAll(d.dir))...)
}

// call asks the API as a role, or as the ingest token.
func (d *demoProcess) call(t *testing.T, token, method, path string, body []byte) (int, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, d.base+"/api/v1"+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer demo-"+token+"-token")
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, text
}

// capture sends one document to the API and returns the id of its dead job.
func (d *demoProcess) capture(t *testing.T, document []byte) int64 {
	t.Helper()
	status, text := d.call(t, "ingest", http.MethodPost, "/dead-jobs", document)
	var answer struct {
		ID int64 `json:"id"`
	}
	if err := json.Unmarshal(text, &answer); err != nil || status >= 300 || answer.ID == 0 {
		t.Fatalf("capture: %d %s", status, text)
	}
	return answer.ID
}

// listed is what a test needs to know of a dead job.
type listed struct {
	ID          int64  `json:"id"`
	JobID       string `json:"job_id"`
	JobType     string `json:"job_type"`
	Key         string `json:"idempotency_key"`
	Status      string `json:"status"`
	Environment string `json:"environment"`
	Fingerprint string `json:"fingerprint"`
}

// find lists the dead jobs of a filter, and waits for the first: the source
// reads in the background.
func (d *demoProcess) find(t *testing.T, filter string) []listed {
	t.Helper()
	var page struct {
		Items []listed `json:"items"`
	}
	await(t, "a dead job for "+filter, func() bool {
		status, text := d.call(t, "auditor", http.MethodGet, "/dead-jobs?limit=50&q="+url.QueryEscape(filter), nil)
		if status != http.StatusOK {
			t.Fatalf("%s: %d %s", filter, status, text)
		}
		if err := json.Unmarshal(text, &page); err != nil {
			t.Fatal(err)
		}
		return len(page.Items) > 0
	})
	return page.Items
}

// effects asks a fake provider what happened under a key.
func (d *demoProcess) effects(t *testing.T, resource, environment, key string) []providers.Effect {
	t.Helper()
	query := url.Values{"environment": {environment}, "key": {key}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.providers+"/"+resource+"?"+query.Encode(), nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var answer struct {
		Items []providers.Effect `json:"items"`
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	return answer.Items
}

// lockedBuffer keeps a process's output.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// tail is the end of it.
func (b *lockedBuffer) tail() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	text := b.text.String()
	return text[max(0, len(text)-4000):]
}

// faults are its lines that tell of a failure of the program itself.
func (b *lockedBuffer) faults() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var found []string
	for line := range strings.Lines(b.text.String()) {
		if strings.Contains(line, "level=ERROR") {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}
