package e2e_test

import (
	"testing"

	"github.com/pointsman/pointsman/test/e2e/scenario"
	"github.com/pointsman/pointsman/test/testkit"
)

// TestEngines kills the processes of an engine and of the history under load, and then breaks the wire to the engine.
func TestEngines(t *testing.T) {
	w := testkit.New(t, testkit.Options{})
	st, _, stop := w.InProcess()
	ids := scenario.EngineDies(t, w, testkit.NewAPI(t, st.Intake.Addr().String()))
	ids = append(ids, scenario.HistoryDies(t, w)...)
	ids = append(ids, scenario.Faults(t, w)...)
	if !t.Failed() {
		t.Log(w.Judge(ids, scenario.Patience))
	}
	stop()
}
