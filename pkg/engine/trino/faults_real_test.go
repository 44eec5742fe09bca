//go:build real

package trino_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/enginetest"
	"github.com/pointsman/pointsman/pkg/engine/trino"
	"github.com/pointsman/pointsman/pkg/failure"
	"github.com/pointsman/pointsman/pkg/signal"
	real "github.com/pointsman/pointsman/test/real/trino"
)

// resourceGroups: the group named narrow runs one query and lets two wait.
func resourceGroups(t *testing.T, server *real.Server) {
	narrow := trino.Config{Name: "c", URL: server.URL(), Database: "tpch.tiny", ClientTags: []string{"narrow"}}
	e := open(t, narrow)
	o, err := e.Observe(t.Context())
	require.NoError(t, err)
	_, known := o.Values[signal.Running].Get()
	require.False(t, known, "no group is known yet, so its load is absent and not zero")
	require.NoError(t, e.Canary(t.Context()))
	load := func() (running, queued, slots float64) {
		o, err := e.Observe(t.Context())
		require.NoError(t, err)
		var known [3]bool
		running, known[0] = o.Values[signal.Running].Get()
		queued, known[1] = o.Values[signal.Queued].Get()
		slots, known[2] = o.Values[signal.Slots].Get()
		require.Equal(t, [3]bool{true, true, true}, known, "the canary has shown which group it is")
		_, known[0] = o.Values[signal.MemoryUsedBytes].Get()
		require.True(t, known[0])
		return running, queued, slots
	}
	require.Eventually(t, func() bool { running, queued, slots := load(); return running == 0 && queued == 0 && slots == 1 }, 10*time.Second, 50*time.Millisecond)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var group sync.WaitGroup
	for i := range 3 {
		id := fmt.Sprintf("narrow-%d/1", i)
		group.Go(func() { _, _ = read(ctx, e, engine.Query{ID: id, SQL: slow}) })
		run := await(t, e, id, engine.RunActive)
		require.Eventually(t, func() bool { // each waits for a moment, the first too
			var err error
			run, err = e.Find(t.Context(), id)
			return err == nil && run.State == engine.RunActive && run.Waiting == (i > 0)
		}, 10*time.Second, 20*time.Millisecond)
		if i > 0 {
			require.Nil(t, run.Stats.ReadRows, "what waits has read nothing that could be known")
			require.Zero(t, run.Elapsed)
		}
	}
	running, queued, slots := load()
	require.Equal(t, []float64{1, 2, 1}, []float64{running, queued, slots})

	_, err = read(t.Context(), e, engine.Query{ID: "narrow-3/1", SQL: "SELECT name FROM region"})
	got, class := classified(t, err)
	require.Equal(t, "QUERY_QUEUE_FULL", got.Name)
	require.Equal(t, failure.QueueFull, class)
	require.Equal(t, engine.Answered, got.Phase)

	// One that waits is killed like one that runs, and the tag of a resource profile chooses the group as well.
	wide := open(t, trino.Config{Name: "c", URL: server.URL(), Database: "tpch.tiny"})
	_, err = read(t.Context(), wide, engine.Query{ID: "narrow-4/1", SQL: "SELECT name FROM region", Settings: map[string]string{trino.ClientTags: "narrow"}})
	_, class = classified(t, err)
	require.Equal(t, failure.QueueFull, class, "%v", err)
	killed, err := wide.Kill(t.Context(), "narrow-2/1")
	require.NoError(t, err)
	require.True(t, killed)
	running, queued, _ = load()
	require.Equal(t, []float64{1, 1}, []float64{running, queued})
	began := time.Now()
	cancel()
	require.Eventually(t, func() bool { running, queued, _ := load(); return running+queued == 0 }, 10*time.Second, 10*time.Millisecond)
	require.Less(t, time.Since(began), time.Second, "a cancelled query gives its place back")
	group.Wait()
}

