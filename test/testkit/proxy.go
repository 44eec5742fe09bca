package testkit

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/pointsman/pointsman/pkg/ledger"
)

// Fault is what a proxy does to a submission.
type Fault struct {
	// Delay holds the request back before the engine gets it.
	Delay time.Duration
	// Drop closes the connection instead of asking the engine.
	Drop bool
	// DropAnswer lets the engine run the query and closes the connection instead of passing its answer on.
	DropAnswer bool
}

// Proxy stands in front of a pool's engine and counts the submissions that reach it, by attempt id. It is the engine's side of
// the story: a service that believes that it has submitted once can't hide a second time from it.
type Proxy struct {
	Name string
	srv  *httptest.Server

	mu      sync.Mutex
	reached map[string]int
	last    map[string]time.Time // when it reached the engine last
	arrived map[string]int
	fault   func(attemptID string, nth int) Fault
	dialled func()
}

// errDropped makes the proxy close the client's connection without an answer.
var errDropped = errors.New("dropped by the test")

type dropKey struct{}

// StartProxy starts a proxy in front of an engine. The engine need not be up: connections are then closed without an answer.
func StartProxy(t testing.TB, name, engine string) *Proxy {
	t.Helper()
	p := &Proxy{Name: name, reached: map[string]int{}, last: map[string]time.Time{}, arrived: map[string]int{}}
	dialer := &net.Dialer{Timeout: 2 * time.Second}
	target := &url.URL{Scheme: "http", Host: engine}
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target); r.Out.Host = engine },
		// One connection for each request: nothing is sent twice by the transport on its own account.
		Transport:     &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true, DisableCompression: true},
		FlushInterval: -1,
		ModifyResponse: func(r *http.Response) error {
			if r.Request.Context().Value(dropKey{}) != nil {
				return errDropped
			}
			return nil
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	p.srv = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.serve(forward, w, r) }))
	p.srv.Listener = watched{p.srv.Listener, p}
	p.srv.Start()
	t.Cleanup(func() {
		p.srv.CloseClientConnections()
		p.srv.Close()
	})
	return p
}

// Addr is where the proxy listens.
func (p *Proxy) Addr() string { return p.srv.Listener.Addr().String() }

// Break sets what happens to submissions from now on; nil lets all of them pass. nth counts the arrivals of the attempt.
func (p *Proxy) Break(fault func(attemptID string, nth int) Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = fault
}

// OnDial calls f with every connection that is opened from now on, as soon as it stands: whoever opened it has sent nothing yet, or
// little. nil ends that.
func (p *Proxy) OnDial(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dialled = f
}

// watched tells of connections as they are accepted.
type watched struct {
	net.Listener
	p *Proxy
}

// Accept implements net.Listener.
func (l watched) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	l.p.mu.Lock()
	dialled := l.p.dialled
	l.p.mu.Unlock()
	if err == nil && dialled != nil {
		dialled()
	}
	return conn, err
}

// Submissions is how often each attempt reached the engine.
func (p *Proxy) Submissions() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.reached)
}

// Last is when each attempt reached the engine last.
func (p *Proxy) Last() map[string]time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.last)
}

// Arrivals is how often each attempt reached the proxy, whether or not the engine got it.
func (p *Proxy) Arrivals() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.arrived)
}

func (p *Proxy) serve(forward http.Handler, w http.ResponseWriter, r *http.Request) {
	id := r.URL.Query().Get("query_id")
	if id == "" {
		id = r.Header.Get("X-ClickHouse-Query-Id")
	}
	if _, _, ok := ledger.SplitAttemptKey(id); !ok { // a look-up, a kill, a canary
		forward.ServeHTTP(w, r)
		return
	}
	p.mu.Lock()
	p.arrived[id]++
	var f Fault
	if p.fault != nil {
		f = p.fault(id, p.arrived[id])
	}
	p.mu.Unlock()
	if f.Delay > 0 {
		select {
		case <-time.After(f.Delay):
		case <-r.Context().Done():
			panic(http.ErrAbortHandler)
		}
	}
	if f.Drop {
		panic(http.ErrAbortHandler)
	}
	ctx := httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{WroteHeaders: func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.reached[id]++
		p.last[id] = time.Now()
	}})
	if f.DropAnswer {
		ctx = context.WithValue(ctx, dropKey{}, true)
	}
	forward.ServeHTTP(w, r.WithContext(ctx))
}
