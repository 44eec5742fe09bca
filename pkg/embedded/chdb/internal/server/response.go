package server

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"

	"github.com/pointsman/pointsman/pkg/embedded/chdb/internal/libchdb"
)

// holdBack is how much of a result is kept until the query has ended, so that a query that fails
// early gets a proper error status and one with a small result its exact summary.
const holdBack = 1 << 20

// response sends a result. The first bytes are held back; from then on it streams. With
// wait_end_of_query it holds everything back, in a spool.
type response struct {
	s       *Server
	w       http.ResponseWriter
	req     *request
	format  string
	held    bytes.Buffer
	spool   *spool
	started bool
	out     io.Writer
	closers []io.Closer // innermost last
	tag     string
}

func (s *Server) newResponse(w http.ResponseWriter, req *request, format string) *response {
	return &response{s: s, w: w, req: req, format: format}
}

// Write takes a piece of the result.
func (p *response) Write(b []byte) (int, error) {
	switch {
	case p.started:
		return p.out.Write(b)
	case p.spool != nil:
		return p.spool.Write(b)
	case p.held.Len()+len(b) <= holdBack:
		return p.held.Write(b)
	case p.req.waitEnd:
		spool, err := newSpool(p.s.cfg.SpoolDir)
		if err != nil {
			return 0, err
		}
		p.spool = spool
		if _, err := p.spool.Write(p.held.Bytes()); err != nil {
			return 0, err
		}
		return p.spool.Write(b)
	}
	if err := p.start(nil); err != nil {
		return 0, err
	}
	return p.out.Write(b)
}

// start sends the headers and what was held back.
func (p *response) start(summary *libchdb.Result) error {
	h := p.w.Header()
	h.Set("X-ClickHouse-Format", p.format)
	h.Set("Content-Type", contentType(p.format))
	p.out = p.w
	if summary != nil {
		h.Set("X-ClickHouse-Summary", summaryOf(*summary))
	} else {
		p.tag = exceptionTag()
		h.Set("X-ClickHouse-Exception-Tag", p.tag)
	}
	encoding, encoder := encodeBody(p.req.acceptEncoding, p.w)
	if encoder != nil && (summary == nil || p.size() > 0) {
		h.Set("Content-Encoding", encoding)
		p.out = encoder
		p.closers = append(p.closers, encoder)
	}
	if p.req.compress {
		f := newFramed(p.out, p.req.method)
		p.out = f
		p.closers = append(p.closers, f)
	}
	if summary != nil && len(p.closers) == 0 {
		h.Set("Content-Length", strconv.FormatInt(p.size(), 10))
	}
	p.w.WriteHeader(http.StatusOK)
	p.started = true
	if p.spool != nil {
		r, err := p.spool.Reader()
		if err != nil {
			return err
		}
		_, err = io.Copy(p.out, r)
		return err
	}
	_, err := p.out.Write(p.held.Bytes())
	p.held = bytes.Buffer{}
	return err
}

func (p *response) size() int64 {
	if p.spool != nil {
		return p.spool.size
	}
	return int64(p.held.Len())
}

// finish ends the answer with the outcome of the query. An error that it gives back has not been
// told to the client yet.
func (p *response) finish(result libchdb.Result, err error) error {
	defer func() {
		if p.spool != nil {
			_ = p.spool.Close()
		}
	}()
	if !p.started {
		if err != nil {
			return err
		}
		// From here on the client can only see a broken connection, which is all there is to tell it.
		_ = p.start(&result)
		p.close()
		return nil
	}
	if err != nil {
		p.abort(err)
	} else {
		p.w.Header().Set(http.TrailerPrefix+"X-ClickHouse-Summary", summaryOf(result))
	}
	p.close()
	return nil
}

// abort tells an error in the middle of a result, framed as clickhouse-server frames it.
func (p *response) abort(err error) {
	text := p.s.errorText(asException(err))
	const marker = "__exception__"
	_, _ = fmt.Fprintf(p.out, "\r\n%s\r\n%s\r\n%s\n%d %s\r\n%s\r\n", marker, p.tag, text, len(text), p.tag, marker)
}

func (p *response) close() {
	for _, c := range slices.Backward(p.closers) {
		_ = c.Close()
	}
}

func exceptionTag() string {
	var b [8]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

func summaryOf(r libchdb.Result) string {
	return fmt.Sprintf(`{"read_rows":"%d","read_bytes":"%d","written_rows":"%d","written_bytes":"%d","result_rows":"%d","result_bytes":"%d","elapsed_ns":"%d"}`,
		r.ReadRows, r.ReadBytes, r.WrittenRows, r.WrittenBytes, r.ResultRows, r.ResultBytes, r.Elapsed.Nanoseconds())
}

func contentType(format string) string {
	switch format {
	case "JSON", "JSONCompact", "JSONStrings", "JSONCompactStrings", "JSONColumns", "JSONColumnsWithMetadata":
		return "application/json; charset=UTF-8"
	case "JSONEachRow", "JSONCompactEachRow", "JSONStringsEachRow":
		return "application/x-ndjson; charset=UTF-8"
	case "CSV", "CSVWithNames", "CSVWithNamesAndTypes":
		return "text/csv; charset=UTF-8; header=" + map[bool]string{true: "absent", false: "present"}[format == "CSV"]
	case "TabSeparated", "TSV", "TabSeparatedWithNames", "TSVWithNames", "TabSeparatedWithNamesAndTypes", "TSVWithNamesAndTypes", "TabSeparatedRaw", "TSVRaw":
		return "text/tab-separated-values; charset=UTF-8"
	case "XML":
		return "application/xml; charset=UTF-8"
	case "Native", "RowBinary", "RowBinaryWithNames", "RowBinaryWithNamesAndTypes", "Parquet", "Arrow", "ArrowStream", "ORC", "Avro":
		return "application/octet-stream"
	}
	return "text/plain; charset=UTF-8"
}
