package clickhouse_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/embedded/chdb"
	"github.com/pointsman/pointsman/pkg/embedded/chdb/chdbtest"
	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/clickhouse"
)

// gate stands between the adapter and an engine, counts the requests of each query id, and does to them what a network does.
type gate struct {
	*httptest.Server
	engine http.Handler

	mu    sync.Mutex
	seen  map[string]int
	fault func(w http.ResponseWriter, r *http.Request) bool // true when it has dealt with the request
}

func newGate(t *testing.T, addr string) *gate {
	g := &gate{engine: httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: addr}), seen: map[string]int{}}
	g.Server = httptest.NewServer(g)
	t.Cleanup(g.Close)
	return g
}

// ServeHTTP passes on what no fault takes.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	id := r.URL.Query().Get("query_id")
	g.seen[id]++
	fault := g.fault
	g.mu.Unlock()
	if fault != nil && fault(w, r) {
		return
	}
	g.engine.ServeHTTP(w, r)
}

func (g *gate) set(fault func(w http.ResponseWriter, r *http.Request) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fault = fault
}

func (g *gate) count(id string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.seen[id]
}

// onQuery applies a fault to requests of attempts only, not to the hello and the control lane.
func onQuery(fault func(w http.ResponseWriter, r *http.Request)) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Query().Get("query_id"), "/1") {
			return false
		}
		fault(w, r)
		return true
	}
}

func hangUp(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	conn, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		_ = conn.Close()
	}
}

