package enginetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/failure"
)

// awaitGone waits until an engine runs nothing of an id. One that keeps a history says how it ended, others know nothing any more.
func awaitGone(t *testing.T, e engine.Engine, id string) {
	t.Helper()
	require.Eventually(t, func() bool {
		run, err := e.Find(t.Context(), id)
		return err == nil && run.State != engine.RunActive && run.State != engine.RunFinished
	}, patience, 20*time.Millisecond, "waiting for %s to be gone", id)
}

func findAndKill(t *testing.T, f Fixture) {
	mine, other := f.open(t), f.open(t)
	name := id(t)
	found, err := other.Find(t.Context(), name)
	require.NoError(t, err)
	require.Equal(t, engine.RunUnknown, found.State)

	ended := run(t.Context(), mine, engine.Query{ID: name, SQL: f.Slow})
	awaitState(t, other, name, engine.RunActive)
	killed, err := other.Kill(t.Context(), name)
	require.NoError(t, err)
	require.True(t, killed)
	found, err = other.Find(t.Context(), name)
	require.NoError(t, err)
	require.NotEqual(t, engine.RunActive, found.State, "Kill returns when it is gone")
	f.failedAs(t, awaitEnd(t, ended), failure.KilledByOperator)
}

func killUnknown(t *testing.T, f Fixture) {
	killed, err := f.open(t).Kill(t.Context(), id(t))
	require.NoError(t, err)
	require.False(t, killed)
}

func duplicateID(t *testing.T, f Fixture) {
	e := f.open(t)
	name := id(t)
	ended := run(t.Context(), e, engine.Query{ID: name, SQL: f.Slow})
	awaitState(t, e, name, engine.RunActive)
	rows, err := e.Submit(t.Context(), engine.Query{ID: name, SQL: f.One})
	require.Nil(t, rows)
	f.failedAs(t, err, failure.SubmitUnknown)
	awaitState(t, e, name, engine.RunActive) // the first one is not harmed
	_, err = e.Kill(t.Context(), name)
	require.NoError(t, err)
	require.Error(t, awaitEnd(t, ended))
}

func cancelBeforeAnswer(t *testing.T, f Fixture) {
	mine, other := f.open(t), f.open(t)
	name := id(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := run(ctx, mine, engine.Query{ID: name, SQL: f.Slow})
	awaitState(t, other, name, engine.RunActive)
	cancel(errors.New("no longer wanted"))
	require.Error(t, awaitEnd(t, ended))
	awaitGone(t, other, name)

	// A context that ends while the submission is on its way must not leave a query behind either.
	for range 5 {
		name := id(t)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Millisecond)
		require.Error(t, awaitEnd(t, run(ctx, mine, engine.Query{ID: name, SQL: f.Slow})))
		cancel()
		awaitGone(t, other, name)
	}
}

func cancelWhileReading(t *testing.T, f Fixture) {
	mine, other := f.open(t), f.open(t)
	name := id(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	rows, err := mine.Submit(ctx, engine.Query{ID: name, SQL: f.Large})
	require.NoError(t, err)
	require.True(t, rows.Next())
	cancel()
	n := 0
	for rows.Next() {
		n++
	}
	require.Error(t, rows.Err(), "%d rows more, and then an end that looks whole", n)
	awaitGone(t, other, name)
	require.NoError(t, rows.Close())
}

func closeWhileReading(t *testing.T, f Fixture) {
	mine, other := f.open(t), f.open(t)
	name := id(t)
	rows, err := mine.Submit(t.Context(), engine.Query{ID: name, SQL: f.Large})
	require.NoError(t, err)
	require.True(t, rows.Next())
	began := time.Now()
	require.NoError(t, rows.Close())
	require.Less(t, time.Since(began), 10*time.Second, "closing does not read the rest")
	awaitGone(t, other, name)
}

// largeResult reads slowly at first: the engine has to wait for its reader, and nothing may get lost by that.
func largeResult(t *testing.T, f Fixture) {
	mine, other := f.open(t), f.open(t)
	name := id(t)
	rows, err := mine.Submit(t.Context(), engine.Query{ID: name, SQL: f.Large})
	require.NoError(t, err)
	for range 3 {
		require.True(t, rows.Next())
		time.Sleep(100 * time.Millisecond)
	}
	awaitState(t, other, name, engine.RunActive) // it waits for its reader
	n := 3
	for rows.Next() {
		n++
	}
	require.NoError(t, rows.Err())
	require.NoError(t, rows.Close())
	require.Equal(t, f.LargeRows, n)
	require.EqualValues(t, f.LargeRows, *rows.Stats().ResultRows)
}

// closeClient is what a process does that hands its partitions on: the queries of other clients go on.
func closeClient(t *testing.T, f Fixture) {
	mine, other := f.open(t), f.open(t)
	name := id(t)
	ended := run(t.Context(), other, engine.Query{ID: name, SQL: f.Slow})
	awaitState(t, other, name, engine.RunActive)
	gone := run(t.Context(), mine, engine.Query{ID: id(t), SQL: f.Slow})
	require.NoError(t, mine.Close())
	require.Error(t, awaitEnd(t, gone))
	awaitState(t, other, name, engine.RunActive)
	_, err := other.Kill(t.Context(), name)
	require.NoError(t, err)
	require.Error(t, awaitEnd(t, ended))
}
