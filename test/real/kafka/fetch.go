package kafka

import (
	"os/exec"
	"testing"

	real "github.com/pointsman/pointsman/test/real/process"
)

// RequiredEnv turns the skip of a machine without Java into a failure, for CI, where a skip would hide that nothing
// was tested.
const RequiredEnv = real.RequiredEnv

// Require skips the test where a real Kafka can't be started, with the word why.
func Require(t testing.TB) {
	t.Helper()
	fetch(t)
}

// fetch gives the folder with Kafka's jars, or skips the test.
func fetch(t testing.TB) string {
	t.Helper()
	if _, err := exec.LookPath("java"); err != nil {
		real.Skip(t, "kafka", "java not found: install a JDK 17 or newer")
	}
	out, missing := real.Ask(t, real.Beside(t, "kafka.sh"), "fetch")
	if missing != "" {
		real.Skip(t, "kafka", missing)
	}
	return out
}
