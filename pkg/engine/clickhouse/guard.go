package clickhouse

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pointsman/pointsman/pkg/engine"
)

// submission is what is known of one query on its way: whether a byte of it has left, or is leaving, and what the answer's
// headers said.
type submission struct {
	before  time.Time // SubmitBefore; zero means no bound
	sent    atomic.Bool
	expired atomic.Bool
	held    atomic.Bool
	answer  atomic.Pointer[http.Response]

	mu    sync.Mutex // native only, as is what follows
	conn  *guardedConn
	armed bool
}

// dialled notes the submission's own connection. One that is dialled once the guard is armed is guarded from its hello on.
func (s *submission) dialled(c *guardedConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conn = c
	if s.armed {
		c.serve(s)
	}
}

// arm makes the connection ask the submission from its next byte on.
func (s *submission) arm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed = true
	if s.conn != nil {
		s.conn.serve(s)
	}
}

// hold keeps from leaving what has not begun to leave. False means that it was too late for that.
func (s *submission) hold() bool {
	s.held.Store(true)
	return !s.sent.Load() // a write that begins now looks at held behind this
}

// late says that nothing may begin to leave any more.
func (s *submission) late(now time.Time) bool {
	if s.before.IsZero() || now.Before(s.before) {
		return false
	}
	s.expired.Store(true)
	return true
}

// header is a header of the answer; one that came behind the body counts before one that came in front of it. ok is false as
// long as there is no answer, and over the native protocol.
func (s *submission) header(name string) (value string, ok bool) {
	resp := s.answer.Load() //nolint:bodyclose // the driver closes it
	if resp == nil {
		return "", false
	}
	return cmp.Or(resp.Trailer.Get(name), resp.Header.Get(name)), true
}

type submissionKey struct{}

func withSubmission(ctx context.Context, s *submission) context.Context {
	return context.WithValue(ctx, submissionKey{}, s)
}

func submissionOf(ctx context.Context) *submission {
	s, _ := ctx.Value(submissionKey{}).(*submission)
	return s
}

// guardedConn asks the submission it serves before it writes. A check before the request is handed to the transport would
// not do: dialling, a TLS handshake or a stopped process may lie between.
type guardedConn struct {
	net.Conn
	serves atomic.Pointer[service]
}

// service is one connection's part in a submission. A connection that took nothing may be followed by another one.
type service struct {
	sub   *submission
	begun atomic.Bool // a byte has left here: what has begun must not be cut in two
}

func (c *guardedConn) serve(s *submission) { c.serves.Store(&service{sub: s}) }

// Write sends, unless the guard of the submission has run out before its first byte here.
func (c *guardedConn) Write(p []byte) (int, error) {
	v := c.serves.Load()
	if v == nil || v.begun.Load() {
		return c.Conn.Write(p)
	}
	if v.sub.late(time.Now()) {
		return 0, engine.ErrGuardExpired
	}
	if ended(c.Conn) {
		return 0, errEnded // the transport takes another connection for it
	}
	first := v.sub.sent.CompareAndSwap(false, true) // while it may be leaving it counts as sent
	if first && v.sub.held.Load() {
		v.sub.sent.Store(false)
		return 0, errHeld
	}
	n, err := c.Conn.Write(p)
	switch {
	case n > 0:
		v.begun.Store(true)
	case first:
		v.sub.sent.Store(false)
	}
	return n, err
}

// errHeld is the end of a submission that was stopped before it left.
var errHeld = errors.New("the query was stopped before it was sent")

// errEnded holds back what would be sent to a server that has hung up: it would be lost for sure, and nobody would know it.
var errEnded = errors.New("the server has closed the connection")

// streamConn tells the end of a connection from the end of a stream. The driver calls both io.EOF, and would take a statement whose answer
// never came for one without a result, and rows that were cut off for all of them.
type streamConn struct{ net.Conn }

// Read reads.
func (c streamConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	switch {
	case err == io.EOF: //nolint:errorlint // as it is, and as part of what is said about it
		err = io.ErrUnexpectedEOF
	case errors.Is(err, io.EOF):
		err = fmt.Errorf("%v: %w", err, io.ErrUnexpectedEOF) //nolint:errorlint // io.EOF must not be seen any more
	}
	return n, err
}

func guardOf(conn net.Conn) *guardedConn {
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	g, _ := conn.(*guardedConn)
	return g
}

// transport ties each request to its submission.
type transport struct{ base *http.Transport }

var errRedirect = errors.New("the address answers with a redirect; a query is not sent twice, so give the final address")

// RoundTrip sends one request once.
func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	s := submissionOf(req.Context())
	if s != nil {
		if s.late(time.Now()) {
			return nil, engine.ErrGuardExpired
		}
		req = req.WithContext(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
			GotConn: func(info httptrace.GotConnInfo) {
				if g := guardOf(info.Conn); g != nil {
					g.serve(s)
					return
				}
				s.sent.Store(true) // a connection that can't be watched counts as one that sends
			},
		}))
	}
	resp, err := t.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		_ = resp.Body.Close()
		return nil, fmt.Errorf("%w (status %d)", errRedirect, resp.StatusCode)
	}
	if s != nil {
		s.answer.Store(resp)
		if f := resp.Header.Get("X-ClickHouse-Format"); resp.StatusCode == http.StatusOK && f != "" && f != "Native" {
			_ = resp.Body.Close()
			return nil, &formatError{f}
		}
		if resp.StatusCode == http.StatusOK && resp.ContentLength != 0 {
			resp.Body = &headed{ReadCloser: resp.Body}
		}
	}
	return resp, nil
}

// formatError is a statement that chose its own output format, whose bytes this driver can't read.
type formatError struct{ format string }

// Error says what to change.
func (e *formatError) Error() string {
	return fmt.Sprintf("the statement asks for FORMAT %s; leave the FORMAT clause out, rows are delivered as JSON", e.format)
}
