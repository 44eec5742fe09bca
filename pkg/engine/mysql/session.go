package mysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/wire"
)

// session is a connection for one attempt.
type session struct {
	engine *Engine
	conn   driver.Conn
	wire   *wire.Conn
	reply  *replyConn
	id     uint64 // the server's number of the connection
	// attempt is whose session it is, once it is prepared.
	attempt string
	made    time.Time
	// local says that the session's time zone is one of the resource profile's, so that a TIMESTAMP is no instant that could be told.
	local bool
	once  sync.Once
}

var _ wire.Session = (*session)(nil)

// dial makes a session on which nothing has run.
func (e *Engine) dial(ctx context.Context) (*session, error) {
	s := &session{engine: e, made: time.Now()}
	cfg := e.conn.Clone()
	dialer := &net.Dialer{Timeout: e.cfg.DialTimeout}
	cfg.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		s.wire = wire.Guard(conn)
		s.reply = &replyConn{Conn: s.wire}
		return s.reply, nil
	}
	ctx, cancel := context.WithTimeout(ctx, e.cfg.DialTimeout)
	defer cancel()
	connector, err := mysqldriver.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	if s.conn, err = connect(ctx, connector); err != nil {
		return nil, err
	}
	e.open.Opened()
	row, err := s.ask(ctx, "SELECT CONNECTION_ID(), @@version, @@version_comment")
	if err == nil && len(row) == 3 {
		s.id, err = strconv.ParseUint(text(row[0]), 10, 64)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	if e.flavour.Load() == nil {
		e.flavour.Store(flavours[flavourOf(text(row[1]), text(row[2]))])
	}
	return s, nil
}

func connect(ctx context.Context, c driver.Connector) (conn driver.Conn, err error) {
	defer caught(&err)
	return c.Connect(ctx)
}

var errGarbage = errors.New("the server answers what is no MySQL protocol")

// caught turns a panic of the driver into an error: it trusts the lengths that a server gives.
func caught(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%w: %v", errGarbage, p)
	}
}

// query sends a statement as it is.
func (s *session) query(ctx context.Context, sql string) (rows driver.Rows, err error) {
	defer caught(&err)
	q, ok := s.conn.(driver.QueryerContext)
	if !ok {
		return nil, errors.New("the driver can't query")
	}
	if s.engine.cfg.TLS == nil {
		s.reply.expect()
	}
	rows, err = q.QueryContext(ctx, sql, nil)
	if err != nil && s.reply.refused.Load() {
		err = errColumns
	}
	return rows, err
}

// next reads a row.
func next(rows driver.Rows, dest []driver.Value) (err error) {
	defer caught(&err)
	return rows.Next(dest)
}

// shut ends a result. What a procedure's later results say is told here.
func shut(rows driver.Rows) (err error) {
	defer caught(&err)
	return rows.Close()
}

// ask gives the first row of a statement; no row for one without a result.
func (s *session) ask(ctx context.Context, sql string) ([]driver.Value, error) {
	rows, err := s.query(ctx, sql)
	if err != nil {
		return nil, err
	}
	row := make([]driver.Value, len(rows.Columns()))
	err = next(rows, row)
	for i, v := range row {
		row[i] = text(v) // its bytes are the driver's
	}
	if closed := shut(rows); err == nil {
		err = closed
	}
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	return row, err
}

func text(v driver.Value) string {
	if b, ok := v.([]byte); ok {
		return string(b)
	}
	return fmt.Sprint(v)
}

