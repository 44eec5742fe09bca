package executor_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/embedded/chdb"
	"github.com/pointsman/pointsman/pkg/embedded/chdb/chdbtest"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/services/executor"
)

// within is how soon a stopped query must be gone at the engine.
const within = strain * time.Second

// running counts an attempt's queries as a client of its own sees them.
func running(t *testing.T, e *chdb.Engine, id string) func() uint64 {
	t.Helper()
	conn := chdbtest.Open(t, e)
	return func() uint64 {
		var n uint64
		require.NoError(t, conn.QueryRow(t.Context(), "SELECT count() FROM system.processes WHERE query_id = ?", id).Scan(&n))
		return n
	}
}

// inTime requires that a query is gone within the bound, in one of three tries: the machine may be busy with other things, the product
// may not.
func inTime(t *testing.T, gone func(try int) time.Duration) {
	t.Helper()
	var took []time.Duration
	for try := range 3 {
		if took = append(took, gone(try)); took[try] < within {
			return
		}
	}
	require.Failf(t, "too late", "it took %v; the bound is %s", took, within)
}

// Whatever ends an attempt early ends it at the engine too, and soon: asked of the server by somebody else than the executor.
func TestWhatIsStoppedIsGoneAtTheEngine(t *testing.T) {
	const busy = "SELECT count() FROM numbers_mt(1000000000000) WHERE sipHash64(number) = 42"
	for _, sql := range []struct{ name, text string }{{"asleep", slow}, {"busy", busy}} {
		t.Run(sql.name, func(t *testing.T) {
			b, small, _ := newRealBench(t)
			before := b.config
			b.config = func(c *executor.Config) {
				before(c)
				watchClosely(c)
				c.Attempts.Overrun.EstimateFactor = 1
			}
			p := b.start()

			t.Run("by its user", func(t *testing.T) {
				inTime(t, func(try int) time.Duration {
					id := fmt.Sprint("user", try)
					b.decide(b.route(id, sql.text))
					count := running(t, small, id+"/1")
					b.change(id+"/1", "running")
					require.EqualValues(t, 1, count())
					b.decide(cancelOf(id))
					asked := time.Now()
					require.Eventually(t, func() bool { return count() == 0 }, patience, 10*time.Millisecond)
					took := time.Since(asked)
					require.Equal(t, event.Cancelled, b.outcome(id).Status)
					return took
				})
			})
			t.Run("by its deadline", func(t *testing.T) {
				inTime(t, func(try int) time.Duration {
					id, deadline := fmt.Sprint("late", try), time.Now().Add(strain*1500*time.Millisecond)
					b.decide(b.route(id, sql.text, func(d *event.RouteDecision) { d.Deadline = deadline }))
					count := running(t, small, id+"/1")
					b.change(id+"/1", "running")
					require.EqualValues(t, 1, count())
					require.Eventually(t, func() bool { return count() == 0 }, patience, 10*time.Millisecond)
					took := time.Since(deadline)
					require.Equal(t, event.Expired, b.outcome(id).Status)
					return took
				})
			})
			t.Run("by an overrun", func(t *testing.T) {
				b.decide(b.route("over", sql.text, estimating(1)))
				over := b.change("over/1", "overrun")
				require.Zero(t, running(t, small, "over/1")(), "it is gone before its end is told")
				require.Positive(t, *over.Stats.ReadBytes)
				b.decide(cancelOf("over"))
				require.Equal(t, event.Cancelled, b.outcome("over").Status)
			})
			t.Run("by a shutdown", func(t *testing.T) {
				b.decide(b.route("left", sql.text))
				count := running(t, small, "left/1")
				b.change("left/1", "running")
				require.EqualValues(t, 1, count())
				begun := time.Now()
				p.end()
				require.Zero(t, count(), "it is gone when the process is")
				require.Less(t, time.Since(begun), b.cfg().Attempts.Grace+3*within, "the grace, the stop, and leaving the group")
				require.Empty(t, b.outcomes()["left"])
			})
		})
	}
}
