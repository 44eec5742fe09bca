package kafka

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// RequiredEnv turns the skip of a machine without Java into a failure, for CI, where a skip would hide that nothing
// was tested.
const RequiredEnv = "POINTSMAN_REQUIRE_REAL"

// Require skips the test where a real Kafka can't be started, with the word why.
func Require(t testing.TB) {
	t.Helper()
	fetch(t)
}

// fetch gives the folder with Kafka's jars, or skips the test.
func fetch(t testing.TB) string {
	t.Helper()
	if _, err := exec.LookPath("java"); err != nil {
		skip(t, "java not found (install a JDK 17 or newer)")
	}
	script := exec.Command("bash", scriptFile(t), "fetch")
	var stderr bytes.Buffer
	script.Stderr = &stderr
	out, err := script.Output()
	if err == nil {
		return strings.TrimSpace(string(out))
	}
	if _, missing := exec.LookPath("mvn"); missing != nil && strings.Contains(stderr.String(), "mvn not found") {
		skip(t, "mvn not found (install Maven: it fetches Kafka once)")
	}
	t.Fatalf("fetching Kafka: %v\n%s", err, stderr.String())
	return ""
}

func skip(t testing.TB, why string) {
	t.Helper()
	if os.Getenv(RequiredEnv) != "" {
		t.Fatalf("real kafka: %s, and %s is set", why, RequiredEnv)
	}
	t.Skipf("SKIP real kafka: %s", why)
}

// scriptFile is kafka.sh, which lies beside this source.
func scriptFile(t testing.TB) string {
	t.Helper()
	_, source, _, ok := runtime.Caller(0)
	if !ok || !filepath.IsAbs(source) {
		t.Fatal("the place of kafka.sh is unknown: build tests without -trimpath")
	}
	return filepath.Join(filepath.Dir(source), "kafka.sh")
}
