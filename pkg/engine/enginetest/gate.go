package enginetest

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/failure"
)

// Gate stands between an adapter and a server and does to their connections what a network does. It knows no protocol: it looks
// for a text on the way to the server, which every engine is sent as it is.
type Gate struct {
	Addr   string
	target string
	listen net.Listener
	group  sync.WaitGroup

	mu    sync.Mutex
	fault Fault
	seen  int
	links map[net.Conn]struct{}
	mute  map[net.Conn]struct{}
}

// Fault is what happens to a connection.
type Fault struct {
	// DialDelay is how long the way to the server takes.
	DialDelay time.Duration
	// Deaf takes connections and lets nothing through.
	Deaf bool
	// Greeting is what the client is sent instead of all that a server would say.
	Greeting []byte
	// Marker is the text on its way to the server that starts what follows.
	Marker string
	// Swallow hangs up before the text reaches the server.
	Swallow bool
	// Reply is the answer to it, instead of the server's, which never sees it.
	Reply []byte
	// Answer is how many bytes of the answer to it still come through before it hangs up; below 0 all of them.
	Answer int
}

// NewGate opens a gate in front of a server's address.
func NewGate(t *testing.T, target string) *Gate {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	g := &Gate{Addr: l.Addr().String(), target: target, listen: l, links: map[net.Conn]struct{}{}}
	g.group.Go(g.accept)
	t.Cleanup(func() {
		_ = l.Close()
		g.CutAll()
		g.group.Wait()
	})
	return g
}

// Set makes a fault the one of all connections from now on, and forgets what was seen.
func (g *Gate) Set(f Fault) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fault, g.seen = f, 0
}

// Seen counts how often the marker has come by.
func (g *Gate) Seen() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.seen
}

// CutAll hangs up everywhere.
func (g *Gate) CutAll() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for c := range g.links {
		_ = c.Close()
	}
}

// Mute lets nothing through on the connections that there are, and tells nobody: what is sent there is lost.
func (g *Gate) Mute() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mute = maps.Clone(g.links)
}

func (g *Gate) muted(c net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, yes := g.mute[c]
	return yes
}

func (g *Gate) current() Fault {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.fault
}

func (g *Gate) hold(c net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.links[c] = struct{}{}
}

func (g *Gate) accept() {
	for {
		client, err := g.listen.Accept()
		if err != nil {
			return
		}
		g.hold(client)
		g.group.Go(func() { g.link(client) })
	}
}

