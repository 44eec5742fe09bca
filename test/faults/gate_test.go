package faults_test

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// gate stands between one executor process and an engine. It counts what leaves, holds answers back, and does to connections what
// networks do. Attempts and statements are found by texts that every engine is sent as they are.
type gate struct {
	addr, target string
	wire         *wire
	requests     func() requests // of one connection
	whole        bool            // an answer comes over other connections than its statement went

	mu     sync.Mutex
	wake   *sync.Cond
	listen net.Listener
	links  map[*link]struct{}
	fault  fault // of connections from now on
	noise  []byte
	task   string
	fetch  bool          // it is not the statement that the task is known by, but the request for its rows
	credit int           // bytes of the answer to the task's statement that still come through; below 0 all
	hit    chan struct{} // closed when the task's statement has come by
	spent  chan struct{} // closed when the credit is used up
	frozen bool
	dead   bool
	group  sync.WaitGroup
}

// link is one connection.
type link struct {
	client, server net.Conn
	task           string // whose statement it carried last
	marked         bool   // it carried what the gate waits for
	hung, slow     bool
	struck         bool // nothing good comes of it any more
}

func newGate(t testing.TB, e *target, w *wire, whole bool) *gate {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	g := &gate{addr: l.Addr().String(), target: e.addr, wire: w, requests: e.requests, whole: whole, listen: l, links: map[*link]struct{}{}, credit: -1}
	if g.requests == nil {
		g.requests = func() requests { return &texts{} }
	}
	g.wake = sync.NewCond(&g.mu)
	g.group.Go(func() { g.accept(l) })
	return g
}

// hold lets only so many bytes of the answer to a task's statement through, or of the answer to the request for its rows. hit is
// closed when that comes by, spent when the bytes have gone.
func (g *gate) hold(task string, fetch bool, credit int) (hit, spent <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.task, g.fetch, g.credit, g.hit, g.spent = task, fetch, credit, make(chan struct{}), make(chan struct{})
	if credit == 0 {
		close(g.spent)
	}
	return g.hit, g.spent
}

// limit changes the bytes that still come through.
func (g *gate) limit(credit int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.credit = credit
	g.wake.Broadcast()
}

// strike does a fault to all connections, and to those that are made until heal.
func (g *gate) strike(f fault, noise []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fault, g.noise = f, noise
	switch f {
	case refused:
		_ = g.listen.Close()
		g.each(func(k *link) { k.close(false) })
	case closed:
		g.fault = ""
		g.each(func(k *link) { k.close(false) })
	case reset:
		g.each(func(k *link) { k.close(true) })
	case hang:
		g.each(func(k *link) { k.hung, k.struck = true, true })
	case garbage:
		g.each(func(k *link) {
			k.struck = true
			_ = k.client.SetWriteDeadline(time.Now().Add(time.Second))
			_, _ = k.client.Write(g.noise) // between two pieces of what the engine says
			_ = k.client.SetWriteDeadline(time.Time{})
		})
	case slow:
		g.each(func(k *link) { k.slow = true })
	default:
		panic("no fault of a network: " + string(f))
	}
	g.wake.Broadcast()
}

// heal ends a fault. What hangs goes on hanging: nobody ever tells a client that its peer has gone.
func (g *gate) heal() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.fault == refused && !g.dead {
		for {
			l, err := net.Listen("tcp", g.addr)
			if err == nil {
				g.listen = l
				g.group.Go(func() { g.accept(l) })
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	g.fault = ""
	g.each(func(k *link) { k.slow = false })
	g.wake.Broadcast()
}

// freeze is what a process that stands still is to the engine: nothing is read and nothing is sent until it thaws.
func (g *gate) freeze(on bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.frozen = on
	g.wake.Broadcast()
}

// kill is what the end of the process is to the engine.
func (g *gate) kill() {
	g.mu.Lock()
	g.dead, g.frozen = true, false
	_ = g.listen.Close()
	g.each(func(k *link) { k.close(false) })
	g.wake.Broadcast()
	g.mu.Unlock()
}

func (g *gate) each(do func(*link)) {
	for k := range g.links {
		do(k)
	}
}

func (k *link) close(hard bool) {
	if c, ok := k.client.(*net.TCPConn); ok && hard {
		_ = c.SetLinger(0)
	}
	_ = k.client.Close()
	if k.server != nil {
		_ = k.server.Close()
	}
}

func (g *gate) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		g.group.Go(func() { g.carry(c) })
	}
}

