package server

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/ClickHouse/ch-go/compress"
	"golang.org/x/sys/unix"

	"github.com/pointsman/pointsman/pkg/embedded/chdb/internal/libchdb"
	"github.com/pointsman/pointsman/pkg/embedded/chdb/internal/statement"
)

const (
	// maxHead is how much of a request is read before its rows are told from its statement.
	maxHead = 1 << 20
	// slowClient is how long a client may take to read on once its query has been killed.
	slowClient = 2 * time.Second
	// maxStatement is the longest statement that is read at all; the engine's own limit is lower.
	maxStatement = 16 << 20
)

// serve runs the request. An error that it gives back has not been told to the client yet.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, req *request) error {
	defer req.closeExternal()
	if req.decompress {
		req.body = unframed{compress.NewReader(req.body)}
	}
	stmt, rows, err := req.read()
	if err != nil {
		if errors.Is(err, statement.ErrEmpty) && req.readOnly {
			s.alive(w, r)
			return nil
		}
		return err
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	defer func() {
		if ctx.Err() != nil {
			_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
		}
		cancel(nil)
	}()
	_, kills := stmt.Kill("query_id")
	running := &entry{id: req.queryID, cancel: cancel, counted: !stmt.ReadsNothing() && !stmt.ReadsProcesses() && !kills}
	if err := s.running.add(running); err != nil {
		return err
	}
	defer s.running.remove(running)

	var body *spool
	if rows != nil {
		if body, err = newSpool(s.cfg.SpoolDir); err != nil {
			return err
		}
		defer func() { _ = body.Close() }()
		into := io.Writer(body)
		if stmt.Insert().Format() == "Values" {
			into = io.MultiWriter(&statement.ValuesGuard{}, body)
		}
		if _, err := io.Copy(into, rows); errors.Is(err, statement.ErrMulti) {
			return exception(33, "CANNOT_READ_ALL_DATA", "Cannot read data after semicolon")
		} else if err != nil {
			return exception(33, "CANNOT_READ_ALL_DATA", "Cannot read the rows to insert: %v", err)
		}
	}
	conn, release, err := s.connection(req)
	if err != nil {
		return err
	}
	defer release()
	if err := req.enter(conn); err != nil {
		return err
	}
	q := &query{s: s, w: w, req: req, conn: conn, ctx: ctx, cancel: cancel}
	switch {
	case stmt.Insert() != nil:
		return q.direct(stmt.Insert().SQL(body.Path()), req.format)
	case kills:
		return q.killQueries(stmt)
	}
	return q.any(stmt)
}

// read gives the statement, and its rows when it is an INSERT that brings them along.
func (req *request) read() (statement.Statement, io.Reader, error) {
	in := req.body
	if req.query != "" {
		in = io.MultiReader(newlineAfter(req.query), in)
	}
	var head bytes.Buffer
	n, err := head.ReadFrom(io.LimitReader(in, maxHead))
	if err != nil {
		return statement.Statement{}, nil, exception(33, "CANNOT_READ_ALL_DATA", "Cannot read the request: %v", err)
	}
	complete := n < maxHead
	text := head.String()
	stmt, err := statement.Parse(text, complete)
	if err == nil && stmt.Insert() != nil {
		rest := io.Reader(newStringReader(text[stmt.Insert().Data:]))
		if !complete {
			rest = io.MultiReader(rest, in)
		}
		return stmt, rest, nil
	}
	if complete || (err != nil && !errors.Is(err, statement.ErrUnterminated)) {
		return stmt, nil, err
	}
	more, err := io.ReadAll(io.LimitReader(in, maxStatement-n+1))
	if err != nil {
		return stmt, nil, exception(33, "CANNOT_READ_ALL_DATA", "Cannot read the request: %v", err)
	}
	if n+int64(len(more)) > maxStatement {
		return stmt, nil, exception(229, "QUERY_IS_TOO_LARGE", "The statement is longer than %d bytes", maxStatement)
	}
	stmt, err = statement.Parse(text+string(more), true)
	if err == nil && stmt.Insert() != nil {
		return stmt, newStringReader((text + string(more))[stmt.Insert().Data:]), nil
	}
	return stmt, nil, err
}

// enter prepares a connection for the statement.
func (req *request) enter(conn *libchdb.Conn) error {
	if req.database != "" {
		if _, err := conn.Query("USE "+statement.QuoteName(req.database), "Null", nil); err != nil {
			return err
		}
	}
	return req.createExternal(conn)
}

