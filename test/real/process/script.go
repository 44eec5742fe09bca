package process

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Beside is a file that lies beside the source of the caller.
func Beside(t testing.TB, name string) string {
	t.Helper()
	_, source, _, ok := runtime.Caller(1)
	if !ok || !filepath.IsAbs(source) {
		t.Fatalf("the place of %s is unknown: build tests without -trimpath", name)
	}
	return filepath.Join(filepath.Dir(source), name)
}

// Ask runs a server's script with one word and gives what it prints. missing is what it says of something that this machine does not
// have; all else that it fails of fails the test.
func Ask(t testing.TB, script, what string) (out, missing string) {
	t.Helper()
	cmd := exec.Command("bash", script, what)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	if err == nil {
		return strings.TrimSpace(string(text)), ""
	}
	said := strings.TrimSpace(stderr.String())
	if !strings.Contains(said, " not found: ") {
		t.Fatalf("%s %s: %v\n%s", filepath.Base(script), what, err, said)
	}
	return "", said
}
