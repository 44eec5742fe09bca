package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/wire"
)

// session is a connection for one attempt.
type session struct {
	engine *Engine
	pg     *pgconn.PgConn
	conn   *wire.Conn
	// stoppable says that the server may be told to stop what runs here. The driver does so by itself when a connection breaks:
	// right for a read, which is made again, and wrong for a write, which is left to end as it would.
	stoppable atomic.Bool
	// farewell is what a server said as a warning before it cut the connection without an error.
	farewell atomic.Pointer[pgconn.Notice]
	once     sync.Once
}

var _ wire.Session = (*session)(nil)

var errNotStopped = errors.New("a write is not stopped because its connection broke")

// dial makes a session on which nothing has run.
func (e *Engine) dial(ctx context.Context) (*session, error) {
	s := &session{engine: e}
	cfg := *e.conn
	dial := e.conn.DialFunc
	cfg.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if s.pg != nil && !s.stoppable.Load() {
			return nil, errNotStopped
		}
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		guarded := wire.Guard(conn)
		if s.pg == nil { // otherwise it carries the wish to stop
			s.conn = guarded
		}
		return guarded, nil
	}
	cfg.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		if strings.HasPrefix(n.Code, "57P") {
			s.farewell.Store(n)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, e.cfg.DialTimeout)
	defer cancel()
	pg, err := pgconn.ConnectConfig(ctx, &cfg)
	if err != nil {
		return nil, err
	}
	s.pg = pg
	e.open.Opened()
	e.learn(ctx, s)
	return s, nil
}

// The states of Engine.watchful.
const (
	watchUnknown int32 = iota
	watchYes
	watchNo
)

// learn asks once whether the server can notice, while a query runs, that its client has gone: from version 14 on, where its
// operating system tells.
func (e *Engine) learn(ctx context.Context, s *session) {
	if e.watchful.Load() != watchUnknown {
		return
	}
	r := s.pg.ExecParams(ctx, "SELECT set_config('client_connection_check_interval', '0', false), set_config('client_connection_check_interval', '1000', false), set_config('client_connection_check_interval', '0', false)", nil, nil, nil, nil).Read()
	state := watchYes
	if _, refused := errors.AsType[*pgconn.PgError](r.Err); refused {
		state = watchNo
	} else if r.Err != nil {
		return
	}
	e.watchful.Store(state)
}

// prepare makes a session the attempt's: one statement that sets everything and takes the attempt's lock.
func (s *session) prepare(ctx context.Context, q engine.Query) error {
	sql, params := s.engine.preparation(q)
	return wire.Lock(ctx, lockTries, lockWait, func() (bool, error) {
		r := s.pg.ExecParams(ctx, sql, params, nil, nil, nil).Read()
		if r.Err != nil {
			return false, r.Err
		}
		if len(r.Rows) != 1 || len(r.Rows[0]) == 0 {
			return false, errors.New("the server gave no answer to what a session is set up with")
		}
		row := r.Rows[0]
		if string(row[len(row)-1]) != "t" {
			return false, nil
		}
		s.stoppable.Store(q.ReadOnly)
		return true, nil
	})
}

const (
	lockTries = 25
	lockWait  = 40 * time.Millisecond
)

// preparation is the statement that makes a session the attempt's. What a resource profile sets comes behind the time zone, so
// that it may choose another one, and before all on which this adapter relies.
func (e *Engine) preparation(q engine.Query) (sql string, params [][]byte) {
	var b strings.Builder
	b.WriteString("SELECT ")
	set := func(name, value string) {
		params = append(params, []byte(name), []byte(value))
		fmt.Fprintf(&b, "set_config($%d, $%d, false), ", len(params)-1, len(params))
	}
	set("TimeZone", "UTC")
	for _, name := range slices.Sorted(maps.Keys(q.Settings)) {
		set(name, q.Settings[name])
	}
	if q.Database != "" {
		set("search_path", quoteIdent(q.Database))
	}
	if q.MaxExecution > 0 {
		set("statement_timeout", strconv.FormatInt(max(q.MaxExecution.Milliseconds(), 1), 10))
	}
	if q.ReadOnly {
		set("default_transaction_read_only", "on")
		if e.watchful.Load() == watchYes {
			set("client_connection_check_interval", "1000")
		}
	}
	set("DateStyle", "ISO")
	set("IntervalStyle", "postgres")
	set("bytea_output", "hex")
	set("extra_float_digits", "1")
	set("application_name", wire.Name(q.ID))
	params = append(params, []byte(strconv.FormatInt(wire.LockKey(q.ID), 10)))
	fmt.Fprintf(&b, "pg_try_advisory_lock($%d)", len(params))
	return b.String(), params
}

func quoteIdent(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

// Stop tells the server to stop what runs in the session. It needs none of the server's connections.
func (s *session) Stop(ctx context.Context) error {
	s.stoppable.Store(true)
	return s.pg.CancelRequest(ctx)
}

// Drop cuts the connection. What waits for the server returns.
func (s *session) Drop() { _ = s.conn.Close() }

// Close ends the session, in the background: nobody has to wait for it.
func (s *session) Close() {
	s.once.Do(func() {
		go func() {
			defer s.engine.open.Closed()
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			defer context.AfterFunc(s.engine.life, s.Drop)()
			_ = s.pg.Close(ctx) // it is closed in any case
			select {
			case <-s.pg.CleanupDone(): // the driver may be telling the server to stop
			case <-s.engine.life.Done():
				s.Drop()
				<-s.pg.CleanupDone()
			}
		}()
	})
}
