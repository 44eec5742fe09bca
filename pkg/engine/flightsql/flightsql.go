// Package flightsql runs attempts on servers that speak Arrow Flight SQL.
//
// A statement leaves once, on a connection of its own: a query by GetFlightInfo, whose endpoints are then read one after the other,
// and anything else by DoPut. The connection's guard lets no request of it begin past the guard of the claim. A run is stopped by
// CancelFlightInfo, whose answer is the server's word that it is over, and by dropping its stream.
//
// The protocol has no way to ask for a statement by a name of the client's. The attempt id goes along in a comment and in a header,
// and a server that knows the actions of this package's protocol.go can be asked by it. Of any other one a run is known only to the
// client that started it: whoever else asks is told that nothing is known, and a write is then not made again.
//
// What a status of gRPC means is pkg/failure's, what to do about it the executor's.
package flightsql

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/wire/http2"
	"github.com/pointsman/pointsman/pkg/engine/wire/secure"
)

// Kind is the engine kind that the adapter reports with its errors.
const Kind = "flightsql"

// Config says where a server is and how it is reached.
type Config struct {
	// Name is the cluster's name in decisions and signals.
	Name string
	// Addr is host:port of one server. A balancer must not lie between: a run is stopped only at the server that is asked.
	Addr string
	TLS  *tls.Config // nil is plain text
	// User and Password are exchanged for a token by a handshake. A password without a user is a token itself. Both are sent over
	// TLS only.
	User     string
	Password string
	// Database is that of queries that name none. It is sent in the header DatabaseHeader, whose default is "database": the protocol
	// has no field for it, and servers have different ones.
	Database       string
	DatabaseHeader string
	// Canary is a query that touches the server's storage. The default, SELECT 1, touches none.
	Canary      string
	DialTimeout time.Duration // default 5 s
}

const (
	defaultCanary         = "SELECT 1"
	defaultDatabaseHeader = "database"
	defaultDialTimeout    = 5 * time.Second
	// answerWithin is for calls that a server answers at once.
	answerWithin = 30 * time.Second
	// stopWithin bounds how long a stop waits for the server's word before the stream is dropped.
	stopWithin = 5 * time.Second
	// pingEvery finds out about connections that went dead without a word. Most servers hang up on a client that pings more often than
	// once in five minutes.
	pingEvery   = 6 * time.Minute
	pingsWithin = time.Minute
	// windowBytes is how much of a result is on its way to a reader that does not read.
	windowBytes = 1 << 20
)

// Engine is one server.
type Engine struct {
	cfg     Config
	control *http2.Control
	client  flight.Client   // of control
	life    context.Context // ends with Close; runs hang on it
	end     context.CancelCauseFunc
	group   sync.WaitGroup // of what is stopped in the background
	mine    sync.Map       // *rows that this client runs, by attempt id
	dialled atomic.Pointer[error]
	secure  *secure.Handshakes

	mu    sync.Mutex
	token string // the header of a login that the server has answered
}

var _ engine.Engine = (*Engine)(nil)

var errClosed = errors.New("the engine's client was closed")

// What Open refuses in what a configuration says.
var (
	ErrPassword = errors.New("a password or a token is sent over TLS only")
	ErrHeader   = errors.New("is no name of a header")
)

// Check says what is wrong with a configuration. It reaches nothing.
func (c Config) Check() error {
	switch {
	case c.Password != "" && c.TLS == nil:
		return ErrPassword
	case c.DatabaseHeader != "" && !headerName(c.DatabaseHeader):
		return fmt.Errorf("database-header %q %w", c.DatabaseHeader, ErrHeader)
	}
	return nil
}

// Open makes a client of a server. It does not dial yet: a server that is down is no error here.
func Open(cfg Config) (*Engine, error) {
	if err := cfg.Check(); err != nil {
		return nil, fmt.Errorf("opening cluster %s: %w", cfg.Name, err)
	}
	cfg.Canary = cmp.Or(cfg.Canary, defaultCanary)
	cfg.DatabaseHeader = cmp.Or(cfg.DatabaseHeader, defaultDatabaseHeader)
	if cfg.DialTimeout <= 0 {
		cfg.DialTimeout = defaultDialTimeout
	}
	e := &Engine{cfg: cfg, secure: secure.Credentials(cfg.TLS, "ca")}
	var err error
	e.control, err = http2.NewControl(e.secure, func(c credentials.TransportCredentials, o ...grpc.DialOption) (*grpc.ClientConn, error) {
		return e.dial(cfg.Addr, c, o...)
	})
	if err != nil {
		return nil, fmt.Errorf("opening cluster %s: %w", cfg.Name, err)
	}
	e.client = flight.NewClientFromConn(e.control, nil)
	e.life, e.end = context.WithCancelCause(context.Background())
	return e, nil
}

// Close drops what is open. Most servers end a query whose stream is dropped; one that does not is left to whoever finds it there.
func (e *Engine) Close() error {
	e.end(errClosed)
	e.group.Wait()
	return e.control.Close()
}

func (e *Engine) credentials() credentials.TransportCredentials { return e.secure }

// dial makes a connection that is made when it is first used, and made again when it breaks.
func (e *Engine) dial(addr string, creds credentials.TransportCredentials, more ...grpc.DialOption) (*grpc.ClientConn, error) {
	dialer := &net.Dialer{Timeout: e.cfg.DialTimeout}
	return grpc.NewClient("passthrough:///"+addr, append(more,
		grpc.WithTransportCredentials(creds),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, "tcp", addr)
			if addr == e.cfg.Addr {
				e.dialled.Store(&err) // a status has it as text only
			}
			return conn, err
		}),
		grpc.WithConnectParams(grpc.ConnectParams{
			MinConnectTimeout: e.cfg.DialTimeout,
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
		}),
		grpc.WithDisableRetry(), // what may be sent again is decided here
		grpc.WithDisableServiceConfig(),
		grpc.WithUserAgent("pointsman"),
		grpc.WithStatsHandler(trailers{}),
		grpc.WithStaticStreamWindowSize(windowBytes), grpc.WithStaticConnWindowSize(2*windowBytes),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32)), // a batch is as large as the server makes it
		grpc.WithIdleTimeout(0),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: pingEvery, Timeout: pingsWithin}),
	)...)
}
