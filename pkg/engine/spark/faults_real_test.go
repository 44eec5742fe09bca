//go:build real

package spark_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/enginetest"
	"github.com/pointsman/pointsman/pkg/engine/spark"
	"github.com/pointsman/pointsman/pkg/failure"
	real "github.com/pointsman/pointsman/test/real/spark"
)

const (
	marker = "marked_by_the_test"
	// sleeps runs for six seconds, over the end of two streams, and gives one row.
	sleeps = "SELECT coalesce(length(java_method('java.lang.Thread', 'sleep', 6000L)), 4) FROM range(1)"
	// naps is a 4 that takes a second.
	naps = "coalesce(length(java_method('java.lang.Thread', 'sleep', 1000L)), 4)"
)

var serial atomic.Int64

func newID() string { return fmt.Sprintf("f-%d-%d/1", time.Now().UnixNano(), serial.Add(1)) }

// all reads a query to its end and counts its rows.
func all(ctx context.Context, e engine.Engine, q engine.Query) (rows int, last []any, err error) {
	r, err := e.Submit(ctx, q)
	if err != nil {
		return 0, nil, err
	}
	for r.Next() {
		rows++
		if last, err = r.Values(); err != nil {
			return rows, nil, err
		}
	}
	return rows, last, errors.Join(r.Err(), r.Close())
}

func failed(t *testing.T, err error, class failure.Class, phase engine.Phase) *engine.Error {
	t.Helper()
	var e *engine.Error
	require.ErrorAs(t, err, &e)
	got := failure.Classify(failure.Report{Engine: e.Engine, Code: e.Code, Name: e.Name, Type: e.Type, Message: e.Error(), Reach: failure.Reach(e.Phase)})
	require.Equal(t, string(class), got.Class, "%v (code %q, phase %s)", err, e.Code, e.Phase)
	require.Equal(t, phase, e.Phase, "%v", err)
	return e
}

func state(t *testing.T, e engine.Engine, id string, want engine.RunState) engine.Run {
	t.Helper()
	var run engine.Run
	require.Eventually(t, func() bool {
		var err error
		run, err = e.Find(t.Context(), id)
		return err == nil && run.State == want
	}, 20*time.Second, 50*time.Millisecond, "waiting for %s to be %s", id, want)
	return run
}

