package enginetest

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/failure"
)

func submit(t *testing.T, f Fixture) {
	e := f.open(t)
	rows, err := e.Submit(t.Context(), engine.Query{ID: id(t), SQL: f.One, SubmitBefore: time.Now().Add(time.Minute)})
	require.NoError(t, err)
	require.Len(t, rows.Columns(), 1)
	all := drain(t, rows)
	require.NoError(t, rows.Err())
	require.NoError(t, rows.Close())
	require.NoError(t, rows.Close(), "closing twice is no error")
	require.Len(t, all, 1)
	require.EqualValues(t, 1, all[0][0])

	s := rows.Stats()
	require.NotNil(t, s.ResultRows)
	require.EqualValues(t, 1, *s.ResultRows)
	if s.ReadRows != nil {
		require.Positive(t, *s.ReadRows, "a count that is not known is absent, not zero")
	}

	rows, err = e.Submit(t.Context(), engine.Query{ID: id(t), SQL: f.Empty})
	require.NoError(t, err)
	require.NotEmpty(t, rows.Columns())
	require.Empty(t, drain(t, rows))
	require.NoError(t, rows.Err())
	require.NoError(t, rows.Close())
	require.EqualValues(t, 0, *rows.Stats().ResultRows, "none is known, and is not absent")
}

func noResult(t *testing.T, f Fixture) {
	e := f.open(t)
	for range 2 {
		rows, err := e.Submit(t.Context(), engine.Query{ID: id(t), SQL: f.NoResult})
		require.NoError(t, err)
		require.False(t, rows.Next())
		require.NoError(t, rows.Err())
		require.NoError(t, rows.Close())
	}
}

func types(t *testing.T, f Fixture) {
	covers(t, f.Values)
	rows, err := f.open(t).Submit(t.Context(), engine.Query{ID: id(t), SQL: f.Types})
	require.NoError(t, err)
	if diff := cmp.Diff(f.Columns, rows.Columns()); diff != "" {
		t.Errorf("columns:\n%s", diff)
	}
	all := drain(t, rows)
	require.NoError(t, rows.Err())
	require.Len(t, all, 1)
	if diff := cmp.Diff(f.Values, all[0]); diff != "" {
		t.Errorf("values:\n%s", diff)
	}
	require.NoError(t, rows.Close())
}

// covers asks that the fixture has what gets lost most easily.
func covers(t *testing.T, values []any) {
	t.Helper()
	var wide, exact, missing, instant bool
	for _, v := range values {
		switch x := v.(type) {
		case nil:
			missing = true
		case int64:
			wide = wide || x > 1<<53
		case uint64:
			wide = wide || x > 1<<53
		case json.Number:
			exact = true
		case time.Time:
			instant = true
			require.Equal(t, time.UTC, x.Location())
		}
	}
	require.True(t, wide && exact && missing && instant, "a fixture needs an integer past 2^53 (%t), a decimal (%t), NULL (%t) and a time (%t)", wide, exact, missing, instant)
}

func settings(t *testing.T, f Fixture) {
	e := f.open(t)
	for _, readOnly := range []bool{false, true} {
		show := func(s map[string]string) string {
			rows, err := e.Submit(t.Context(), engine.Query{ID: id(t), SQL: f.Setting, Settings: s, ReadOnly: readOnly})
			require.NoError(t, err)
			all := drain(t, rows)
			require.NoError(t, rows.Err())
			require.NoError(t, rows.Close())
			require.Len(t, all, 1)
			return all[0][0].(string)
		}
		before := show(nil)
		require.NotEqual(t, f.SettingValue, before)
		require.Equal(t, f.SettingValue, show(map[string]string{f.SettingName: f.SettingValue}))
		require.Equal(t, before, show(nil), "a setting of one query must not stay for the next")
	}
}

