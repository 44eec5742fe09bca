package command_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const enginesConfig = `
engines:
  - {name: small, kind: clickhouse, url: "http://127.0.0.1:1", password: hush, slots: 3, sharedSlots: 9, resources: {l: {}, s: {}}, queues: {etl: {cap: 2}}}
  - {name: large, kind: clickhouse, url: "http://127.0.0.1:2"}
`

func TestEnginesList(t *testing.T) {
	file := filepath.Join(t.TempDir(), "executor.yaml")
	require.NoError(t, os.WriteFile(file, []byte(enginesConfig), 0o600))
	code, out, stderr := run("engines", "list", "-c", file)
	require.Zero(t, code, stderr)
	require.Regexp(t, `small +clickhouse +http://127.0.0.1:1 +- +3 +9 +l,s +etl`, out)
	require.NotContains(t, out, "hush")
	code, out, _ = run("engines", "list", "-c", file, "large", "-o", "json")
	require.Zero(t, code)
	require.JSONEq(t, `[{"name":"large","kind":"clickhouse","url":"http://127.0.0.1:2","slots":8}]`, out)
}

func TestEnginesCheckOfAnEngineThatIsDown(t *testing.T) {
	code, out, stderr := run("engines", "check", "--url", "http://127.0.0.1:1", "-o", "json")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "1 of 1 engines failed a check")
	var found []struct {
		OK     bool `json:"ok"`
		Checks []struct{ Check, Status string }
	}
	require.NoError(t, json.Unmarshal([]byte(out), &found))
	require.False(t, found[0].OK)
	require.Equal(t, "connect", found[0].Checks[0].Check)
	require.Equal(t, "failed", found[0].Checks[0].Status)
	code, out, _ = run("engines", "check", "--url", "http://127.0.0.1:1")
	require.Equal(t, 1, code)
	require.Regexp(t, `connect +failed`, out)
	require.Regexp(t, `submit +skipped +0s +needs connect`, out)
}

func TestEnginesUsage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "executor.yaml")
	require.NoError(t, os.WriteFile(file, []byte(enginesConfig), 0o600))
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	require.NoError(t, os.WriteFile(bad, []byte("engines: [{name: x, kind: oracle}]"), 0o600))
	for _, args := range [][]string{
		{"engines"},
		{"engines", "list"},
		{"engines", "list", "-c", file, "nobody"},
		{"engines", "list", "-c", bad},
		{"engines", "list", "-c", "/no/such/file"},
		{"engines", "check"},
		{"engines", "check", "--url", "127.0.0.1"},
		{"engines", "check", "--url", "http://127.0.0.1:1", "--kind", "oracle"},
		{"engines", "check", "--url", "http://127.0.0.1:1", "small"},
		{"engines", "check", "--url", "http://127.0.0.1:1", "-c", file},
	} {
		code, _, stderr := run(args...)
		require.Equal(t, 2, code, "%v: %s", args, stderr)
		require.Contains(t, stderr, "pointsman:", args)
	}
}
