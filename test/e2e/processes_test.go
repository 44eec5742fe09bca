package e2e_test

import (
	"testing"
	"time"

	"github.com/pointsman/pointsman/test/e2e/scenario"
	"github.com/pointsman/pointsman/test/testkit"
)

// TestFiveProcesses runs the services as processes, two of each that can take over from one another, and kills and stops each under
// load.
func TestFiveProcesses(t *testing.T) {
	w := testkit.New(t, testkit.Options{})
	pace := scenario.Pace{Burst: 20, Rate: 40, Session: 2 * time.Second, Tries: 3}
	f := w.Fleet(testkit.FleetOptions{SessionTimeout: pace.Session})
	f.Start(testkit.Services...)
	f.Start("router", "executor")
	ids := scenario.Survive(t, w, f, pace)
	if !t.Failed() {
		t.Log(w.Judge(ids, 4*time.Minute))
	}
	f.Stop()
}