func TestNetworkFaults(t *testing.T) {
	server := chdbtest.Start(t, chdb.Config{Name: "behind-a-gate", User: "u", Password: "secret"})
	g := newGate(t, server.Addr())
	addr := strings.TrimPrefix(g.URL, "http://")
	submit := func(t *testing.T, e engine.Engine, q engine.Query) (n int, err error) {
		t.Helper()
		g.mu.Lock()
		g.seen = map[string]int{}
		g.mu.Unlock()
		rows, err := e.Submit(t.Context(), q)
		if err != nil {
			return 0, err
		}
		for rows.Next() {
			n++
		}
		require.NoError(t, rows.Close())
		return n, rows.Err()
	}
	client := func(t *testing.T) engine.Engine {
		g.set(nil)
		e := open(t, clickhouse.Config{Name: "c", Addrs: []string{addr}, User: "u", Password: "secret"})
		t.Cleanup(func() { _ = e.Close() })
		return e
	}
	phase := func(t *testing.T, err error, want engine.Phase) *engine.Error {
		t.Helper()
		var e *engine.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, want, e.Phase, "%v", err)
		require.NotContains(t, err.Error(), "secret")
		require.NotContains(t, err.Error(), "query_id")
		return e
	}

	t.Run("a query is one request, and the hello is none of it", func(t *testing.T) {
		e := client(t)
		for range 3 {
			_, err := submit(t, e, engine.Query{ID: "q/1", SQL: "SELECT 1"})
			require.NoError(t, err)
			require.Equal(t, 1, g.count("q/1"))
		}
	})
	t.Run("hung up before the answer", func(t *testing.T) {
		e := client(t)
		g.set(onQuery(hangUp))
		_, err := submit(t, e, engine.Query{ID: "reset/1", SQL: "SELECT 1"})
		phase(t, err, engine.SentUnknown)
		require.Equal(t, 1, g.count("reset/1"), "the transport must not send it again by itself")
	})
	t.Run("hung up on a connection that was used before", func(t *testing.T) {
		e := client(t)
		_, err := submit(t, e, engine.Query{ID: "first/1", SQL: "SELECT 1"})
		require.NoError(t, err)
		g.set(onQuery(hangUp))
		_, err = submit(t, e, engine.Query{ID: "second/1", SQL: "SELECT 1"})
		phase(t, err, engine.SentUnknown)
		require.Equal(t, 1, g.count("second/1"))
	})
	t.Run("redirected", func(t *testing.T) {
		e := client(t)
		g.set(onQuery(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/again", http.StatusTemporaryRedirect)
		}))
		_, err := submit(t, e, engine.Query{ID: "redirected/1", SQL: "SELECT 1"})
		phase(t, err, engine.SentUnknown)
		require.Equal(t, 1, g.count("redirected/1"))
	})
	t.Run("a proxy that lost its engine", func(t *testing.T) {
		e := client(t)
		g.set(onQuery(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "bad gateway", http.StatusBadGateway) }))
		_, err := submit(t, e, engine.Query{ID: "gateway/1", SQL: "SELECT 1"})
		phase(t, err, engine.SentUnknown)
	})
	t.Run("cut in the middle of the rows", func(t *testing.T) {
		e := client(t)
		g.set(func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasSuffix(r.URL.Query().Get("query_id"), "/1") {
				return false
			}
			g.engine.ServeHTTP(&cut{ResponseWriter: w, left: 3 << 20}, r)
			return true
		})
		n, err := submit(t, e, engine.Query{ID: "cut/1", SQL: "SELECT number, randomPrintableASCII(100) FROM numbers(1000000)"})
		phase(t, err, engine.SentUnknown)
		require.Less(t, n, 1_000_000)
	})
	t.Run("spoilt in the middle of the rows", func(t *testing.T) {
		e := client(t)
		for i, sql := range []string{"SELECT number, randomPrintableASCII(100) FROM numbers(1000000)", "SELECT number, repeat('x', 100) FROM numbers(10000000)"} {
			g.set(func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.HasSuffix(r.URL.Query().Get("query_id"), "/1") {
					return false
				}
				g.engine.ServeHTTP(&spoilt{ResponseWriter: w, left: 1 << 20}, r)
				return true
			})
			n, err := submit(t, e, engine.Query{ID: fmt.Sprintf("spoilt%d/1", i), SQL: sql})
			phase(t, err, engine.SentUnknown)
			require.Less(t, n, 1_000_000)
		}
	})
	t.Run("the guard runs out while the connection is made", func(t *testing.T) {
		e := client(t)
		g.set(func(_ http.ResponseWriter, r *http.Request) bool {
			if r.URL.Query().Get("query_id") == "" {
				time.Sleep(300 * time.Millisecond)
			}
			return false
		})
		_, err := submit(t, e, engine.Query{ID: "late/1", SQL: "SELECT 1", SubmitBefore: time.Now().Add(100 * time.Millisecond)})
		phase(t, err, engine.NotSent)
		require.ErrorIs(t, err, engine.ErrGuardExpired)
		require.Zero(t, g.count("late/1"))
	})
	t.Run("a statement that chooses its format", func(t *testing.T) {
		_, err := submit(t, client(t), engine.Query{ID: "format/1", SQL: "SELECT 1 FORMAT JSON"})
		require.Equal(t, "399", phase(t, err, engine.Answered).Code)
	})
	t.Run("the wrong password", func(t *testing.T) {
		g.set(nil)
		e := open(t, clickhouse.Config{Name: "c", Addrs: []string{addr}, User: "u", Password: "secret2"})
		t.Cleanup(func() { _ = e.Close() })
		_, err := submit(t, e, engine.Query{ID: "password/1", SQL: "SELECT 1"})
		require.NotEmpty(t, phase(t, err, engine.NotSent).Code)
		require.Zero(t, g.count("password/1"), "the hello is refused already")
	})
	t.Run("settings and database", func(t *testing.T) {
		e := client(t)
		rows, err := e.Submit(t.Context(), engine.Query{ID: "db/1", SQL: "SELECT currentDatabase()", Database: "system"})
		require.NoError(t, err)
		require.True(t, rows.Next())
		values, err := rows.Values()
		require.NoError(t, err)
		require.Equal(t, []any{"system"}, values)
		require.NoError(t, rows.Close())
	})
}

// cut hangs up after some bytes.
type cut struct {
	http.ResponseWriter
	left int
}

func (c *cut) Write(p []byte) (int, error) {
	if c.left -= len(p); c.left < 0 {
		panic(http.ErrAbortHandler)
	}
	return c.ResponseWriter.Write(p)
}

func (c *cut) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// spoilt replaces a piece of the body behind some bytes: with lengths that nobody has the memory for.
type spoilt struct {
	http.ResponseWriter
	left int
}

// Write passes on what comes.
func (w *spoilt) Write(p []byte) (int, error) {
	if w.left >= 0 && w.left < len(p) {
		p = bytes.Clone(p)
		for i := range p[w.left:] {
			p[w.left+i] = "\xff\xff\xff\xff\xff\xff\xff\xff\x3f"[i%9]
		}
	}
	w.left -= len(p)
	return w.ResponseWriter.Write(p)
}
