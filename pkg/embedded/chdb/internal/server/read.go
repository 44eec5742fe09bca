package server

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/pointsman/pointsman/pkg/embedded/chdb/internal/libchdb"
	"github.com/pointsman/pointsman/pkg/embedded/chdb/internal/statement"
)

const (
	// maxHead is how much of a request is read before its rows are told from its statement.
	maxHead = 1 << 20
	// maxStatement is the longest statement that is read at all; the engine's own limit is lower.
	maxStatement = 16 << 20
)

// read gives the statement, and its rows when it is an INSERT that brings them along.
func (req *request) read() (statement.Statement, io.Reader, error) {
	in := req.body
	if req.query != "" {
		in = io.MultiReader(strings.NewReader(req.query+"\n"), in)
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
		rest := io.Reader(strings.NewReader(text[stmt.Insert().Data:]))
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
		return stmt, strings.NewReader((text + string(more))[stmt.Insert().Data:]), nil
	}
	return stmt, nil, err
}

// enter prepares a connection for the statement.
func (req *request) enter(conn *libchdb.Conn) error {
	// A new connection is in the database default.
	if req.database != "" && (req.database != "default" || req.session != "") {
		if _, err := conn.Query("USE "+statement.QuoteName(req.database), "Null", nil); err != nil {
			return err
		}
	}
	return req.createExternal(conn)
}
