// Package postgres runs attempts on PostgreSQL servers.
//
// Each attempt has a session of its own that is closed behind it, named for the attempt: pg_stat_activity shows it to every
// process under that name, a backend that is told to stop can be no other attempt's, and nothing that a statement leaves in its
// session reaches the next. A lock of the server keeps one attempt from running twice. A read runs in a read-only transaction,
// so a statement that was taken for a read by mistake fails and writes nothing.
//
// What an SQLSTATE means is pkg/failure's, what to do about it the executor's.
package postgres

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/wire"
)

// Kind is the engine kind that the adapter reports with its errors.
const Kind = "postgres"

// SSLModes are those of libpq.
var SSLModes = []string{"disable", "allow", "prefer", "require", "verify-ca", "verify-full"}

// Config says where a server is and how it is reached.
type Config struct {
	// Name is the cluster's name in decisions and signals.
	Name string
	// Addr is host:port of one server. A pooler that gives a statement another session than the one before must not lie between,
	// nor a balancer: a statement is looked up and stopped only at the server that is asked.
	Addr string
	// SSLMode and SSLRootCert are libpq's: disable, allow, prefer, require, verify-ca, verify-full. Empty means prefer.
	SSLMode     string
	SSLRootCert string
	User        string
	Password    string
	// Database is the one that is connected to. The schema of a query becomes the search_path.
	Database    string
	DialTimeout time.Duration // default 5 s
	// Spares is how many sessions are kept ready for the next attempts; below 0 none, 0 means the default.
	Spares int
	// Canary is a statement that touches the server's storage. The default, SELECT 1, touches none.
	Canary string
}

const (
	defaultSpares      = 2
	defaultDialTimeout = 5 * time.Second
	spareAge           = time.Minute
	controlConns       = 4
	controlName        = "pointsman"
)

// Engine is one PostgreSQL server.
type Engine struct {
	cfg      Config
	conn     *pgconn.Config
	spares   *wire.Spares[*session]
	control  *pgxpool.Pool
	kinds    sync.Map     // of columns, by OID: *kind
	watchful atomic.Int32 // whether the server can look whether its client is there
	life     context.Context
	end      context.CancelCauseFunc
	open     wire.Count // sessions
}

var _ engine.Engine = (*Engine)(nil)

// Open makes a client of a server. It does not dial yet: a server that is down is no error here.
func Open(cfg Config) (*Engine, error) {
	host, port, err := wire.HostPort(cfg.Addr)
	if err != nil {
		return nil, fmt.Errorf("opening cluster %s: %w", cfg.Name, err)
	}
	if cfg.DialTimeout <= 0 {
		cfg.DialTimeout = defaultDialTimeout
	}
	if cfg.Spares == 0 {
		cfg.Spares = defaultSpares
	}
	if cfg.Canary == "" {
		cfg.Canary = "SELECT 1"
	}
	e := &Engine{cfg: cfg}
	e.life, e.end = context.WithCancelCause(context.Background())
	pool, err := pgxpool.ParseConfig(cfg.keywords(host, port))
	if err != nil {
		return nil, fmt.Errorf("opening cluster %s: %w", cfg.Name, err)
	}
	// The environment and files of the user that runs this process have no say in it.
	pool.ConnConfig.Password = cfg.Password
	pool.ConnConfig.DialFunc = e.dialer(cfg.DialTimeout)
	pool.ConnConfig.RuntimeParams = map[string]string{"application_name": controlName}
	e.conn = &pool.ConnConfig.Config
	e.configurePool(pool)
	if e.control, err = pgxpool.NewWithConfig(e.life, pool); err != nil {
		return nil, fmt.Errorf("opening cluster %s: %w", cfg.Name, err)
	}
	e.spares = wire.NewSpares(wire.SparesConfig[*session]{Dial: e.dial, Close: (*session).Close, Keep: max(cfg.Spares, 0), MaxAge: spareAge})
	return e, nil
}

// keywords is the connection string without the password.
func (c Config) keywords(host, port string) string {
	words := []string{"host=" + quoteKeyword(host), "port=" + port}
	for name, value := range map[string]string{"user": c.User, "dbname": c.Database, "sslmode": c.SSLMode, "sslrootcert": c.SSLRootCert} {
		if value != "" {
			words = append(words, name+"="+quoteKeyword(value))
		}
	}
	return strings.Join(words, " ")
}

func quoteKeyword(s string) string {
	out := []byte{'\''}
	for i := range len(s) {
		if s[i] == '\'' || s[i] == '\\' {
			out = append(out, '\\')
		}
		out = append(out, s[i])
	}
	return string(append(out, '\''))
}

// dialer dials as long as the client is open: the driver tells a server to stop a query whose connection broke, and on Close
// queries are left to run.
func (e *Engine) dialer(timeout time.Duration) pgconn.DialFunc {
	d := &net.Dialer{Timeout: timeout}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if e.life.Err() != nil {
			return nil, wire.ErrClosed
		}
		return d.DialContext(ctx, network, addr)
	}
}

// Close drops what is open. Queries that run are left to the server and to whoever finds them there.
func (e *Engine) Close() error {
	e.end(wire.ErrClosed)
	e.spares.Close()
	e.control.Close()
	e.open.Wait()
	return nil
}
