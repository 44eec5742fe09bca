// Package trino runs attempts on Trino clusters, over Trino's REST protocol.
//
// The attempt id is the trace token and a client tag of its query, so that any process can find and kill a run; Trino itself
// names queries as it likes. A query that was posted does not start before its first page is asked for: only that request
// bears the guard of the claim, and whatever is lost before it is safe to repeat. Queries are read to their end or killed,
// since one whose pages nobody reads holds its place in the cluster until the server gives it up.
//
// The public Go driver (trino-go-client) is not used. It makes the POST and the first page one call and repeats both as it
// sees fit, so that neither the guard could be kept nor said how far a submission came; it gives up more of a value than it
// has to (row fields without names, fractions of a second beyond the ninth digit); and looking up, killing with proof and
// resource groups are REST calls with it too. What an error code means is pkg/failure's, what to do about it the executor's.
package trino

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/wire"
	"github.com/pointsman/pointsman/pkg/engine/wire/secure"
)

// Kind is the engine kind that the adapter reports with its errors.
const Kind = "trino"

// Config says where a cluster is and how it is reached.
type Config struct {
	// Name is the cluster's name in decisions and signals.
	Name string
	// URL is the coordinator's, http://host:8080 or https://host:8443.
	URL string
	TLS *tls.Config // nil is Go's default
	// User runs the queries; only its own are sure to be seen by a look-up. A password is sent over https only.
	User     string
	Password string
	// Database is catalog, or catalog.schema, of queries that name none.
	Database string
	// Source and ClientTags choose the resource group, together with the user. The default source is pointsman.
	Source     string
	ClientTags []string
	// ResourceGroup is the group to observe, such as global.etl. When empty it is the one that the server puts the canary in.
	ResourceGroup string
	// Canary is a statement that touches the cluster's storage. The default, SELECT 1, needs a worker but no storage.
	Canary      string
	DialTimeout time.Duration // default 5 s
	// RetryFor is how long a page that can't be had is asked for again; default 30 s. Asking again is harmless.
	RetryFor time.Duration
}

const (
	defaultSource      = "pointsman"
	defaultDialTimeout = 5 * time.Second
	defaultRetryFor    = 30 * time.Second
	// idleFor is well below the keep-alive of a Trino server (30 s).
	idleFor = 10 * time.Second
	// answerWithin is for the headers of an answer: the server answers each request within a second or two, whatever its
	// query does.
	answerWithin = 30 * time.Second
	// pageWithin bounds a whole page, which may be large.
	pageWithin = 5 * time.Minute
	// stopWithin bounds how long a stop waits for the server's word that the query is gone.
	stopWithin = 5 * time.Second
	// startFor is how long the first page is asked for again when the submission has no guard of its own.
	startFor = 5 * time.Second
	// refusedFor is how long a page is asked for again where nobody listens.
	refusedFor = 2 * time.Second
)

// Engine is one Trino cluster.
type Engine struct {
	cfg    Config
	base   *url.URL
	client *http.Client
	life   context.Context // ends with Close; queries hang on it, so that Close drops them without killing them
	end    context.CancelCauseFunc
	mine   sync.Map                 // Trino's ids of the queries that run through this client, by attempt id
	group  atomic.Pointer[[]string] // the resource group that the canary was in
}

var _ engine.Engine = (*Engine)(nil)

var errClosed = errors.New("the engine's client was closed")

// What Open refuses in what a configuration says.
var (
	ErrUser     = errors.New("a user is missing, and Trino wants one")
	ErrPassword = errors.New("a password is sent over https only")
)

// Check says what is wrong with who the queries are to run as. It reaches nothing.
func (c Config) Check() error {
	switch {
	case c.User == "":
		return ErrUser
	case c.Password != "" && !strings.HasPrefix(c.URL, "https://"):
		return ErrPassword
	}
	return nil
}

// Open makes a client of a cluster. It does not dial yet: a cluster that is down is no error here.
func Open(cfg Config) (*Engine, error) {
	base, err := url.Parse(cfg.URL)
	switch {
	case err != nil:
		return nil, fmt.Errorf("opening cluster %s: the url is none", cfg.Name) // it may hold a password
	case base.Scheme != "http" && base.Scheme != "https", base.Host == "", strings.Trim(base.Path, "/") != "", base.User != nil, base.RawQuery != "":
		return nil, fmt.Errorf("opening cluster %s: the url must be http://host:8080 or https://host:8443, without a user and a path", cfg.Name)
	}
	if err := cfg.Check(); err != nil {
		return nil, fmt.Errorf("opening cluster %s: %w", cfg.Name, err)
	}
	if cfg.Source == "" {
		cfg.Source = defaultSource
	}
	if cfg.Canary == "" {
		cfg.Canary = "SELECT 1"
	}
	if cfg.DialTimeout <= 0 {
		cfg.DialTimeout = defaultDialTimeout
	}
	if cfg.RetryFor <= 0 {
		cfg.RetryFor = defaultRetryFor
	}
	dialer := &net.Dialer{Timeout: cfg.DialTimeout}
	e := &Engine{cfg: cfg, base: &url.URL{Scheme: base.Scheme, Host: base.Host}}
	e.client = &http.Client{
		Transport: transport{&http.Transport{
			DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := dialer.DialContext(ctx, network, addr)
				if err != nil {
					return nil, err
				}
				if base.Scheme == "http" {
					conn = secure.Plain(conn)
				}
				return wire.Guard(conn), nil
			},
			TLSClientConfig:       cfg.TLS,
			TLSHandshakeTimeout:   cfg.DialTimeout,
			ResponseHeaderTimeout: answerWithin,
			IdleConnTimeout:       idleFor,
			MaxIdleConnsPerHost:   16,
			DisableCompression:    true, // the coordinator is near, and its processors are dearer than the network
		}},
		// A redirect would carry the credentials elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	e.life, e.end = context.WithCancelCause(context.Background())
	return e, nil
}

// Close drops what is open. Queries that run are left to the server and to whoever finds them there.
func (e *Engine) Close() error {
	e.end(errClosed)
	e.client.CloseIdleConnections()
	return nil
}