// link carries one connection.
func (g *Gate) link(client net.Conn) {
	defer client.Close()
	f := g.current()
	if f.Deaf {
		_, _ = io.Copy(io.Discard, client)
		return
	}
	if f.Greeting != nil {
		_, _ = client.Write(f.Greeting)
		_, _ = io.Copy(io.Discard, client)
		return
	}
	time.Sleep(f.DialDelay)
	server, err := net.Dial("tcp", g.target)
	if err != nil {
		return
	}
	defer server.Close()
	g.hold(server)
	var (
		mu   sync.Mutex
		left = -1 // bytes of the answer that still come through
	)
	g.group.Go(func() {
		defer client.Close()
		defer server.Close()
		buf := make([]byte, 32<<10)
		for {
			n, err := server.Read(buf)
			if g.muted(server) {
				n = 0
			}
			mu.Lock()
			if left >= 0 {
				n = min(n, left)
				left -= n
			}
			over := left == 0
			mu.Unlock()
			if n > 0 {
				if _, err := client.Write(buf[:n]); err != nil {
					return
				}
			}
			if err != nil || over {
				return
			}
		}
	})
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		if n > 0 && !g.muted(client) {
			if f, hit := g.look(buf[:n]); hit {
				if f.Swallow {
					return
				}
				if f.Reply != nil {
					_, _ = client.Write(f.Reply)
					_, _ = io.Copy(io.Discard, client)
					return
				}
				if f.Answer >= 0 {
					mu.Lock()
					left = f.Answer
					mu.Unlock()
				}
				if f.Answer == 0 {
					_, _ = server.Write(buf[:n])
					time.Sleep(50 * time.Millisecond) // the server reads it before it sees the end of the connection
					return
				}
			}
			if _, err := server.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (g *Gate) look(p []byte) (Fault, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.fault.Marker == "" || !bytes.Contains(p, []byte(g.fault.Marker)) {
		return g.fault, false
	}
	g.seen++
	return g.fault, true
}

// network is what happens when connections break, stand still, or take too long. Behind it a client without a gate sees what the
// server really does.
func network(t *testing.T, f Fixture) {
	if f.OwnNetwork != nil {
		f.OwnNetwork(t)
		return
	}
	g := NewGate(t, f.Addr)
	other := f.open(t)
	through := func(t *testing.T) engine.Engine {
		g.Set(Fault{})
		e := f.OpenAt(t, g.Addr)
		t.Cleanup(func() { _ = e.Close() })
		return e
	}
	marker := "marked_by_the_suite"
	marked := func(sql string) string { return sql + " -- " + marker }

	t.Run("a query leaves once", func(t *testing.T) {
		e := through(t)
		for range 3 {
			g.Set(Fault{Marker: marker, Answer: -1})
			require.NoError(t, awaitEnd(t, run(t.Context(), e, engine.Query{ID: id(t), SQL: marked(f.One)})))
			require.Equal(t, 1, g.Seen())
		}
	})
	t.Run("hung up before it arrived", func(t *testing.T) {
		e := through(t)
		g.Set(Fault{Marker: marker, Swallow: true})
		err := awaitEnd(t, run(t.Context(), e, engine.Query{ID: id(t), SQL: marked(f.One)}))
		require.Equal(t, engine.SentUnknown, f.failed(t, err, failure.SubmitUnknown).Phase)
		require.Equal(t, 1, g.Seen(), "it must not be sent again by itself")
	})
	t.Run("hung up before the answer", func(t *testing.T) {
		e := through(t)
		g.Set(Fault{Marker: marker})
		err := awaitEnd(t, run(t.Context(), e, engine.Query{ID: id(t), SQL: marked(f.One)}))
		require.Equal(t, engine.SentUnknown, f.failed(t, err, failure.SubmitUnknown).Phase)
		require.Equal(t, 1, g.Seen())
	})
	t.Run("hung up while it runs: it can be found, and stopped", func(t *testing.T) {
		e := through(t)
		name := id(t)
		g.Set(Fault{Marker: marker})
		err := awaitEnd(t, run(t.Context(), e, engine.Query{ID: name, SQL: marked(f.Slow)}))
		f.failedAs(t, err, failure.SubmitUnknown)
		_, err = other.Kill(t.Context(), name) // it may be gone already: a server may notice
		require.NoError(t, err)
		awaitState(t, other, name, engine.RunUnknown)
	})
	t.Run("hung up in the middle of the rows", func(t *testing.T) {
		e := through(t)
		g.Set(Fault{Marker: marker, Answer: max(f.CutAt, 1<<20)})
		rows, err := e.Submit(t.Context(), engine.Query{ID: id(t), SQL: marked(f.Large)})
		require.NoError(t, err)
		n := 0
		for rows.Next() {
			n++
		}
		require.Equal(t, engine.SentUnknown, f.failed(t, rows.Err(), failure.SubmitUnknown).Phase)
		require.Less(t, n, f.LargeRows)
		require.NoError(t, rows.Close())
		require.Nil(t, rows.Stats().ResultRows)
	})
	t.Run("hung up behind each byte of a small answer", func(t *testing.T) {
		e := through(t)
		for n, whole := 1, 0; whole < 3; n += 1 + n/100 {
			require.Less(t, n, 1<<16, "an answer that does not end")
			g.Set(Fault{Marker: marker, Answer: n})
			rows, err := e.Submit(t.Context(), engine.Query{ID: id(t), SQL: marked(f.One)})
			var all [][]any
			if err == nil {
				all = drain(t, rows)
				err = rows.Err()
				require.NoError(t, rows.Close())
			}
			require.LessOrEqual(t, g.Seen(), 1)
			if err != nil {
				require.Equal(t, engine.SentUnknown, f.failed(t, err, failure.SubmitUnknown).Phase, "%d bytes", n)
				continue
			}
			require.Len(t, all, 1, "%d bytes of an answer are taken for all of it", n)
			whole++
		}
	})
	t.Run("the guard runs out while the connection is made", func(t *testing.T) {
		e := through(t)
		g.Set(Fault{Marker: marker, DialDelay: 400 * time.Millisecond, Answer: -1})
		err := awaitEnd(t, run(t.Context(), e, engine.Query{ID: id(t), SQL: marked(f.One), SubmitBefore: time.Now().Add(150 * time.Millisecond)}))
		require.ErrorIs(t, err, engine.ErrGuardExpired)
		require.Equal(t, engine.NotSent, f.failed(t, err, failure.ClusterDown).Phase)
		require.Zero(t, g.Seen())
	})
	t.Run("a server that takes connections and says nothing", func(t *testing.T) {
		e := through(t)
		g.Set(Fault{Marker: marker, Deaf: true})
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		began := time.Now()
		err := awaitEnd(t, run(ctx, e, engine.Query{ID: id(t), SQL: marked(f.One)}))
		require.Equal(t, engine.NotSent, f.failed(t, err, failure.ClusterDown).Phase)
		require.Less(t, time.Since(began), 5*time.Second)
		_, err = e.Find(ctx, id(t))
		require.Error(t, err)
		require.NotEqual(t, engine.NotSent, f.failed(t, err, failure.SubmitUnknown).Phase, "one that does not answer is not one that is gone")
		o, err := e.Observe(ctx)
		require.Error(t, err)
		healthy, known := o.Values["healthy"].Get()
		require.True(t, known && healthy == 0)
	})
	t.Run("a server that says what is no protocol", func(t *testing.T) {
		noise := make([]byte, 4096)
		for i := range noise {
			noise[i] = byte(i*i*7 + i) // no length in it is a small one for long
		}
		for _, greeting := range [][]byte{noise, []byte("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"), {0, 0, 0, 0}} {
			e := through(t)
			g.Set(Fault{Marker: marker, Greeting: greeting})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			err := awaitEnd(t, run(ctx, e, engine.Query{ID: id(t), SQL: marked(f.One)}))
			cancel()
			require.Equal(t, engine.NotSent, f.failed(t, err, failure.ClusterDown).Phase)
			require.NotEmpty(t, err.Error())
			require.Zero(t, g.Seen())
		}
		e := through(t)
		g.Set(Fault{Marker: marker, Reply: noise})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := awaitEnd(t, run(ctx, e, engine.Query{ID: id(t), SQL: marked(f.One)}))
		require.Equal(t, engine.SentUnknown, f.failed(t, err, failure.SubmitUnknown).Phase)
	})
	t.Run("connections that were kept ready are dead", func(t *testing.T) {
		e := through(t)
		for range 2 {
			require.NoError(t, awaitEnd(t, run(t.Context(), e, engine.Query{ID: id(t), SQL: f.One})))
			time.Sleep(100 * time.Millisecond) // until the next one is ready
			g.CutAll()
		}
		require.NoError(t, awaitEnd(t, run(t.Context(), e, engine.Query{ID: id(t), SQL: f.One})))
		_, err := e.Find(t.Context(), id(t))
		if err != nil { // the first use of a dead control connection may tell
			_, err = e.Find(t.Context(), id(t))
		}
		require.NoError(t, err)
	})
}
