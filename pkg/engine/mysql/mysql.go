// Package mysql runs attempts on servers that speak MySQL's protocol: MySQL, MariaDB, TiDB, Doris and StarRocks. What differs
// between them is in one table, flavours.
//
// Each attempt has a connection of its own that is closed behind it, so the number of a connection is the attempt's and a
// statement that is told to stop can be no other one. The attempt id leads the statement as a comment: the server's list of
// processes shows it to every process. A context that ends stops nothing at such a server, so KILL QUERY is always sent, over
// another connection.
//
// What an error code means is pkg/failure's, what to do about it the executor's.
package mysql

import (
	"context"
	"crypto/tls"
	"database/sql"
	"fmt"
	"sync/atomic"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/wire"
)

// Kind is the engine kind of the family. Errors carry the flavour, whose codes they are.
const Kind = "mysql"

// Config says where a server is and how it is reached.
type Config struct {
	// Name is the cluster's name in decisions and signals.
	Name string
	// Addr is host:port of one server: a statement is looked up and killed only at the server that is asked, so neither a proxy
	// nor a balancer may lie between. Of Doris and StarRocks it is one frontend.
	Addr string
	// Flavour is what kind of server it is; empty means that it is asked.
	Flavour  Flavour
	TLS      *tls.Config
	User     string
	Password string
	Database string // of queries that name none
	// WorkloadGroup is the group that queries run in, for flavours that have such groups.
	WorkloadGroup string
	DialTimeout   time.Duration // default 5 s
	// Spares is how many connections are kept ready for the next attempts; below 0 none, 0 means the default.
	Spares int
	// Canary is a statement that touches the server's storage. The default, SELECT 1, touches none.
	Canary string
}

const (
	defaultSpares      = 2
	defaultDialTimeout = 5 * time.Second
	spareAge           = time.Minute
	controlConns       = 4
	controlIdle        = 10 * time.Minute
)

// Engine is one server.
type Engine struct {
	cfg     Config
	conn    *driver.Config
	spares  *wire.Spares[*session]
	control *sql.DB
	flavour atomic.Pointer[traits] // once it is known
	life    context.Context        // ends with Close
	end     context.CancelCauseFunc
	open    wire.Count   // sessions
	kills   atomic.Int64 // that this client has sent, or is sending
}

var _ engine.Engine = (*Engine)(nil)

// Open makes a client of a server. It does not dial yet: a server that is down is no error here.
func Open(cfg Config) (*Engine, error) {
	if _, _, err := wire.HostPort(cfg.Addr); err != nil {
		return nil, fmt.Errorf("opening cluster %s: %w", cfg.Name, err)
	}
	if cfg.Flavour != "" && flavours[cfg.Flavour] == nil {
		return nil, fmt.Errorf("opening cluster %s: %q is none of the flavours %v", cfg.Name, cfg.Flavour, Flavours())
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
	e.flavour.Store(flavours[cfg.Flavour]) // nil while it is not known
	e.life, e.end = context.WithCancelCause(context.Background())
	e.conn = e.options()
	connector, err := driver.NewConnector(e.conn.Clone())
	if err != nil {
		return nil, fmt.Errorf("opening cluster %s: %w", cfg.Name, err)
	}
	e.control = sql.OpenDB(connector)
	e.control.SetMaxOpenConns(controlConns)
	e.control.SetMaxIdleConns(controlConns)
	e.control.SetConnMaxIdleTime(controlIdle)
	e.spares = wire.NewSpares(wire.SparesConfig[*session]{Dial: e.dial, Close: (*session).Close, Keep: max(cfg.Spares, 0), MaxAge: spareAge})
	return e, nil
}

// options are those of every connection.
func (e *Engine) options() *driver.Config {
	c := driver.NewConfig()
	c.Net, c.Addr = "tcp", e.cfg.Addr
	c.User, c.Passwd, c.DBName, c.TLS = e.cfg.User, e.cfg.Password, e.cfg.Database, e.cfg.TLS
	c.Timeout = e.cfg.DialTimeout
	c.Logger = &driver.NopLogger{} // what it would log, it also returns
	c.ConnectionAttributes = "program_name:pointsman"
	c.InterpolateParams = true // control statements; those of attempts have no parameters
	return c
}

// traits are those of the server. Until it was reached they are MySQL's.
func (e *Engine) traits() *traits {
	if t := e.flavour.Load(); t != nil {
		return t
	}
	return flavours[MySQL]
}

// Close drops what is open. Queries that run are left to the server and to whoever finds them there.
func (e *Engine) Close() error {
	e.end(wire.ErrClosed)
	e.spares.Close()
	err := e.control.Close()
	e.open.Wait()
	return err
}
