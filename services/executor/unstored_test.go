package executor_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/failure"
	"github.com/pointsman/pointsman/services/executor"
)

// A result that can't be stored is stored nowhere: whichever engine runs the statement again, this executor would have to.
func TestAResultThatCantBeStoredIsNotAskedForAgain(t *testing.T) {
	for name, write := range map[string]bool{"a read": false, "a write that gives rows": true} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 1)
			b.config = func(c *executor.Config) { c.Results.Inline = 0 }
			b.servers[interactive].on("ROWS", behaviour{rows: 3})
			b.start()
			require.NoError(t, os.RemoveAll(b.results))
			b.decide(b.route("t1", "ROWS", func(d *event.RouteDecision) { d.ReadOnly = !write }))
			o := b.outcome("t1")
			require.Equal(t, event.Failed, o.Status)
			require.Equal(t, string(failure.Internal), o.Failure.Class)
			require.Contains(t, o.Failure.Message, "storing the result")
			require.Contains(t, o.Failure.Hint, "folder of results")
			require.Equal(t, write, strings.Contains(o.Failure.Hint, "Look for the attempt id t1/1"), "a write may have been done: %s", o.Failure.Hint)
			require.Equal(t, 1, o.Attempts)
			require.Empty(t, b.servers[batch].counts())
			b.once()
		})
	}
}