// query is a statement about to run on its connection.
type query struct {
	s      *Server
	w      http.ResponseWriter
	req    *request
	conn   *libchdb.Conn
	ctx    context.Context
	cancel context.CancelCauseFunc
}

// any runs a statement that brings no rows.
func (q *query) any(stmt statement.Statement) error {
	if stmt.ReadsProcesses() {
		var err error
		if stmt, err = stmt.WithProcesses(processesView); err != nil {
			return err
		}
	}
	class := q.conn.Classify(stmt.Text())
	if q.req.readOnly && class.Class != libchdb.ReadOnly && class.Class != libchdb.Unknown {
		return exception(164, "READONLY", "Cannot execute query in readonly mode. For queries over HTTP, method GET implies readonly. You should use method POST for modifying queries.")
	}
	if class.Class == libchdb.ReadOnly {
		return q.stream(stmt)
	}
	sql := stmt.Text()
	if class.Class == libchdb.Unknown && len(sql) <= len("logout;") {
		// The library's client side takes exit, quit and the like for commands, alone as they are.
		sql += " /**/"
	}
	return q.direct(sql, stmt.Format(q.req.format))
}

// stream runs a statement that reads. The engine writes the result into a pipe.
func (q *query) stream(stmt statement.Statement) error {
	from, to, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("making a pipe: %w", err)
	}
	defer func() { _ = from.Close() }()
	// A larger pipe spares both sides wake-ups; the default does as well when it is refused.
	_, _ = unix.FcntlInt(to.Fd(), unix.F_SETPIPE_SZ, 1<<20)
	sql := stmt.IntoFile(fmt.Sprintf("/proc/self/fd/%d", to.Fd()), q.req.format)
	format := stmt.Format(q.req.format)
	resp := q.s.newResponse(q.w, q.req, format)
	done := q.start(sql, format, func() { _ = to.Close() })
	copyErr := resp.copy(from)
	if copyErr != nil {
		q.cancel(copyErr)
		_ = from.Close()
	}
	out := <-done
	if out.err == nil {
		out.err = copyErr
	}
	return resp.finish(out.result, out.err)
}

// copy takes the whole result from the engine.
func (p *response) copy(from io.Reader) error {
	if p.format == "Native" && p.req.protocol > 0 {
		return reframe(p, from, p.req.protocol)
	}
	_, err := io.CopyBuffer(struct{ io.Writer }{p}, from, make([]byte, 64<<10))
	return err
}

// direct runs a statement whose result is small, if it has one.
func (q *query) direct(sql, format string) error {
	resp := q.s.newResponse(q.w, q.req, format)
	out := <-q.start(sql, format, func() {})
	if out.err == nil && len(out.result.Data) > 0 {
		out.err = resp.copy(newStringReader(string(out.result.Data)))
	}
	return resp.finish(out.result, out.err)
}

type outcome struct {
	result libchdb.Result
	err    error
}

// start runs a statement and kills it when the request ends before it. The outcome comes when the
// engine has let go of the connection.
func (q *query) start(sql, format string, after func()) <-chan outcome {
	done := make(chan outcome, 1)
	ended := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		result, err := q.conn.Query(sql, format, q.req.params)
		after()
		close(ended)
		<-watched
		done <- outcome{result, err}
	}()
	go func() {
		defer close(watched)
		select {
		case <-ended:
			return
		case <-q.ctx.Done():
		}
		// A client that does not read must not hold up the end of its query, nor a query that takes
		// its time to end keep the client from hearing of it.
		deadline := http.NewResponseController(q.w).SetWriteDeadline
		_ = deadline(time.Now().Add(slowClient))
		defer func() { _ = deadline(time.Now().Add(slowClient)) }()
		for wait := 5 * time.Millisecond; ; wait = min(2*wait, 500*time.Millisecond) {
			if err := q.s.kill(q.req.queryID); err != nil {
				q.s.cfg.Logger.Warn("cannot kill a query", "query_id", q.req.queryID, "error", err)
			}
			select {
			case <-ended:
				return
			case <-time.After(wait):
			}
		}
	}()
	return done
}

func unhex(s string) string {
	b, err := hex.DecodeString(s)
	if err != nil {
		return s
	}
	return string(b)
}
