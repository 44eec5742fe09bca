package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/pointsman/pointsman/pkg/embedded/chdb/internal/libchdb"
	"github.com/pointsman/pointsman/pkg/embedded/chdb/internal/statement"
)

// slowClient is how long a client may take to read on once its query has been killed.
const slowClient = 2 * time.Second

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
	class := q.conn.Classify(stmt.Text()).Class
	switch {
	case class == libchdb.ReadOnly:
		return q.stream(stmt)
	case q.req.readOnly && class != libchdb.Unknown:
		return exception(164, "READONLY", "Cannot execute query in readonly mode. For queries over HTTP, method GET implies readonly. You should use method POST for modifying queries.")
	case q.req.readOnly && q.req.session == "":
		// Most likely it does not parse; if it does, it must not write either.
		if err := apply(q.conn, []libchdb.Param{{Name: "readonly", Value: "2"}}); err != nil {
			return err
		}
	}
	sql := stmt.Text()
	if class == libchdb.Unknown && len(sql) <= len("logout;") {
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
	sql, format := stmt.IntoFile(filePath(to), q.req.format), stmt.Format(q.req.format)
	if q.conn.Classify(sql).Class == libchdb.Unknown {
		// A statement that reads but has no place for INTO OUTFILE.
		return errors.Join(to.Close(), q.direct(stmt.Text(), format))
	}
	widenPipe(to)
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
	if out.err == nil && len(out.result.Data) > 0 {
		// INTO OUTFILE went to a statement within the statement, as in EXPLAIN AST.
		out.err = resp.copy(bytes.NewReader(out.result.Data))
	}
	return resp.finish(out.result, out.err)
}

// copy takes the whole result from the engine.
func (p *response) copy(from io.Reader) error {
	if strings.EqualFold(p.format, "Native") && p.req.protocol > 0 {
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
		out.err = resp.copy(bytes.NewReader(out.result.Data))
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