// network is what happens when connections break, stand still, or take too long: whatever can be had again costs nothing.
func network(t *testing.T, server *real.Server) {
	g := enginetest.NewGate(t, server.Addr)
	other := open(t, spark.Config{Name: "c", Addr: server.Addr})
	through := func(t *testing.T) engine.Engine {
		g.Set(enginetest.Fault{})
		return open(t, spark.Config{Name: "c", Addr: g.Addr, DialTimeout: 2 * time.Second, RetryFor: 10 * time.Second})
	}
	marked := func(sql string) string { return sql + " -- " + marker }

	t.Run("a query leaves once", func(t *testing.T) {
		e := through(t)
		for range 3 {
			g.Set(enginetest.Fault{Marker: marker, Answer: -1})
			_, _, err := all(t.Context(), e, engine.Query{ID: newID(), SQL: marked("SELECT 1")})
			require.NoError(t, err)
			require.Equal(t, 1, g.Seen())
		}
	})
	t.Run("hung up before it arrived: it is sure that nothing has run", func(t *testing.T) {
		e, id := through(t), newID()
		g.Set(enginetest.Fault{Marker: marker, Swallow: true})
		_, _, err := all(t.Context(), e, engine.Query{ID: id, SQL: marked("CREATE TABLE never (n int) USING parquet")})
		failed(t, err, failure.ClusterDown, engine.NotSent)
		require.Equal(t, 1, g.Seen(), "it must not be sent again by itself")
		state(t, other, id, engine.RunUnknown)
		_, _, err = all(t.Context(), other, engine.Query{ID: id, SQL: "SELECT 1"})
		failed(t, err, failure.SubmitUnknown, engine.SentUnknown) // nothing is started under this id any more
	})
	t.Run("hung up before the answer: it comes all the same, or it is sure that nothing has run", func(t *testing.T) {
		for i := range 8 {
			e := through(t)
			g.Set(enginetest.Fault{Marker: marker})
			name := fmt.Sprintf("perhaps_%d", i)
			_, _, err := all(t.Context(), e, engine.Query{ID: newID(), SQL: marked("CREATE TABLE " + name + " (n int) USING parquet")})
			if err != nil {
				failed(t, err, failure.ClusterDown, engine.NotSent)
			}
			require.Equal(t, 1, g.Seen())
			n, _, known := all(t.Context(), other, engine.Query{ID: newID(), SQL: "SHOW TABLES LIKE '" + name + "'"})
			require.NoError(t, known)
			require.Equal(t, err == nil, n == 1, "what is said of it is what has happened: %v", err)
		}
	})
	t.Run("hung up in the middle of the rows: none is lost and none comes twice", func(t *testing.T) {
		e := through(t)
		g.Set(enginetest.Fault{Marker: marker, Answer: 8 << 20})
		r, err := e.Submit(t.Context(), engine.Query{ID: newID(), SQL: marked("SELECT id, rpad('', 200, 'x') FROM range(0, 300000, 1, 8) ORDER BY id")})
		require.NoError(t, err)
		var n int64
		for r.Next() {
			row, err := r.Values()
			require.NoError(t, err)
			require.Equal(t, n, row[0])
			n++
		}
		require.NoError(t, r.Err())
		require.EqualValues(t, 300000, n)
		require.NoError(t, r.Close())
		require.EqualValues(t, 300000, *r.Stats().ResultRows)
	})
	t.Run("every connection is cut again and again", func(t *testing.T) {
		e := through(t)
		stop := make(chan struct{})
		cutter := make(chan struct{})
		go func() {
			defer close(cutter)
			for {
				select {
				case <-stop:
					return
				case <-time.After(700 * time.Millisecond):
					g.CutAll()
				}
			}
		}()
		n, row, err := all(t.Context(), e, engine.Query{ID: newID(), SQL: sleeps})
		close(stop)
		<-cutter
		if err != nil { // the first cut may come before the statement has left
			failed(t, err, failure.ClusterDown, engine.NotSent)
			return
		}
		require.Equal(t, 1, n)
		require.Len(t, row, 1)
	})
	t.Run("connections go dead without a word: the rows come over another one", func(t *testing.T) {
		e := through(t)
		g.Set(enginetest.Fault{Marker: marker, Answer: -1})
		ended := make(chan error, 1)
		var n int
		go func() {
			var err error
			n, _, err = all(t.Context(), e, engine.Query{ID: newID(), SQL: marked(sleeps)})
			ended <- err
		}()
		require.Eventually(t, func() bool { return g.Seen() == 1 }, 20*time.Second, 10*time.Millisecond)
		time.Sleep(500 * time.Millisecond) // it runs
		g.Mute()
		select {
		case err := <-ended:
			require.NoError(t, err)
			require.Equal(t, 1, n)
		case <-time.After(40 * time.Second):
			t.Fatal("it is still waited for")
		}
		require.Equal(t, 1, g.Seen(), "it was sent once")
	})
	t.Run("the guard runs out while the connection is made", func(t *testing.T) {
		e := through(t)
		g.Set(enginetest.Fault{Marker: marker, DialDelay: 400 * time.Millisecond, Answer: -1})
		_, _, err := all(t.Context(), e, engine.Query{ID: newID(), SQL: marked("SELECT 1"), SubmitBefore: time.Now().Add(150 * time.Millisecond)})
		require.ErrorIs(t, err, engine.ErrGuardExpired)
		failed(t, err, failure.ClusterDown, engine.NotSent)
		require.Zero(t, g.Seen())
	})
	t.Run("a server that takes connections and says nothing", func(t *testing.T) {
		e := through(t)
		g.Set(enginetest.Fault{Marker: marker, Deaf: true})
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		_, _, err := all(ctx, e, engine.Query{ID: newID(), SQL: marked("SELECT 1")})
		failed(t, err, failure.ClusterDown, engine.NotSent)
		_, err = e.Find(ctx, newID())
		failed(t, err, failure.SubmitUnknown, engine.SentUnknown) // one that does not answer is not one that is gone
		o, err := e.Observe(ctx)
		require.Error(t, err)
		healthy, known := o.Values["healthy"].Get()
		require.True(t, known && healthy == 0)
	})
	t.Run("a server that speaks something else", func(t *testing.T) {
		for _, greeting := range [][]byte{[]byte("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"), {0, 0, 0, 0}, []byte("SSH-2.0-OpenSSH_9.2\r\n")} {
			e := through(t)
			g.Set(enginetest.Fault{Marker: marker, Greeting: greeting})
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			_, _, err := all(ctx, e, engine.Query{ID: newID(), SQL: marked("SELECT 1")})
			cancel()
			failed(t, err, failure.ClusterDown, engine.NotSent)
			require.Zero(t, g.Seen())
		}
	})
	t.Run("connections that were kept ready are dead", func(t *testing.T) {
		e := through(t)
		for range 3 {
			_, _, err := all(t.Context(), e, engine.Query{ID: newID(), SQL: "SELECT 1"})
			require.NoError(t, err)
			g.CutAll()
			time.Sleep(50 * time.Millisecond)
		}
	})
}

