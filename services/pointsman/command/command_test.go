package command_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/stream/streamtest"
	"github.com/pointsman/pointsman/services/pointsman/command"
)

func run(args ...string) (code int, out, stderr string) {
	var o, e bytes.Buffer
	code = command.Main(args, strings.NewReader("SELECT 1"), &o, &e)
	return code, o.String(), e.String()
}

func TestHelpNamesEveryCommand(t *testing.T) {
	code, out, _ := run()
	require.Zero(t, code)
	for _, name := range []string{"up", "embedded", "explain", "policy lint", "topics apply", "topics tail", "dlq list", "engines list", "engines check", "tasks list", "tasks show", "tasks cancel", "tasks tail", "budgets show", "migrate up", "completion", "version"} {
		require.Contains(t, out, name)
	}
}

func TestUsageErrors(t *testing.T) {
	for _, args := range [][]string{{"nonsense"}, {"up", "--summary", "xml"}, {"policy", "lint"}, {"up", "--for", "1s"}, {"up", "--bogus"}} {
		code, _, stderr := run(args...)
		require.Equal(t, 2, code, args)
		require.Contains(t, stderr, "pointsman:", args)
	}
}

func TestPolicyLint(t *testing.T) {
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "good.yaml"), filepath.Join(dir, "bad.yaml")
	require.NoError(t, os.WriteFile(good, []byte("engines: {a: {kind: trino}}\nrules:\n  - {name: default, route: auto}\n"), 0o644))
	require.NoError(t, os.WriteFile(bad, []byte("engines: {a: {kind: trino}}\nrules:\n  - {name: default, route: nowhere}\n"), 0o644))
	code, out, _ := run("policy", "lint", good)
	require.Zero(t, code)
	require.Contains(t, out, "ok, 1 engines, 1 rules")
	code, out, stderr := run("policy", "lint", good, bad)
	require.Equal(t, 1, code)
	require.Contains(t, out, bad+":3:28: rules[0].route")
	require.Contains(t, stderr, "1 of 2 policies have faults")
}

func TestExplainAsksTheFrontDoor(t *testing.T) {
	var got map[string]any
	var accept string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		accept = r.Header.Get("Accept")
		if r.Header.Get("Authorization") != "Bearer secret" {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"title":"Unauthorized","detail":"send a bearer token"}`))
			return
		}
		_ = json.NewDecoder(r.Body).Decode(&got)
		_, _ = w.Write([]byte("goes to interactive\n"))
	}))
	defer srv.Close()
	code, out, _ := run("explain", "--url", srv.URL, "--token", "secret", "--sla", "3", "--tag", "batch")
	require.Zero(t, code)
	require.Equal(t, "goes to interactive\n", out)
	require.Equal(t, map[string]any{"sql": "SELECT 1", "tenant": "me", "slaSeconds": 3.0, "tags": []any{"batch"}}, got)

	code, _, _ = run("explain", "--url", srv.URL, "--token", "secret", "-o", "json", "--consistency", "read_your_writes", "--commit-ts", "9007199254740993",
		"--engine-hint", "batch", "--dataset", "orders")
	require.Zero(t, code)
	require.Equal(t, "application/json", accept)
	require.Equal(t, "read_your_writes", got["consistency"])
	require.Equal(t, []any{"batch", "orders"}, []any{got["engineHint"], got["dataset"]})
	code, _, stderr := run("explain", "--url", srv.URL, "--consistency", "perfect")
	require.NotZero(t, code)
	require.Contains(t, stderr, "read_your_writes")

	code, _, stderr = run("explain", "--url", srv.URL)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "Unauthorized: send a bearer token")

	srv.Close()
	code, _, stderr = run("explain", "--url", srv.URL)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "is pointsman up?")
}

func TestFingerprint(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log.sql")
	require.NoError(t, os.WriteFile(log, []byte("SELECT a FROM t WHERE b = 1;\nSELECT a FROM t WHERE b = 2; INSERT INTO u VALUES (1)"), 0o644))
	code, out, stderr := run("fingerprint", log)
	require.Zero(t, code, stderr)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	require.Len(t, lines, 3)
	var first, second map[string]any
	require.NoError(t, json.Unmarshal([]byte(lines[0]), &first))
	require.NoError(t, json.Unmarshal([]byte(lines[1]), &second))
	require.Equal(t, first["fingerprint"], second["fingerprint"])
	require.Equal(t, []any{"t"}, first["tables"])

	code, out, _ = run("fingerprint", "--top", "1", log)
	require.Zero(t, code)
	require.Contains(t, out, `"count":2`)

	code, out, _ = run("fingerprint") // standard input
	require.Zero(t, code)
	require.Contains(t, out, `"statement":"select"`)

	code, _, stderr = run("fingerprint", "--dialect", "klingon", log)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "--dialect")
	code, _, stderr = run("fingerprint", "/nowhere.sql")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "nowhere.sql")
}

func TestTopicsAndDeadLetters(t *testing.T) {
	b := streamtest.Start(t)
	at := "--brokers=" + b.Config.Brokers[0]
	code, out, _ := run("topics", at, "diff")
	require.Equal(t, 1, code, out)
	require.Contains(t, out, "requests")
	code, _, stderr := run("topics", at, "apply")
	require.Zero(t, code, stderr)
	code, out, stderr = run("topics", at, "diff")
	require.Zero(t, code, out+stderr)
	require.Contains(t, out, "as described")

	rec := &kgo.Record{Topic: "requests", Key: []byte("k"), Value: []byte(`{"id":"a","sql":"SELECT 1","tenant":"t"}`)}
	require.NoError(t, b.Client(t).ProduceSync(t.Context(), rec).FirstErr())
	code, out, stderr = run("topics", at, "tail", "requests", "-n", "1", "-o", "json")
	require.Zero(t, code, stderr)
	require.True(t, json.Valid([]byte(out)), out)
	require.Contains(t, out, "SELECT 1")

	code, _, stderr = run("dlq", at, "list")
	require.Zero(t, code)
	require.Contains(t, stderr, "0 dead letters")
}
