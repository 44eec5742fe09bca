// Package familytest is a server that speaks MySQL's protocol and behaves, in what pointsman asks of it, as the documentation
// and the sources of TiDB, Doris and StarRocks say that they do: versions, session variables, lists of processes, KILL, error
// codes. Those servers can't be run in tests; what this one proves is that the adapter says what it should to them, and
// understands what they are said to answer. It proves nothing of the servers themselves.
package familytest

import (
	"context"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dolthub/vitess/go/mysql"
	"github.com/dolthub/vitess/go/sqltypes"
	querypb "github.com/dolthub/vitess/go/vt/proto/query"
	"github.com/dolthub/vitess/go/vt/sqlparser"
	"github.com/stretchr/testify/require"
)

// Failure is an error that the server answers.
type Failure struct {
	Code    int
	Message string
}

// Traits are how a server behaves.
type Traits struct {
	Version, Comment string
	// Columns are those of SHOW FULL PROCESSLIST, or nil if the server has information_schema.processlist.
	Columns []string
	// Killed is what a statement ends with that was killed, and Late one that took too long.
	Killed, Late Failure
	// Limit is the session variable of the time limit, in Unit.
	Limit string
	Unit  time.Duration
	// Memory is the session variable of the memory limit, and Full what a statement ends with that needs more.
	Memory string
	Full   Failure
	// Locks says that it has GET_LOCK.
	Locks bool
	// Answers are further statements, by their whole text without comments.
	Answers map[string]Failure
}

// Server is such a server.
type Server struct {
	Addr   string
	traits Traits
	listen *mysql.Listener

	mu    sync.Mutex
	conns map[uint32]*session
	locks map[string]uint32
	said  []string
	deaf  bool
}

type session struct {
	conn  *mysql.Conn
	vars  map[string]string
	db    string
	info  string
	since time.Time
	kill  chan struct{}
}

// Start starts a server; the test's end stops it.
func Start(t testing.TB, traits Traits) *Server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &Server{Addr: l.Addr().String(), traits: traits, conns: map[uint32]*session{}, locks: map[string]uint32{}}
	s.listen, err = mysql.NewFromListener(l, mysql.NewAuthServerNone(), s, 0, 0)
	require.NoError(t, err)
	s.listen.ServerVersion = traits.Version
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.listen.Accept()
	}()
	t.Cleanup(func() {
		s.listen.Close()
		<-done
		s.mu.Lock()
		for _, c := range s.conns {
			c.conn.Conn.Close()
			c.end()
		}
		s.mu.Unlock()
	})
	return s
}

// Said gives what attempts' sessions and the control lane have sent, in order.
func (s *Server) Said() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.said)
}

// Forget forgets what was said.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = nil
}

var (
	comments = regexp.MustCompile(`(?s)/\*.*?\*/\s*|\s*-- .*$`)
	killing  = regexp.MustCompile(`^KILL (QUERY|CONNECTION) (\d+)$`)
	sleeping = regexp.MustCompile(`^SELECT SLEEP\((\d+)\)$`)
	holding  = regexp.MustCompile(`^SELECT IS_USED_LOCK\('([^']+)'\)$`)
	locking  = regexp.MustCompile(`^SELECT GET_LOCK\('([^']+)', 0\)$`)
	number   = regexp.MustCompile(`^SELECT (\d+)(?: AS n)?$`)
	assigned = regexp.MustCompile(`(?i)([a-z_]+) = ('(?:[^']|'')*'|[-0-9.]+)`)
	showing  = regexp.MustCompile(`^SELECT @@([a-z_]+)$`)
)

// ComQuery answers a statement.
func (s *Server) ComQuery(ctx context.Context, c *mysql.Conn, query string, callback mysql.ResultSpoolFn) error {
	mine := s.begin(c, query)
	defer s.end(mine)
	result, err := s.answer(ctx, c, mine, comments.ReplaceAllString(query, ""))
	if err != nil {
		return err
	}
	return callback(result, false)
}

func (s *Server) begin(c *mysql.Conn, query string) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = append(s.said, query)
	mine := s.conns[c.ConnectionID]
	mine.info, mine.since, mine.kill = query, time.Now(), make(chan struct{})
	return mine
}

func (s *Server) end(mine *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	mine.info = ""
}