// network is what broken connections do to a submission, seen from behind them.
func network(t *testing.T, server *real.Server) {
	const table = "memory.default.written"
	require.NoError(t, server.Run("pm", "CREATE TABLE "+table+" (n bigint)"))
	insert := func(n int) string { return fmt.Sprintf("INSERT INTO %s VALUES %d", table, n) }
	other := connect(t, server)
	times := func(t *testing.T, n int) int64 {
		t.Helper()
		rows, err := other.Submit(t.Context(), engine.Query{SQL: fmt.Sprintf("SELECT count(*) FROM %s WHERE n = %d", table, n)})
		require.NoError(t, err)
		require.True(t, rows.Next())
		values, err := rows.Values()
		require.NoError(t, err)
		require.False(t, rows.Next())
		require.NoError(t, rows.Close())
		return values[0].(int64)
	}
	g := enginetest.NewGate(t, server.Addr)
	through := func(t *testing.T) engine.Engine {
		g.Set(enginetest.Fault{})
		return open(t, trino.Config{Name: "c", URL: "http://" + g.Addr, Database: "tpch.tiny"})
	}
	soon := func() time.Time { return time.Now().Add(1500 * time.Millisecond) }
	const posts, starts = "POST /v1/statement", "GET /v1/statement/queued/"

	t.Run("the answer to the POST is lost each time", func(t *testing.T) {
		e := through(t)
		g.Set(enginetest.Fault{Marker: posts})
		_, err := read(t.Context(), e, engine.Query{ID: "lost-post/1", SQL: insert(1), SubmitBefore: soon()})
		require.Equal(t, 2, g.Seen())
		got, class := classified(t, err)
		require.Equal(t, engine.NotSent, got.Phase, "what was posted and not started does nothing, so it may go elsewhere")
		require.Equal(t, failure.ClusterDown, class)
		run, err := other.Find(t.Context(), "lost-post/1")
		require.NoError(t, err)
		require.Equal(t, engine.RunUnknown, run.State)
		require.Zero(t, times(t, 1))
	})
	t.Run("the first page never gets there", func(t *testing.T) {
		e := through(t)
		g.Set(enginetest.Fault{Marker: starts, Swallow: true})
		_, err := read(t.Context(), e, engine.Query{ID: "lost-start/1", SQL: insert(2), SubmitBefore: soon()})
		got, class := classified(t, err)
		require.Equal(t, engine.SentUnknown, got.Phase)
		require.Equal(t, failure.SubmitUnknown, class, "nobody knows, so it has to be looked up")
		run, err := other.Find(t.Context(), "lost-start/1")
		require.NoError(t, err)
		require.Equal(t, engine.RunUnknown, run.State)
		require.Zero(t, times(t, 2))
	})
	t.Run("the first page gets there, and its answer is lost each time", func(t *testing.T) {
		e := through(t)
		g.Set(enginetest.Fault{Marker: starts})
		_, err := read(t.Context(), e, engine.Query{ID: "lost-answer/1", SQL: insert(3), SubmitBefore: soon()})
		got, class := classified(t, err)
		require.Equal(t, engine.SentUnknown, got.Phase)
		require.Equal(t, failure.SubmitUnknown, class)
		require.Greater(t, g.Seen(), 1, "asking again starts nothing a second time")
		run, err := other.Find(t.Context(), "lost-answer/1")
		require.NoError(t, err)
		require.NotEqual(t, engine.RunUnknown, run.State, "a look-up finds it")
		require.Eventually(t, func() bool { return times(t, 3) == 1 }, 10*time.Second, 100*time.Millisecond)
	})
	t.Run("the first page's answer is lost once", func(t *testing.T) {
		e := through(t)
		g.Set(enginetest.Fault{Marker: starts})
		ended := make(chan error, 1)
		go func() {
			_, err := read(t.Context(), e, engine.Query{ID: "lost-once/1", SQL: insert(4), SubmitBefore: time.Now().Add(20 * time.Second)})
			ended <- err
		}()
		require.Eventually(t, func() bool { return g.Seen() > 0 }, 10*time.Second, time.Millisecond)
		g.Set(enginetest.Fault{})
		require.NoError(t, <-ended)
		require.EqualValues(t, 1, times(t, 4))
	})
	t.Run("connections are cut all the time while rows are read", func(t *testing.T) {
		e := through(t)
		rows, err := e.Submit(t.Context(), engine.Query{ID: "cut/1", SQL: "SELECT n, rpad('', 200, 'x') FROM TABLE(sequence(1, 200000)) AS t(n)"})
		require.NoError(t, err)
		var n, sum int64
		for rows.Next() {
			values, err := rows.Values()
			require.NoError(t, err)
			n, sum = n+1, sum+values[0].(int64)
			if n%20_000 == 0 {
				g.CutAll()
			}
		}
		require.NoError(t, rows.Err())
		require.NoError(t, rows.Close())
		require.EqualValues(t, 200_000, n)
		require.EqualValues(t, 200_000*200_001/2, sum, "no row twice, and none lost")
	})
	t.Run("the guard runs out while the connection to start it is made", func(t *testing.T) {
		e := through(t)
		g.Set(enginetest.Fault{DialDelay: 400 * time.Millisecond})
		_, err := read(t.Context(), e, engine.Query{ID: "late/1", SQL: insert(5), SubmitBefore: time.Now().Add(600 * time.Millisecond)})
		if err == nil {
			require.EqualValues(t, 1, times(t, 5), "the connection of the POST was used again, in time")
			return
		}
		require.ErrorIs(t, err, engine.ErrGuardExpired)
		require.Zero(t, times(t, 5))
	})
	t.Run("a server that takes connections and says nothing", func(t *testing.T) {
		e := through(t)
		g.Set(enginetest.Fault{Deaf: true})
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		began := time.Now()
		_, err := read(ctx, e, engine.Query{ID: "deaf/1", SQL: insert(6)})
		got, _ := classified(t, err)
		require.Equal(t, engine.NotSent, got.Phase)
		_, err = e.Find(ctx, "deaf/1")
		got, _ = classified(t, err)
		require.Equal(t, engine.SentUnknown, got.Phase, "one that does not answer is not one that is gone")
		require.Less(t, time.Since(began), 7*time.Second)
		require.Zero(t, times(t, 6))
	})
}

