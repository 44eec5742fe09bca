// Package clickhouse runs attempts on ClickHouse servers, over HTTP or the native protocol.
//
// The attempt id is the query id, so that any process can find and kill a run. A submission is checked against the guard of
// its claim as the last thing before its first byte leaves, and the adapter knows whether a byte of it has left. Queries and
// control statements (kill, look-up, canary, load) use connections of their own, so that a full lane of queries never keeps
// one from being killed. What an error code means is pkg/failure's, what to do about it the executor's.
package clickhouse

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/wire/secure"
)

// Kind is the engine kind that the adapter reports with its errors.
const Kind = "clickhouse"

// The protocols.
const (
	HTTP   = "http"
	Native = "native"
)

// Config says where a cluster is and how it is reached.
type Config struct {
	// Name is the cluster's name in decisions and signals.
	Name string
	// Addrs holds one host:port, and one server must be behind it, with no load balancer between: a query is looked up and
	// killed only on the server that is asked, so of several servers the wrong one may be asked, and a query that runs be
	// taken for gone. Each server is an engine with a name of its own.
	Addrs    []string
	Protocol string // HTTP or Native; empty means HTTP
	TLS      *tls.Config
	User     string
	Password string
	Database string // of queries that name none
	// Queries is the most queries that run at once; the control lane has connections besides.
	Queries     int
	DialTimeout time.Duration // default 5 s
	// Canary is a statement that touches the engine's storage. The default, SELECT 1, touches none.
	Canary string
}

const (
	defaultQueries     = 16
	defaultDialTimeout = 5 * time.Second
	controlConns       = 4
	// idleFor is below the shortest keep-alive of a ClickHouse server (3 s): a connection that the server closes just as a
	// query is sent on it leaves the query in doubt.
	idleFor = 2 * time.Second
	// answerWithin is no limit on a query: over HTTP its first byte may come when it is all but finished. Limits are set by
	// max_execution_time; dead peers are found by TCP keep-alive.
	answerWithin = 7 * 24 * time.Hour
	// stopWithin bounds how long a stop waits for the engine's own word before the connection is dropped.
	stopWithin = 5 * time.Second
)

// Engine is one ClickHouse cluster.
type Engine struct {
	cfg     Config
	control driver.Conn
	life    context.Context // ends with Close; queries hang on it, so that Close drops them without killing them
	end     context.CancelCauseFunc
	flat    atomic.Pointer[bool] // see flattens; nil until the server was reached

	mu      sync.Mutex
	queries driver.Conn // HTTP only; a native submission dials its own
}

var _ engine.Engine = (*Engine)(nil)

// ErrSeveralAddrs refuses what no look-up could be believed of.
var ErrSeveralAddrs = errors.New("more than one address: name each host as an engine of its own, since a query can be looked up and killed only on the server that runs it")

var errClosed = errors.New("the engine's client was closed")

// Open makes a client of a cluster. It does not dial yet: a cluster that is down is no error here.
func Open(cfg Config) (*Engine, error) {
	switch cfg.Protocol {
	case "":
		cfg.Protocol = HTTP
	case HTTP, Native:
	default:
		return nil, fmt.Errorf("opening cluster %s: protocol %q is neither http nor native", cfg.Name, cfg.Protocol)
	}
	if len(cfg.Addrs) == 0 {
		return nil, fmt.Errorf("opening cluster %s: no address", cfg.Name)
	}
	if len(cfg.Addrs) > 1 {
		return nil, fmt.Errorf("opening cluster %s: %w", cfg.Name, ErrSeveralAddrs)
	}
	if cfg.Queries <= 0 {
		cfg.Queries = defaultQueries
	}
	if cfg.DialTimeout <= 0 {
		cfg.DialTimeout = defaultDialTimeout
	}
	if cfg.Canary == "" {
		cfg.Canary = "SELECT 1"
	}
	e := &Engine{cfg: cfg}
	var err error
	if e.control, err = driver.Open(e.options(controlConns, cfg.Database, nil)); err != nil {
		return nil, fmt.Errorf("opening cluster %s: %w", cfg.Name, err)
	}
	if cfg.Protocol == HTTP {
		if e.queries, err = driver.Open(e.options(cfg.Queries, cfg.Database, nil)); err != nil {
			return nil, errors.Join(fmt.Errorf("opening cluster %s: %w", cfg.Name, err), e.control.Close())
		}
	}
	e.life, e.end = context.WithCancelCause(context.Background())
	return e, nil
}

// Close drops what is open. Queries that run are left to the engine and to whoever finds them there.
func (e *Engine) Close() error {
	e.end(errClosed)
	err := e.control.Close()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.queries != nil {
		err = errors.Join(err, e.queries.Close())
	}
	return err
}

// options are those of one driver pool. A native submission hands in its own, and its connection carries its guard.
func (e *Engine) options(conns int, database string, sub *submission) *driver.Options {
	o := &driver.Options{
		Protocol:    driver.HTTP,
		Addr:        e.cfg.Addrs,
		Auth:        driver.Auth{Database: database, Username: e.cfg.User, Password: e.cfg.Password},
		TLS:         e.cfg.TLS,
		DialTimeout: e.cfg.DialTimeout,
		ReadTimeout: answerWithin,
		// Compressed blocks carry checksums. What comes without them the driver decodes as it is, and lengths that are none make it
		// panic on a goroutine of its own.
		Compression:  &driver.Compression{Method: driver.CompressionLZ4},
		MaxOpenConns: conns,
		MaxIdleConns: conns,
		// The hello of a new connection must not carry the query's id, settings and guard.
		DialStrategy: func(ctx context.Context, id int, opt *driver.Options, dial driver.Dial) (driver.DialResult, error) {
			hello, cancel := context.WithTimeout(e.life, opt.DialTimeout)
			defer cancel()
			defer context.AfterFunc(ctx, cancel)()
			return driver.DefaultDialStrategy(hello, id, opt, dial)
		},
		TransportFunc: func(t *http.Transport) (http.RoundTripper, error) {
			t.IdleConnTimeout = idleFor
			return transport{t}, nil
		},
	}
	if e.cfg.Protocol == Native {
		o.Protocol = driver.Native
	}
	dialer := &net.Dialer{Timeout: e.cfg.DialTimeout}
	o.DialContext = func(ctx context.Context, addr string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, "tcp", addr)
		if err != nil {
			return nil, err
		}
		if e.cfg.TLS == nil {
			conn = secure.Plain(conn)
		}
		guarded := &guardedConn{Conn: conn}
		if sub != nil {
			sub.dialled(guarded)
		}
		switch {
		case e.cfg.Protocol == HTTP: // the transport does TLS
			return guarded, nil
		case e.cfg.TLS != nil:
			return streamConn{tls.Client(guarded, e.cfg.TLS)}, nil
		default:
			return streamConn{guarded}, nil
		}
	}
	return o
}