func (s *Server) answer(ctx context.Context, c *mysql.Conn, mine *session, sql string) (*sqltypes.Result, error) {
	switch {
	case sql == "SELECT CONNECTION_ID(), @@version, @@version_comment":
		return table([]string{"CONNECTION_ID()", "@@version", "@@version_comment"}, []string{strconv.Itoa(int(c.ConnectionID)), s.traits.Version, s.traits.Comment}), nil
	case sql == "SELECT @@version, @@version_comment":
		return table([]string{"@@version", "@@version_comment"}, []string{s.traits.Version, s.traits.Comment}), nil
	case sql == "SHOW FULL PROCESSLIST" && s.traits.Columns != nil, strings.HasSuffix(sql, "FROM information_schema.processlist") && s.traits.Columns == nil:
		return s.processes(), nil
	case strings.HasPrefix(sql, "SET RESOURCE GROUP "):
		return &sqltypes.Result{}, nil
	case strings.HasPrefix(sql, "SET "):
		s.set(mine, sql)
		return &sqltypes.Result{}, nil
	case strings.HasPrefix(sql, "USE "):
		mine.db = strings.TrimPrefix(sql, "USE ")
		return &sqltypes.Result{}, nil
	case sql == "SELECT DATABASE()":
		return table([]string{"DATABASE()"}, []string{mine.db}), nil
	case sql == "CREATE TABLE IF NOT EXISTS nothing (n int)":
		return &sqltypes.Result{}, nil
	case sql == "SELECT n FROM empty":
		return table([]string{"n"}), nil
	case sql == "SELECT greedy":
		if mine.vars[s.traits.Memory] != "" {
			return nil, fail(s.traits.Full)
		}
		return table([]string{"greedy"}, []string{"1"}), nil
	case locking.MatchString(sql) && s.traits.Locks:
		return table([]string{"GET_LOCK"}, []string{s.lock(c.ConnectionID, locking.FindStringSubmatch(sql)[1])}), nil
	case holding.MatchString(sql) && s.traits.Locks:
		return s.holder(holding.FindStringSubmatch(sql)[1]), nil
	case number.MatchString(sql):
		return integer(number.FindStringSubmatch(sql)[1]), nil
	case showing.MatchString(sql):
		name := showing.FindStringSubmatch(sql)[1]
		if name == "max_connections" {
			return integer("4096"), nil
		}
		return table([]string{"@@" + name}, []string{mine.vars[name]}), nil
	}
	if m := killing.FindStringSubmatch(sql); m != nil {
		return &sqltypes.Result{}, s.stop(m[2])
	}
	if m := sleeping.FindStringSubmatch(sql); m != nil {
		return s.sleep(ctx, mine, m[1])
	}
	if f, ok := s.traits.Answers[sql]; ok {
		return nil, fail(f)
	}
	return nil, fail(Failure{1064, "this server knows no such statement: " + sql})
}

func fail(f Failure) error { return mysql.NewSQLError(f.Code, "HY000", "%s", f.Message) }

func (s *Server) set(mine *session, sql string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range assigned.FindAllStringSubmatch(sql, -1) {
		mine.vars[m[1]] = strings.Trim(m[2], "'")
	}
}

// sleep is a slow statement, which a KILL, its time limit or the end of its connection stops.
func (s *Server) sleep(ctx context.Context, mine *session, seconds string) (*sqltypes.Result, error) {
	n, _ := strconv.Atoi(seconds)
	limit := time.Duration(1<<63 - 1)
	s.mu.Lock()
	if given, err := strconv.ParseFloat(mine.vars[s.traits.Limit], 64); err == nil {
		limit = time.Duration(given * float64(s.traits.Unit))
	}
	kill := mine.kill
	s.mu.Unlock()
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case <-time.After(time.Duration(n) * time.Second):
		return integer("0"), nil
	case <-kill:
		return nil, fail(s.traits.Killed)
	case <-late.C:
		return nil, fail(s.traits.Late)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *Server) stop(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, _ := strconv.ParseUint(id, 10, 32)
	c, ok := s.conns[uint32(n)]
	if !ok {
		return fail(Failure{1094, "Unknown thread id: " + id})
	}
	if !s.deaf {
		c.end()
	}
	return nil
}

// Deaf makes the server say yes to each KILL and stop nothing.
func (s *Server) Deaf() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deaf = true
}

// end ends what runs in a session. The lock is held.
func (c *session) end() {
	if c.info == "" {
		return
	}
	select {
	case <-c.kill:
	default:
		close(c.kill)
	}
}