// statistics: what a connector does not count is absent.
func statistics(t *testing.T, server *real.Server) {
	e := connect(t, server)
	require.NoError(t, server.Run("pm", "CREATE TABLE IF NOT EXISTS memory.default.counted AS SELECT * FROM tpch.tiny.orders"))
	for _, c := range []struct {
		table string
		bytes bool
	}{{"tpch.tiny.orders", false}, {"memory.default.counted", true}} {
		id := "statistics-" + c.table + "/1"
		rows, err := e.Submit(t.Context(), engine.Query{ID: id, SQL: "SELECT max(totalprice), max(comment) FROM " + c.table})
		require.NoError(t, err)
		for rows.Next() {
		}
		require.NoError(t, rows.Err())
		require.NoError(t, rows.Close())
		s := rows.Stats()
		require.EqualValues(t, 15_000, *s.ReadRows)
		require.EqualValues(t, 1, *s.ResultRows)
		require.Positive(t, *s.PeakMemoryBytes)
		require.Equal(t, c.bytes, s.ReadBytes != nil, c.table)
		run := await(t, e, id, engine.RunFinished)
		require.EqualValues(t, 15_000, *run.Stats.ReadRows, "the history says the same")
		require.Equal(t, c.bytes, run.Stats.ReadBytes != nil, c.table)
		require.InDelta(t, 1, *run.Progress, 0)
	}
}

