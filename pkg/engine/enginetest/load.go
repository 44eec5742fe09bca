package enginetest

import (
	"context"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/failure"
	"github.com/pointsman/pointsman/pkg/signal"
)

// running is the engine's own count of what runs there, if it can tell.
func (f Fixture) running(t *testing.T, e engine.Engine) (int, bool) {
	t.Helper()
	if f.Running != nil {
		n, err := f.Running()
		require.NoError(t, err)
		return n, true
	}
	o, err := e.Observe(t.Context())
	require.NoError(t, err)
	n, known := o.Values[signal.Running].Get()
	return int(n), known
}

// countGoesBack is the proof that a cancelled query is over at the server and not only at the client: the server itself counts.
func countGoesBack(t *testing.T, f Fixture) {
	mine, other := f.open(t), f.open(t)
	if _, known := f.running(t, other); !known {
		t.Skip("this engine does not count what runs there")
	}
	var before int
	require.Eventually(t, func() bool { // earlier tests' queries may be on their way out
		n, _ := f.running(t, other)
		before = n
		return n == 0
	}, patience, 20*time.Millisecond, "something runs before anything was submitted: %d", before)

	const queries = 3
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var ended []<-chan error
	for range queries {
		name := id(t)
		ended = append(ended, run(ctx, mine, engine.Query{ID: name, SQL: f.Slow}))
		awaitState(t, other, name, engine.RunActive)
	}
	require.Eventually(t, func() bool { n, _ := f.running(t, other); return n == queries }, patience, 20*time.Millisecond, "all of them are counted")
	began := time.Now()
	cancel()
	require.Eventually(t, func() bool {
		n, _ := f.running(t, other)
		return n == 0
	}, patience, 5*time.Millisecond)
	took := time.Since(began)
	t.Logf("%d queries were gone from the engine's count %s after the cancel", queries, took.Round(time.Millisecond))
	require.Less(t, took, f.goneWithin())
	for _, e := range ended {
		require.Error(t, awaitEnd(t, e))
	}
}

// goneWithin is how long a cancelled query may be counted by the engine.
func (f Fixture) goneWithin() time.Duration {
	if f.GoneWithin > 0 {
		return f.GoneWithin
	}
	return time.Second
}

// readerGoesAway: nobody reads on, and nobody closes; the end of the context alone has to free the engine.
func readerGoesAway(t *testing.T, f Fixture) {
	mine, other := f.open(t), f.open(t)
	name := id(t)
	ctx, cancel := context.WithCancel(t.Context())
	rows, err := mine.Submit(ctx, engine.Query{ID: name, SQL: f.Large})
	require.NoError(t, err)
	require.True(t, rows.Next())
	awaitState(t, other, name, engine.RunActive) // it waits for its reader
	cancel()
	awaitGone(t, other, name)
	require.NoError(t, rows.Close())
	require.Nil(t, rows.Stats().ResultRows, "how many rows there are is not known of a result that was not read")
}

// manyAtOnce: each query gets its own answer, and no session has two.
func manyAtOnce(t *testing.T, f Fixture) {
	e := f.open(t)
	var group sync.WaitGroup
	const queries = 24
	got, errs := make([]any, queries), make([]error, queries)
	for i := range queries {
		group.Go(func() {
			rows, err := e.Submit(t.Context(), engine.Query{ID: id(t), SQL: fmt.Sprintf(f.Echo, i)})
			if err != nil {
				errs[i] = err
				return
			}
			if rows.Next() {
				values, err := rows.Values()
				if err == nil && len(values) == 1 {
					got[i] = values[0]
				}
			}
			for rows.Next() {
			}
			errs[i] = rows.Err()
			_ = rows.Close()
		})
	}
	group.Wait()
	for i := range queries {
		require.NoError(t, errs[i])
		require.EqualValues(t, i, got[i])
	}
}

// readsDoNotWrite: what was taken for a read by mistake fails, and has done nothing.
func readsDoNotWrite(t *testing.T, f Fixture) {
	e := f.open(t)
	count := func() any {
		rows, err := e.Submit(t.Context(), engine.Query{ID: id(t), SQL: f.Written, ReadOnly: true})
		require.NoError(t, err)
		all := drain(t, rows)
		require.NoError(t, rows.Err())
		require.NoError(t, rows.Close())
		require.Len(t, all, 1)
		return all[0][0]
	}
	require.NoError(t, awaitEnd(t, run(t.Context(), e, engine.Query{ID: id(t), SQL: f.NoResult})))
	before := count()
	got := f.failed(t, awaitEnd(t, run(t.Context(), e, engine.Query{ID: id(t), SQL: f.Writes, ReadOnly: true})), failure.Semantic, failure.Permission)
	require.Equal(t, engine.Answered, got.Phase)
	require.Equal(t, before, count())
	require.NoError(t, awaitEnd(t, run(t.Context(), e, engine.Query{ID: id(t), SQL: f.Writes})), "it may, when it is not taken for a read")
	require.NotEqual(t, before, count())
}

// explain: the plan is there and nothing has run.
func explain(t *testing.T, f Fixture) {
	e := f.open(t)
	x, ok := e.(engine.Explainer)
	require.True(t, ok)
	plan, err := x.Explain(t.Context(), engine.Query{SQL: f.Explain})
	require.NoError(t, err)
	require.NotEmpty(t, plan.Text)
	for _, n := range []*float64{plan.ResultRows, plan.ReadRows, plan.Cost} {
		if n != nil {
			require.GreaterOrEqual(t, *n, 0.0)
			require.False(t, math.IsNaN(*n) || math.IsInf(*n, 0))
		}
	}
	require.Equal(t, f.ExplainsRows, plan.ResultRows != nil)
	if f.ExplainsRows {
		require.InDelta(t, 10, *plan.ResultRows, 9)
	}
	began := time.Now()
	_, err = x.Explain(t.Context(), engine.Query{SQL: f.Slow})
	require.NoError(t, err)
	require.Less(t, time.Since(began), 10*time.Second, "it is planned, and not run")
	_, err = x.Explain(t.Context(), engine.Query{SQL: f.Wrong})
	require.Equal(t, engine.Answered, f.failed(t, err, failure.Semantic).Phase)
}

// honestProgress: what an engine says of a run that goes on is known or absent; a count that it does not keep is no zero.
func honestProgress(t *testing.T, f Fixture) {
	mine, other := f.open(t), f.open(t)
	name := id(t)
	began := time.Now()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := run(ctx, mine, engine.Query{ID: name, SQL: f.Slow})
	awaitState(t, other, name, engine.RunActive)
	var last time.Duration
	require.Eventually(t, func() bool {
		found, err := other.Find(t.Context(), name)
		require.NoError(t, err)
		require.Equal(t, engine.RunActive, found.State)
		require.GreaterOrEqual(t, found.Elapsed, last, "time does not run back")
		require.LessOrEqual(t, found.Elapsed, time.Since(began)+time.Second, "it can't have run for longer than we know of it")
		require.Nil(t, found.Stats.ResultRows, "nobody knows yet how many rows there will be")
		last = found.Elapsed
		return time.Since(began) > 1200*time.Millisecond
	}, patience, 100*time.Millisecond)
	if last > 0 {
		require.Greater(t, last, 500*time.Millisecond)
	}
	cancel()
	require.Error(t, awaitEnd(t, ended))
}
