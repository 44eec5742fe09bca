package server

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/pointsman/pointsman/pkg/embedded/chdb/internal/libchdb"
	"github.com/pointsman/pointsman/pkg/embedded/chdb/internal/statement"
)

// externalTable is a temporary table that comes with a request, as a file of a multipart form.
type externalTable struct {
	name, format, structure string
	rows                    *spool
}

// multipart reads a form: its values join the URL parameters, its files become external tables.
func (req *request) multipart(s *Server, r *http.Request, q url.Values) error {
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/form-data") {
		return nil
	}
	reader, err := r.MultipartReader()
	if err != nil {
		return exception(36, "BAD_ARGUMENTS", "The body is not a multipart form: %v", err)
	}
	for {
		part, err := reader.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return exception(36, "BAD_ARGUMENTS", "The body is not a multipart form: %v", err)
		}
		rows, err := newSpool(s.cfg.SpoolDir)
		if err != nil {
			return err
		}
		if _, err := io.Copy(rows, part); err != nil {
			return errors.Join(err, rows.Close())
		}
		name := part.FormName()
		structure := q.Get(name + "_structure")
		if structure == "" {
			err := fieldFrom(rows, name, q)
			if err := errors.Join(err, rows.Close()); err != nil {
				return err
			}
			continue
		}
		req.external = append(req.external, externalTable{name: name, format: firstOf(q.Get(name+"_format"), "TabSeparated"), structure: structure, rows: rows})
	}
	req.body = http.NoBody
	return nil
}

func fieldFrom(rows *spool, name string, q url.Values) error {
	r, err := rows.Reader()
	if err != nil {
		return err
	}
	value, err := io.ReadAll(io.LimitReader(r, maxStatement))
	if err != nil {
		return err
	}
	q.Set(name, string(value))
	return nil
}

// isExternal says that a URL parameter describes an external table.
func (req *request) isExternal(name string) bool {
	for _, t := range req.external {
		if name == t.name+"_structure" || name == t.name+"_format" || name == t.name+"_types" {
			return true
		}
	}
	return false
}

// createExternal makes the external tables on the request's connection, with which they go away.
func (req *request) createExternal(conn *libchdb.Conn) error {
	for _, t := range req.external {
		name := statement.QuoteName(t.name)
		if _, err := conn.Query("CREATE TEMPORARY TABLE "+name+" ("+t.structure+")", "Null", nil); err != nil {
			return err
		}
		if _, err := conn.Query("INSERT INTO "+name+" FROM INFILE "+statement.Quote(t.rows.Path())+" FORMAT "+t.format, "Null", nil); err != nil {
			return err
		}
	}
	return nil
}

// closeExternal lets go of the rows of the external tables.
func (req *request) closeExternal() {
	for _, t := range req.external {
		_ = t.rows.Close()
	}
}
