package http2

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
)

// silentFor is the least time after which a call that was given up without a byte of an answer says something of its connection.
const silentFor = 2 * time.Second

// Dial makes a connection that is made when it is first used.
type Dial func(credentials.TransportCredentials, ...grpc.DialOption) (*grpc.ClientConn, error)

// Control is for calls that are answered soon. A network that drops what it carries tells nobody, and a connection that was lost
// like this would be waited on for as long as the kernel repeats itself. Pings would tell, but servers close the connection of a
// client that sends them as often as needed. So a connection on which nothing at all has come while a call waited for its answer
// until it was given up is left, and the next calls go over another one. So is one that could not be made again a while ago: else calls
// would be refused by what was, until its back-off is over.
type Control struct {
	dial  Dial
	creds credentials.TransportCredentials
	began time.Time

	mu     sync.Mutex
	closed bool
	dead   time.Time // when a connection was last left because nothing came
	line   *line
	lines  map[*line]struct{} // those that are open
}

// NewControl makes one. It does not dial yet.
func NewControl(creds credentials.TransportCredentials, dial Dial) (*Control, error) {
	c := &Control{dial: dial, creds: creds, began: time.Now(), lines: map[*line]struct{}{}}
	return c, c.renew()
}

// line is one connection.
type line struct {
	control *Control
	conn    *grpc.ClientConn
	heard   atomic.Int64 // when something has come last, since the control's beginning
	calls   int
}

// renew makes the next calls go over a new connection.
func (c *Control) renew() error {
	l := &line{control: c}
	conn, err := c.dial(Above(c.creds, l.listen), grpc.WithStatsHandler(l))
	if err != nil {
		return err
	}
	l.conn, c.line = conn, l
	c.lines[l] = struct{}{}
	return nil
}

// call holds the connection of a call open.
type call struct {
	line *line
	once sync.Once
}

type callKey struct{}

func (c *Control) begin(ctx context.Context) (context.Context, *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.line.conn.GetState() == connectivity.TransientFailure {
		c.leave(c.line)
	}
	c.line.calls++
	k := &call{line: c.line}
	return context.WithValue(ctx, callKey{}, k), k
}

func (k *call) end() {
	k.once.Do(func() {
		c := k.line.control
		c.mu.Lock()
		k.line.calls--
		done := c.done(k.line)
		c.mu.Unlock()
		if done {
			_ = k.line.conn.Close()
		}
	})
}

// done takes a connection off those that are open once it was left and nothing needs it any more.
func (c *Control) done(l *line) bool {
	if _, open := c.lines[l]; !open || l == c.line || l.calls > 0 {
		return false
	}
	delete(c.lines, l)
	return true
}

// leave renews the connection unless somebody has done so before.
func (c *Control) leave(l *line) {
	if c.line != l || c.closed {
		return
	}
	_ = c.renew() // what could be configured once can be configured again
	if c.done(l) {
		_ = l.conn.Close()
	}
}

// Silent says that nothing has come since a moment over the connection that calls went over then.
func (c *Control) Silent(since time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dead.After(since) || c.line.silent(since)
}

func (l *line) silent(since time.Time) bool {
	return l.heard.Load() < int64(since.Sub(l.control.began))
}

// Invoke makes a call.
func (c *Control) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	ctx, k := c.begin(ctx)
	defer k.end()
	return k.line.conn.Invoke(ctx, method, args, reply, opts...)
}

// NewStream begins a call with many messages. Its context must end, or the stream be read to its end.
func (c *Control) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	ctx, k := c.begin(ctx)
	stream, err := k.line.conn.NewStream(ctx, desc, method, opts...)
	if err != nil {
		k.end()
	}
	return stream, err
}

// Close closes all connections.
func (c *Control) Close() error {
	c.mu.Lock()
	c.closed = true
	lines := c.lines
	c.lines = map[*line]struct{}{}
	c.mu.Unlock()
	var err error
	for l := range lines {
		err = l.conn.Close()
	}
	return err
}

// listen notes when something comes.
func (l *line) listen(conn net.Conn) net.Conn { return &heard{conn, l} }

type heard struct {
	net.Conn
	line *line
}

// Read reads, and notes that something has come.
func (h *heard) Read(p []byte) (int, error) {
	n, err := h.Conn.Read(p)
	if n > 0 {
		h.line.heard.Store(int64(time.Since(h.line.control.began)))
	}
	return n, err
}

// TagRPC leaves the context as it is.
func (l *line) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC sees calls end.
func (l *line) HandleRPC(ctx context.Context, s stats.RPCStats) {
	end, ok := s.(*stats.End)
	if !ok {
		return
	}
	if k, ours := ctx.Value(callKey{}).(*call); ours {
		defer k.end()
	}
	if code := status.Code(end.Error); code != codes.DeadlineExceeded && code != codes.Canceled {
		return
	}
	if end.EndTime.Sub(end.BeginTime) >= silentFor && l.silent(end.BeginTime) {
		l.control.mu.Lock()
		defer l.control.mu.Unlock()
		if l.control.line == l {
			l.control.dead = time.Now()
		}
		l.control.leave(l)
	}
}

// TagConn leaves the context as it is.
func (l *line) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn does nothing.
func (l *line) HandleConn(context.Context, stats.ConnStats) {}

var _ grpc.ClientConnInterface = (*Control)(nil)