// streams: the server ends each stream after three seconds, and the operation goes on.
func streams(t *testing.T, server *real.Server) {
	n, _, err := all(t.Context(), open(t, spark.Config{Name: "c", Addr: server.Addr}), engine.Query{ID: newID(), SQL: sleeps})
	require.NoError(t, err)
	require.Equal(t, 1, n)
}

// stopped is the proof by another way than the one under test: the server's user interface counts no job any more.
func stopped(t *testing.T, server *real.Server) {
	mine, other := open(t, spark.Config{Name: "c", Addr: server.Addr}), open(t, spark.Config{Name: "c", Addr: server.Addr})
	count := func(want func(int) bool) {
		require.Eventually(t, func() bool {
			n, err := server.RunningJobs()
			return err == nil && want(n)
		}, 20*time.Second, 20*time.Millisecond)
	}
	none := func(n int) bool { return n == 0 }
	count(none)
	for _, how := range []string{"cancel", "kill", "time limit"} {
		id := newID()
		ctx, cancel := context.WithCancel(t.Context())
		q := engine.Query{ID: id, SQL: slow}
		if how == "time limit" {
			q.MaxExecution = 2 * time.Second
		}
		ended := make(chan error, 1)
		go func() {
			_, _, err := all(ctx, mine, q)
			ended <- err
		}()
		count(func(n int) bool { return n > 0 })
		began := time.Now()
		switch how {
		case "cancel":
			cancel()
		case "kill":
			killed, err := other.Kill(t.Context(), id)
			require.NoError(t, err)
			require.True(t, killed)
		}
		require.Error(t, <-ended)
		if how == "time limit" {
			began = time.Now()
		}
		count(none)
		took := time.Since(began)
		t.Logf("%s: no job is counted %s afterwards", how, took.Round(time.Millisecond))
		require.Less(t, took, 2*time.Second) // some of it is waited on purpose
		cancel()
	}
}

// takenOver: the client that submitted is gone, and another one learns how its runs have ended.
func takenOver(t *testing.T, server *real.Server) {
	other := open(t, spark.Config{Name: "c", Addr: server.Addr})
	run := func(sql string) string {
		mine, id := open(t, spark.Config{Name: "c", Addr: server.Addr}), newID()
		ended := make(chan error, 1)
		go func() {
			_, _, err := all(t.Context(), mine, engine.Query{ID: id, SQL: sql})
			ended <- err
		}()
		state(t, other, id, engine.RunActive)
		require.NoError(t, mine.Close())
		require.Error(t, <-ended)
		return id
	}
	_, _, err := all(t.Context(), other, engine.Query{ID: newID(), SQL: "CREATE TABLE IF NOT EXISTS taken_over (n bigint) USING parquet"})
	require.NoError(t, err)

	id := run("INSERT INTO taken_over SELECT " + naps + " FROM range(1)")
	state(t, other, id, engine.RunFinished)
	_, row, err := all(t.Context(), other, engine.Query{ID: newID(), SQL: "SELECT count(*) FROM taken_over"})
	require.NoError(t, err)
	require.EqualValues(t, 1, row[0], "it went on without its client, and ran once")
	_, _, err = all(t.Context(), other, engine.Query{ID: id, SQL: "INSERT INTO taken_over SELECT 2"})
	failed(t, err, failure.SubmitUnknown, engine.SentUnknown)

	id = run("SELECT 1 / (" + naps + " - 4) FROM range(1)")
	found := state(t, other, id, engine.RunFailed)
	require.Equal(t, "DIVIDE_BY_ZERO", found.Failure.Code)

	id = run(slow)
	state(t, other, id, engine.RunActive)
	killed, err := other.Kill(t.Context(), id)
	require.NoError(t, err)
	require.True(t, killed)
	state(t, other, id, engine.RunUnknown)
}

// restart: a server that was started anew knows nothing, and that is said.
func restart(t *testing.T, server *real.Server) {
	e, id := open(t, spark.Config{Name: "c", Addr: server.Addr}), newID()
	ended := make(chan error, 1)
	go func() {
		_, _, err := all(t.Context(), e, engine.Query{ID: id, SQL: slow})
		ended <- err
	}()
	state(t, e, id, engine.RunActive)
	time.Sleep(time.Second) // it has answered
	server.Restart()
	failed(t, <-ended, failure.SubmitUnknown, engine.SentUnknown)
	state(t, e, id, engine.RunUnknown)
	require.NoError(t, e.Canary(t.Context()))
}
