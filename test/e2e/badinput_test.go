package e2e_test

import (
	"testing"

	"github.com/pointsman/pointsman/test/e2e/scenario"
	"github.com/pointsman/pointsman/test/testkit"
)

// TestBadInput puts on the topics what producers get wrong. What HTTP answers to the same is tested beside intake.
func TestBadInput(t *testing.T) {
	w := testkit.New(t, testkit.Options{})
	_, _, stop := w.InProcess()
	ids := scenario.BadInput(t, w)
	if !t.Failed() {
		t.Log(w.Judge(ids, scenario.Patience))
	}
	stop()
}