func semanticErrors(t *testing.T, f Fixture) {
	e := f.open(t)
	for _, sql := range []string{f.Wrong, f.Syntax} {
		rows, err := e.Submit(t.Context(), engine.Query{ID: id(t), SQL: sql})
		require.Nil(t, rows)
		got := f.failed(t, err, failure.Semantic)
		require.Equal(t, engine.Answered, got.Phase)
		require.NotEmpty(t, got.Code)
		require.NotEmpty(t, got.Error())
	}
	rows, err := e.Submit(t.Context(), engine.Query{ID: id(t), SQL: f.One})
	require.NoError(t, err, "an error of one query is none of the next")
	drain(t, rows)
	require.NoError(t, rows.Close())
}

func memoryLimit(t *testing.T, f Fixture) {
	e := f.open(t)
	ended := run(t.Context(), e, engine.Query{ID: id(t), SQL: f.Greedy, MaxMemoryBytes: f.MemoryLimit, Settings: f.GreedySettings})
	got := f.failed(t, awaitEnd(t, ended), failure.MemoryLimit)
	require.Equal(t, engine.Answered, got.Phase)
}

func timeLimit(t *testing.T, f Fixture) {
	e := f.open(t)
	name := id(t)
	began := time.Now()
	err := awaitEnd(t, run(t.Context(), e, engine.Query{ID: name, SQL: f.Slow, MaxExecution: time.Second}))
	f.failedAs(t, err, failure.Timeout)
	require.Less(t, time.Since(began), 15*time.Second)
	awaitGone(t, e, name)
}

func failsMidway(t *testing.T, f Fixture) {
	got := f.failed(t, awaitEnd(t, run(t.Context(), f.open(t), engine.Query{ID: id(t), SQL: f.Breaks})), f.BreaksClass)
	require.Equal(t, engine.Answered, got.Phase, "the engine said so itself, in the middle of its answer")
}

func guardRanOut(t *testing.T, f Fixture) {
	e := f.open(t)
	name := id(t)
	rows, err := e.Submit(t.Context(), engine.Query{ID: name, SQL: f.One, SubmitBefore: time.Now().Add(-time.Millisecond)})
	require.Nil(t, rows)
	require.ErrorIs(t, err, engine.ErrGuardExpired)
	require.Equal(t, engine.NotSent, f.failed(t, err, failure.ClusterDown).Phase)

	// The same id may be used again: nothing of it has reached the engine.
	rows, err = e.Submit(t.Context(), engine.Query{ID: name, SQL: f.One, SubmitBefore: time.Now().Add(time.Minute)})
	require.NoError(t, err)
	drain(t, rows)
	require.NoError(t, rows.Close())
}

func canaryAndLoad(t *testing.T, f Fixture) {
	e := f.open(t)
	require.NoError(t, e.Canary(t.Context()))
	o, err := e.Observe(t.Context())
	require.NoError(t, err)
	healthy, known := o.Values["healthy"].Get()
	require.True(t, known)
	require.EqualValues(t, 1, healthy)
	require.False(t, o.At.IsZero())
	require.NotEmpty(t, o.Cluster)
}

func deadServer(t *testing.T, f Fixture) {
	e := f.Dead(t)
	t.Cleanup(func() { _ = e.Close() })
	rows, err := e.Submit(t.Context(), engine.Query{ID: id(t), SQL: f.One})
	require.Nil(t, rows)
	require.Equal(t, engine.NotSent, f.failed(t, err, failure.ClusterDown).Phase)

	_, err = e.Find(t.Context(), id(t))
	require.Error(t, err, "an engine that can't be asked is not one that knows nothing")
	require.Equal(t, engine.NotSent, f.failed(t, err, failure.ClusterDown).Phase)
	_, err = e.Kill(t.Context(), id(t))
	require.Error(t, err)
	require.Error(t, e.Canary(t.Context()))
	o, err := e.Observe(t.Context())
	require.Error(t, err)
	healthy, known := o.Values["healthy"].Get()
	require.True(t, known)
	require.Zero(t, healthy)
	_, known = o.Values["running"].Get()
	require.False(t, known, "an engine that does not answer does not run nothing")
}
