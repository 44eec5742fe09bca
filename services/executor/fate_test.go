package executor_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/failure"
	"github.com/pointsman/pointsman/services/executor"
)

// TestAWriteThatWasStoppedSaysWhatToCheck: whoever reads that a write was cancelled, has expired or failed must not take that for
// leave to run it again.
func TestAWriteThatWasStoppedSaysWhatToCheck(t *testing.T) {
	const where = "Look for the attempt id t1/1 on " + interactive + " (query_id t1/1 in system.query_log)"
	soon := func(d *event.RouteDecision) { d.Deadline = time.Now().Add(strain * 1200 * time.Millisecond) }
	forever := make(chan struct{})
	t.Cleanup(func() { close(forever) })
	long, silent := behaviour{hold: forever}, behaviour{lose: true, hold: forever}
	down := func(s *server) { s.setDown(true) }
	for _, c := range []struct {
		name   string
		does   behaviour
		read   bool
		late   bool            // its deadline comes, and not a cancel
		then   func(s *server) // once it runs
		status event.Status
		class  failure.Class
		hint   string
	}{
		{"cancelled", long, false, false, nil, event.Cancelled, failure.CancelledByUser, "stopped at the engine"},
		{"a read that is cancelled", long, true, false, nil, event.Cancelled, failure.CancelledByUser, ""},
		{"expired", long, false, true, nil, event.Expired, failure.Timeout, "a part"},
		{"cancelled, and nobody can ask the engine", silent, false, false, down, event.Failed, failure.SubmitUnknown, ""},
		{"expired, and nobody can ask the engine", silent, false, true, down, event.Failed, failure.SubmitUnknown, ""},
		{"expired, of a silent network", behaviour{mute: true, hold: forever}, false, true, nil, event.Failed, failure.SubmitUnknown, ""},
		{"expired while the engine still had it, and killed", silent, false, true, nil, event.Failed, failure.SubmitUnknown, ""},
		{"cancelled when it was done", long, false, false, func(s *server) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.quick = true
		}, event.Cancelled, failure.CancelledByUser, "Do not run it again"},
		{"an error in the midst", behaviour{code: "241"}, false, false, nil, event.Failed, failure.MemoryLimit, "a part of that may have been done"},
		{"the engine says in the midst that something is gone", behaviour{code: "210"}, false, false, nil, event.Failed, failure.SubmitUnknown, "not known"},
		{"an error before it began", behaviour{code: "62"}, false, false, nil, event.Failed, failure.Semantic, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, 1)
			b.config = func(c *executor.Config) { c.Attempts.StopTimeout = 300 * time.Millisecond }
			s := b.servers[interactive]
			s.on("INSERT", c.does)
			b.start()
			edit := []func(*event.RouteDecision){func(d *event.RouteDecision) { d.ReadOnly = c.read }}
			if c.late {
				edit = append(edit, soon)
			}
			b.decide(b.route("t1", "INSERT", edit...))
			if c.does.code == "" {
				state := "running"
				if c.does.lose {
					state = "submit_unknown"
				}
				b.change("t1/1", state)
				if c.then != nil {
					c.then(s)
				}
				if !c.late {
					b.decide(cancelOf("t1"))
				}
			}
			o := b.outcome("t1")
			require.Equal(t, c.status, o.Status, "%+v", o.Failure)
			require.Equal(t, string(c.class), o.Failure.Class)
			require.Contains(t, o.Failure.Hint, c.hint)
			if c.read || c.class == failure.Semantic || c.hint == "Do not run it again" {
				require.NotContains(t, o.Failure.Hint, "Look for")
			} else {
				require.Contains(t, o.Failure.Hint, where)
			}
			if c.class == failure.SubmitUnknown && c.does.code == "" {
				require.Contains(t, o.Failure.Message, "not known")
				require.Regexp(t, "cancelled|deadline", o.Failure.Message, "what has ended it is told, too")
			}
			require.Equal(t, 1, s.count("t1/1"))
			b.once()
		})
	}
}

// A read of which the engine says the same goes elsewhere.
func TestAReadWhoseEngineIsGoneFailsOver(t *testing.T) {
	b := newBench(t, 1)
	b.servers[interactive].on("SELECT", behaviour{code: "210"})
	b.servers[batch].on("SELECT", behaviour{rows: 1})
	b.start()
	b.decide(b.route("t1", "SELECT", func(d *event.RouteDecision) {
		d.Fallbacks = nil
	}))
	require.Equal(t, string(failure.ClusterDown), b.change("t1/1", "failed").Failure.Class)
}
