// Package deploy checks the files of docker-compose.yml and deploy/: that they parse, that the paths and names in them
// exist, that every query of a dashboard runs on the schema, and that services accept their configuration. It runs no
// container.
package deploy

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/embedded/chdb"
	"github.com/pointsman/pointsman/pkg/history/historytest"
)

// binaries is where programs are built to, once per run.
var binaries string

func TestMain(m *testing.M) {
	chdb.MaybeRunChild() // before anything is made: an engine's process never comes back to remove it
	var err error
	if binaries, err = os.MkdirTemp("", "pointsman-deploy-test-"); err != nil {
		panic(err)
	}
	code := historytest.Main(m)
	_ = os.RemoveAll(binaries)
	os.Exit(code)
}

// root is the folder of the repository.
func root(t *testing.T) string {
	t.Helper()
	_, source, _, ok := runtime.Caller(0)
	require.True(t, ok)
	return filepath.Join(filepath.Dir(source), "..", "..")
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root(t), name))
	require.NoError(t, err)
	return data
}

// exists fails the test when a path of the repository is not there.
func exists(t *testing.T, name, why string) {
	t.Helper()
	_, err := os.Stat(filepath.Join(root(t), name))
	require.NoError(t, err, why)
}

// documents decodes a YAML file of one or more documents.
func documents[T any](t *testing.T, data []byte) []T {
	t.Helper()
	var out []T
	for decoder := yaml.NewDecoder(bytes.NewReader(data)); ; {
		var doc T
		err := decoder.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return out
		}
		require.NoError(t, err)
		out = append(out, doc)
	}
}

// tool runs a checker where it is installed. Where it is not, the Go checks beside it have to do.
func tool(t *testing.T, name string, args ...string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Logf("%s is not installed: its own check is left out", name)
		return
	}
	cmd := exec.Command(name, args...)
	cmd.Dir = root(t)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s %s\n%s", name, strings.Join(args, " "), out)
}