// prepare makes a session the attempt's.
func (s *session) prepare(ctx context.Context, q engine.Query) error {
	t := s.engine.traits()
	set, err := s.engine.variables(t, q)
	if err != nil {
		return err
	}
	for name := range q.Settings {
		s.local = s.local || strings.EqualFold(name, "time_zone")
	}
	if _, err := s.ask(ctx, set); err != nil {
		return err
	}
	if name := s.engine.group(q); name != "" && t.group != nil {
		if _, err := s.ask(ctx, t.group(name)); err != nil {
			return err
		}
	}
	if q.Database != "" {
		if _, err := s.ask(ctx, "USE "+t.quoteSchema(q.Database)); err != nil {
			return err
		}
	}
	return s.claim(ctx, t, q.ID)
}

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]*$`)

// variables is the statement that sets what the query runs with: the zone, what its resource profile asks for, and the limits.
func (e *Engine) variables(t *traits, q engine.Query) (string, error) {
	set := []string{"time_zone = '+00:00'"}
	for _, name := range slices.Sorted(maps.Keys(q.Settings)) {
		if t.group != nil && strings.EqualFold(name, groupSetting) {
			continue
		}
		if !variable.MatchString(name) {
			return "", &engine.Error{
				Engine: string(t.flavour), Code: "1193", Phase: engine.NotSent, Err: fmt.Errorf("%q can't be the name of a session variable", name),
			}
		}
		set = append(set, name+" = "+literal(q.Settings[name]))
	}
	if q.MaxMemoryBytes > 0 && t.memory != "" {
		set = append(set, t.memory+" = "+strconv.FormatInt(q.MaxMemoryBytes, 10))
	}
	if q.MaxExecution > 0 {
		set = append(set, t.limit+" = "+t.limitText(q.MaxExecution))
	}
	if q.ReadOnly && t.readOnly != "" {
		set = append(set, t.readOnly+" = 1")
	}
	return "SET " + strings.Join(set, ", "), nil
}

// groupSetting is the setting of a resource profile that names a workload group, for every flavour that has them.
const groupSetting = "workload_group"

// group is the workload group of a query: that of its resource profile, or of the cluster.
func (e *Engine) group(q engine.Query) string {
	for name, value := range q.Settings {
		if strings.EqualFold(name, groupSetting) {
			return value
		}
	}
	return e.cfg.WorkloadGroup
}

var number = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?$`)

// literal writes a value: a number as it is, all else as text.
func literal(s string) string {
	if number.MatchString(s) {
		return s
	}
	return quoteText(s)
}

func quoteText(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(s) + "'"
}

func quote(s string) string { return "`" + strings.ReplaceAll(s, "`", "``") + "`" }

func (t *traits) quoteSchema(s string) string {
	if catalog, database, ok := strings.Cut(s, "."); ok && t.catalogs {
		return quote(catalog) + "." + quote(database)
	}
	return quote(s)
}

const (
	lockTries = 5
	lockWait  = 20 * time.Millisecond
)

// claim keeps one attempt from running twice.
func (s *session) claim(ctx context.Context, t *traits, id string) error {
	s.attempt = id
	if !t.locks {
		found, err := s.engine.processes(ctx, t, id)
		if err == nil && len(found) > 0 {
			err = wire.ErrDuplicate
		}
		return err
	}
	return wire.Lock(ctx, lockTries, lockWait, func() (bool, error) {
		row, err := s.ask(ctx, "SELECT GET_LOCK('"+wire.LockName(id)+"', 0)")
		return len(row) == 1 && text(row[0]) == "1", err
	})
}

// mark is what leads an attempt's statement.
func mark(id string) string { return "/* pointsman:" + wire.Name(id) + " */ " }

// Stop tells the server to stop what runs in the session. A server that was started again gives its numbers anew, and a connection may not
// have heard of that: so what is killed by a number has to be this attempt's.
func (s *session) Stop(ctx context.Context) error {
	mine, err := s.engine.owns(ctx, s.attempt, s.id)
	if err != nil || !mine {
		return err
	}
	return s.engine.killConnection(ctx, s.id, false)
}

// Drop cuts the connection. What waits for the server returns.
func (s *session) Drop() { _ = s.wire.Close() }

// Close ends the session.
func (s *session) Close() {
	s.once.Do(func() {
		_ = s.wire.SetDeadline(time.Now().Add(time.Second)) // a farewell may not block
		_ = s.conn.Close()
		s.engine.open.Closed()
	})
}