// carry carries one connection.
func (g *gate) carry(client net.Conn) {
	k := &link{client: client}
	g.mu.Lock()
	f := g.fault
	if g.dead || f == refused || f == reset {
		g.mu.Unlock()
		k.close(f == reset)
		return
	}
	k.hung, k.slow, k.struck = f == hang, f == slow, f == hang || f == garbage
	said := g.noise
	g.links[k] = struct{}{}
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		delete(g.links, k)
		k.close(false)
		g.wake.Broadcast()
		g.mu.Unlock()
	}()
	if f == garbage {
		_, _ = client.Write(said)
	}
	server, err := net.DialTimeout("tcp", g.target, 2*time.Second)
	if err != nil {
		return
	}
	g.mu.Lock()
	k.server = server
	over := g.dead
	g.mu.Unlock()
	if over {
		return
	}
	if c, ok := client.(*net.TCPConn); ok {
		_ = c.SetWriteBuffer(64 << 10) // what is held back must not be in buffers already
	}
	g.group.Go(func() {
		g.answers(k)
		k.close(false)
	})
	reader := g.requests()
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		if n > 0 {
			if !g.pass(k) {
				return
			}
			for _, s := range reader.read(buf[:n]) {
				if !s.fetch {
					g.wire.count(s)
				}
				g.saw(k, s)
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

// pass waits while nothing moves. false means that the connection is over.
func (g *gate) pass(k *link) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for {
		if _, open := g.links[k]; !open || g.dead {
			return false
		}
		if !g.frozen && !k.hung {
			return true
		}
		g.wake.Wait()
	}
}

func (g *gate) saw(k *link, s statement) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !s.fetch {
		k.task = s.task
	}
	if g.task == k.task && g.fetch == s.fetch && g.hit != nil && !k.marked {
		k.marked = true
		select {
		case <-g.hit:
		default:
			close(g.hit)
		}
	}
}

// answers carries what comes from the engine.
func (g *gate) answers(k *link) {
	buf := make([]byte, 16<<10)
	for {
		n, err := k.server.Read(buf)
		for left := buf[:n]; len(left) > 0; {
			m, trickle := g.take(k, len(left))
			if m == 0 {
				return
			}
			if _, err := k.client.Write(left[:m]); err != nil {
				return
			}
			left = left[m:]
			if trickle {
				time.Sleep(5 * time.Millisecond)
			}
		}
		if err != nil {
			return
		}
	}
}

// take says how many of n bytes may go on now; 0 means that the connection is over.
func (g *gate) take(k *link, n int) (may int, trickle bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for {
		if _, open := g.links[k]; !open || g.dead {
			return 0, false
		}
		metered := g.credit >= 0 && (k.marked || g.whole && g.hit != nil && isClosed(g.hit))
		if g.frozen || k.hung || metered && g.credit == 0 {
			g.wake.Wait()
			continue
		}
		if k.slow {
			n = min(n, 512)
		}
		if metered {
			n = min(n, g.credit)
			g.credit -= n
			if g.credit == 0 && !isClosed(g.spent) {
				close(g.spent)
			}
		}
		return n, k.slow
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// noise is no protocol's. Read as one it announces more bytes than ever come, so that only a bound ends the wait for them.
var noise = func() []byte {
	out := make([]byte, 4096)
	for i := range out {
		out[i] = byte(i*i*7 + i)
	}
	return out
}()

// zeros announce nothing, where something has to come.
var zeros = make([]byte, 64)

// settle ends what hangs on, once nobody waits for it.
func (g *gate) settle() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.task, g.credit = "", -1
	g.each(func(k *link) {
		if k.struck {
			k.close(false)
		}
	})
	g.wake.Broadcast()
}