// abandoned: nobody asks for pages any more, as when a process was stopped. A write may have been done by then, and the server
// reports it as failed all the same.
func abandoned(t *testing.T, server *real.Server) {
	require.NoError(t, server.Run("pm", "CREATE TABLE memory.default.orphans (n bigint)"))
	other := connect(t, server)
	gone := open(t, trino.Config{Name: "c", URL: server.URL()}) // a process that is killed once its query runs
	ended := make(chan error, 1)
	go func() {
		_, err := read(t.Context(), gone, engine.Query{ID: "orphaned-read/1", SQL: slow})
		ended <- err
	}()
	await(t, other, "orphaned-read/1", engine.RunActive)
	require.NoError(t, gone.Close())
	require.Error(t, <-ended)

	// One that is killed between the first page of its write and the last.
	answer, err := server.Do(t.Context(), http.MethodPost, "/v1/statement", "pm", "INSERT INTO memory.default.orphans VALUES 7", "X-Trino-Trace-Token", "orphaned-write/1")
	require.NoError(t, err)
	_, rest, _ := strings.Cut(answer, `"nextUri":"`)
	next, _, _ := strings.Cut(rest, `"`)
	_, err = server.Do(t.Context(), http.MethodGet, next, "pm", "")
	require.NoError(t, err)

	stalled, err := other.Submit(t.Context(), engine.Query{ID: "stalled/1", SQL: large})
	require.NoError(t, err)
	for _, id := range []string{"orphaned-read/1", "orphaned-write/1", "stalled/1"} {
		run := await(t, other, id, engine.RunFailed)
		require.Equal(t, "ABANDONED_QUERY", run.Failure.Name, id)
		_, class := classified(t, run.Failure)
		require.Equal(t, failure.SubmitUnknown, class)
	}
	for stalled.Next() {
	}
	got, _ := classified(t, stalled.Err())
	require.Equal(t, "ABANDONED_QUERY", got.Name)
	require.NoError(t, stalled.Close())
	n, err := read(t.Context(), other, engine.Query{SQL: "SELECT n FROM memory.default.orphans"})
	require.NoError(t, err)
	require.Equal(t, 1, n, "it was given up, and its row is there: this is why it may never run again by itself")
}

// restart: the coordinator forgets everything, so an attempt that ran there is gone.
func restart(t *testing.T, server *real.Server) {
	e := connect(t, server)
	ended := make(chan error, 1)
	go func() {
		_, err := read(t.Context(), e, engine.Query{ID: "restarted/1", SQL: slow})
		ended <- err
	}()
	await(t, e, "restarted/1", engine.RunActive)
	server.End(syscall.SIGTERM)
	server.Again()
	// Until it has started it says no in several ways, and each of them is for the router to go elsewhere.
	seen := map[string]int{}
	for began := time.Now(); ; {
		require.Less(t, time.Since(began), 2*time.Minute)
		_, err := read(t.Context(), e, engine.Query{ID: fmt.Sprintf("starting-%d/1", len(seen)), SQL: "SELECT count(*) FROM region"})
		if err == nil {
			break
		}
		got, class := classified(t, err)
		require.Equal(t, failure.ClusterDown, class, "%v", err)
		seen[got.Code+" "+got.Name+" "+got.Error()]++
		time.Sleep(10 * time.Millisecond)
	}
	t.Logf("what it said until it had started: %v", seen)
	server.AwaitReady()
	got, class := classified(t, <-ended)
	require.Contains(t, []failure.Class{failure.SubmitUnknown, failure.ClusterDown}, class, "%v, code %q", got, got.Code)
	require.NotEqual(t, engine.NotSent, got.Phase, "it was sent, and whoever reads that it was not may run a write again")
	run, err := e.Find(t.Context(), "restarted/1")
	require.NoError(t, err)
	require.Equal(t, engine.RunUnknown, run.State)
	n, err := read(t.Context(), e, engine.Query{ID: "restarted/2", SQL: "SELECT * FROM region"})
	require.NoError(t, err)
	require.Equal(t, 5, n)
}
