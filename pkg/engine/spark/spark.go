// Package spark runs attempts on Apache Spark, over Spark Connect's gRPC protocol.
//
// An attempt is one operation in a session of its own. The ids of both are made from the attempt id, so any process can find a run,
// follow it and stop it. The session keeps one attempt's settings, schema and temporary views from the next, and it is the fence: once
// it was closed, the server starts nothing in it any more, not even what is still on its way.
//
// Operations can be attached to again, so a connection that breaks loses no rows and repeats none. The end of a stream is not that of
// its operation, and the end of a context stops nothing at the server: what is not wanted any more is interrupted, followed to its
// end, and its session closed. What an error class means is pkg/failure's, what to do about it the executor's.
package spark

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/spark/connect"
	"github.com/pointsman/pointsman/pkg/engine/wire/http2"
	"github.com/pointsman/pointsman/pkg/engine/wire/secure"
)

// Kind is the engine kind that the adapter reports with its errors.
const Kind = "spark"

// Config says where a server is and how it is reached.
type Config struct {
	// Name is the cluster's name in decisions and signals.
	Name string
	// Addr is the server's, host:15002.
	Addr string
	TLS  *tls.Config // nil is plain text
	// User is whom the sessions belong to; only a client with the same one finds a run. The default is pointsman.
	User string
	// Token is the pre-shared key of the server (spark.connect.authenticate.token). It is sent over TLS only.
	Token string
	// Database is the schema, or catalog.schema, of queries that name none.
	Database string
	// Canary is a statement that touches the cluster's storage. The default needs an executor but no storage.
	Canary      string
	DialTimeout time.Duration // default 5 s
	// RetryFor is how long a run whose connection has broken is attached to again; default 30 s. It loses no rows.
	RetryFor time.Duration
}

const (
	defaultUser        = "pointsman"
	defaultCanary      = "SELECT count(*) FROM range(1)"
	defaultDialTimeout = 5 * time.Second
	defaultRetryFor    = 30 * time.Second
	// answerWithin is for calls that the server answers at once.
	answerWithin = 30 * time.Second
	// sessionWithin bounds how long a session is waited for on a connection on which nothing comes at all: nothing of the statement has
	// left, and it may go elsewhere.
	sessionWithin = 10 * time.Second
	// quietFor is how long a stream may be without a response at first before another one is taken, in case that its connection is
	// dead and nobody says so, and mostQuiet at last: the server ends each one after two minutes by itself.
	quietFor  = 10 * time.Second
	mostQuiet = 150 * time.Second
	// knockWithin bounds a question that only tells whether a connection is dead.
	knockWithin = 3 * time.Second
	// stopWithin bounds how long a stop waits for the server's word that the operation is over.
	stopWithin = 5 * time.Second
	// clientType is what the server's log calls us.
	clientType = "pointsman"
	// windowBytes is how much of a result is on its way to a reader that does not read.
	windowBytes = 1 << 20
)

// Engine is one server.
type Engine struct {
	cfg     Config
	control *http2.Control
	life    context.Context // ends with Close; what runs hangs on it, so that Close drops it without stopping it
	end     context.CancelCauseFunc
	group   sync.WaitGroup // of what is let go in the background
	mine    sync.Map       // *rows that this client reads, by attempt id
	watched watches        // runs of other clients that were asked for here
	secure  *secure.Handshakes

	mu     sync.Mutex
	health string // a session for questions about the server itself
}

var _ engine.Engine = (*Engine)(nil)

var errClosed = errors.New("the engine's client was closed")

// ErrToken refuses to send a token in the clear.
var ErrToken = errors.New("a token is sent over TLS only")

// Check says what is wrong with a configuration. It reaches nothing.
func (c Config) Check() error {
	if c.Token != "" && c.TLS == nil {
		return ErrToken
	}
	return nil
}

// Open makes a client of a server. It does not dial yet: a server that is down is no error here.
func Open(cfg Config) (*Engine, error) {
	if err := cfg.Check(); err != nil {
		return nil, fmt.Errorf("opening cluster %s: %w", cfg.Name, err)
	}
	cfg.User = cmp.Or(cfg.User, defaultUser)
	cfg.Canary = cmp.Or(cfg.Canary, defaultCanary)
	if cfg.DialTimeout <= 0 {
		cfg.DialTimeout = defaultDialTimeout
	}
	if cfg.RetryFor <= 0 {
		cfg.RetryFor = defaultRetryFor
	}
	e := &Engine{cfg: cfg, secure: secure.Credentials(cfg.TLS, "ca")}
	var err error
	if e.control, err = http2.NewControl(e.secure, e.dial); err != nil {
		return nil, fmt.Errorf("opening cluster %s: %w", cfg.Name, err)
	}
	e.life, e.end = context.WithCancelCause(context.Background())
	return e, nil
}

// Close drops what is open. Operations that run are left to the server and to whoever finds them there.
func (e *Engine) Close() error {
	e.end(errClosed)
	e.group.Wait()
	return e.control.Close()
}

// dial makes a connection that is made when it is first used, and made again when it breaks.
func (e *Engine) dial(creds credentials.TransportCredentials, more ...grpc.DialOption) (*grpc.ClientConn, error) {
	dialer := &net.Dialer{Timeout: e.cfg.DialTimeout}
	return grpc.NewClient("passthrough:///"+e.cfg.Addr, append(more,
		grpc.WithTransportCredentials(creds),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) { return dialer.DialContext(ctx, "tcp", addr) }),
		grpc.WithConnectParams(grpc.ConnectParams{
			MinConnectTimeout: e.cfg.DialTimeout,
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
		}),
		grpc.WithDisableRetry(), // what may be sent again is decided here
		grpc.WithDisableServiceConfig(),
		grpc.WithUserAgent(clientType),
		grpc.WithStaticStreamWindowSize(windowBytes), grpc.WithStaticConnWindowSize(2*windowBytes),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32)), // a batch has at least one row, however large
		grpc.WithIdleTimeout(0),
	)...)
}

func (e *Engine) client() connect.Client { return connect.Client{Conn: e.control} }

// asked is a context for a call that is answered at once; it ends with the client too.
func (e *Engine) asked(ctx context.Context, within time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(e.authorized(ctx), within)
	stop := context.AfterFunc(e.life, cancel)
	return ctx, func() { stop(); cancel() }
}

func (e *Engine) authorized(ctx context.Context) context.Context {
	if e.cfg.Token == "" {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+e.cfg.Token)
}

func (e *Engine) user() *connect.UserContext {
	return &connect.UserContext{UserId: e.cfg.User, UserName: e.cfg.User}
}
