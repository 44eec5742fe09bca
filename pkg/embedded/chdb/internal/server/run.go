package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/ClickHouse/ch-go/compress"

	"github.com/pointsman/pointsman/pkg/embedded/chdb/internal/statement"
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