func (s *Server) lock(by uint32, name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if owner, held := s.locks[name]; held && owner != by {
		return "0"
	}
	s.locks[name] = by
	return "1"
}

// holder is the number of the connection that has a lock, or NULL.
func (s *Server) holder(name string) *sqltypes.Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	result := integer("0")
	result.Rows[0][0] = sqltypes.NULL
	if by, held := s.locks[name]; held {
		result.Rows[0][0] = sqltypes.NewInt64(int64(by))
	}
	return result
}

// Reuse makes all that runs somebody else's under the same numbers, as behind a restart of which a client has not heard.
func (s *Server) Reuse() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.locks)
	for _, c := range s.conns {
		if c.info != "" {
			c.info = "SELECT 1 FROM somebody.elses"
		}
	}
}

// processes is the list, in the server's own columns.
func (s *Server) processes() *sqltypes.Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	columns := s.traits.Columns
	if columns == nil {
		columns = []string{"id", "command", "time", "info"}
	}
	var rows [][]string
	for id, c := range s.conns {
		row := make([]string, len(columns))
		for i, name := range columns {
			switch strings.ToLower(name) {
			case "id":
				row[i] = strconv.Itoa(int(id))
			case "command":
				row[i] = "Sleep"
				if c.info != "" {
					row[i] = "Query"
				}
			case "time":
				row[i] = strconv.Itoa(int(time.Since(c.since).Seconds()))
			case "info":
				row[i] = c.info
			}
		}
		rows = append(rows, row)
	}
	return table(columns, rows...)
}

func table(columns []string, rows ...[]string) *sqltypes.Result {
	r := &sqltypes.Result{}
	for _, name := range columns {
		r.Fields = append(r.Fields, &querypb.Field{Name: name, Type: sqltypes.VarChar, Charset: 45})
	}
	for _, row := range rows {
		var out []sqltypes.Value
		for _, cell := range row {
			out = append(out, sqltypes.NewVarChar(cell))
		}
		r.Rows = append(r.Rows, out)
	}
	return r
}

func integer(digits string) *sqltypes.Result {
	return &sqltypes.Result{
		Fields: []*querypb.Field{{Name: "n", Type: sqltypes.Int64}}, Rows: [][]sqltypes.Value{{sqltypes.MakeTrusted(sqltypes.Int64, []byte(digits))}},
	}
}

// NewConnection knows a session.
func (s *Server) NewConnection(c *mysql.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[c.ConnectionID] = &session{conn: c, vars: map[string]string{}}
}

// ConnectionClosed forgets a session and its locks.
func (s *Server) ConnectionClosed(c *mysql.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c.ConnectionID)
	for name, owner := range s.locks {
		if owner == c.ConnectionID {
			delete(s.locks, name)
		}
	}
}

// ConnectionAborted is the same for one that never came about.
func (s *Server) ConnectionAborted(c *mysql.Conn, _ string) error {
	s.ConnectionClosed(c)
	return nil
}

// ComInitDB takes the database of the handshake.
func (s *Server) ComInitDB(c *mysql.Conn, schema string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if mine, ok := s.conns[c.ConnectionID]; ok {
		mine.db = schema
	}
	return nil
}

// ComMultiQuery is never used: clients may not send several statements.
func (s *Server) ComMultiQuery(context.Context, *mysql.Conn, string, mysql.ResultSpoolFn) (string, error) {
	return "", fmt.Errorf("several statements in one")
}

// ComPrepare is never used.
func (s *Server) ComPrepare(context.Context, *mysql.Conn, string, *mysql.PrepareData) ([]*querypb.Field, error) {
	return nil, fmt.Errorf("prepared statements")
}

// ComStmtExecute is never used.
func (s *Server) ComStmtExecute(context.Context, *mysql.Conn, *mysql.PrepareData, func(*sqltypes.Result) error) error {
	return fmt.Errorf("prepared statements")
}

// WarningCount is none.
func (s *Server) WarningCount(*mysql.Conn) uint16 { return 0 }

// ComResetConnection does nothing.
func (s *Server) ComResetConnection(*mysql.Conn) error { return nil }

// ParserOptionsForConnection are those of a parser that is never used.
func (s *Server) ParserOptionsForConnection(*mysql.Conn) (sqlparser.ParserOptions, error) {
	return sqlparser.ParserOptions{}, nil
}
