package scenario

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/test/testkit"
)

// EngineDies kills the interactive engine's process under load, with queries at work in it. Every Task ends all the same, and those
// that it was running are run again, as another attempt. It returns the Tasks' ids.
func EngineDies(t *testing.T, w *testkit.World, api *testkit.API) []string {
	var victims []string
	for i := range 3 {
		id := api.Submit(fmt.Sprintf(`{"sql":"SELECT sum(sleepEachRow(0.5)), %d FROM numbers(4) SETTINGS max_block_size = 1","tenant":"tenant_a","slaSeconds":60}`, i))
		victims = append(victims, id)
	}
	for _, id := range victims {
		w.Log.Attempt(id, 1, "running", Patience)
	}
	load := NewLoad(w, "dies", nil)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		load.Send(t, 60, 40)
	}()
	time.Sleep(300 * time.Millisecond)
	w.Parts.Interactive.Kill()
	<-sent
	sentTo := w.Sent()
	for _, id := range victims {
		o := w.Log.Outcome(id, Patience)
		require.Equal(t, event.Succeeded, o.Status, "%+v", o.Failure)
		require.Greater(t, o.Attempts, 1, "its first attempt died with the engine")
		require.Equal(t, 1, sentTo[query.AttemptID(id, 1)])
	}
	ids := append(load.IDs(), victims...)
	w.Log.Ended(ids, Patience)
	for _, id := range ids {
		o := w.Log.Outcome(id, Patience)
		require.Equal(t, event.Succeeded, o.Status, "%s: %+v", id, o.Failure)
	}
	return ids
}

// HistoryDies kills the history's process under load. Nobody's query waits for it, and when it is back it gets all it has missed. It
// returns the Tasks' ids.
func HistoryDies(t *testing.T, w *testkit.World) []string {
	load := NewLoad(w, "history", nil)
	load.Send(t, 20, 40)
	w.Parts.HistoryDB.Kill()
	load.Send(t, 20, 40)
	ids := load.IDs()
	w.Log.Ended(ids, Patience)
	return ids
}

// Faults breaks the wire to the engines: submissions that are lost on the way, held up past the guard, or whose answers never come.
// Nothing may be submitted twice for it. It returns the Tasks' ids.
func Faults(t *testing.T, w *testkit.World) []string {
	var n int
	disturb := func(string, int) testkit.Fault {
		n++
		switch n % 7 {
		case 1:
			return testkit.Fault{Drop: true}
		case 3:
			return testkit.Fault{DropAnswer: true}
		case 5:
			return testkit.Fault{Delay: 1200 * time.Millisecond}
		}
		return testkit.Fault{}
	}
	w.Interactive.Break(disturb)
	defer w.Interactive.Break(nil)
	load := NewLoad(w, "fault", nil)
	load.Send(t, 60, 40)
	ids := load.IDs()
	w.Log.Ended(ids, Patience)
	return ids
}
