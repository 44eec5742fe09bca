package trino

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"

	"github.com/pointsman/pointsman/pkg/engine/wire"
	"github.com/pointsman/pointsman/pkg/engine/wire/secure"
)

// maxAnswer bounds what is read of one answer. Pages of Trino have a megabyte, and one row more.
const maxAnswer = 256 << 20

type startKey struct{}

// withStart marks the request that starts a query: the one for its first page.
func withStart(ctx context.Context, s *wire.Submission) context.Context {
	return context.WithValue(ctx, startKey{}, s)
}

// transport ties the request that starts a query to its guard.
type transport struct{ base *http.Transport }

// RoundTrip sends one request. The transport below may send a GET again when a connection that it kept turns out to be dead:
// that is asked of the guard like the first time.
func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	s, _ := req.Context().Value(startKey{}).(*wire.Submission)
	trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		conn := info.Conn
		if wrapped, ok := conn.(*tls.Conn); ok {
			conn = wrapped.NetConn()
		}
		if g, ok := conn.(*wire.Conn); ok {
			g.Serve(s)
		}
	}}
	return t.base.RoundTrip(req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
}

// CloseIdleConnections is what http.Client calls.
func (t transport) CloseIdleConnections() { t.base.CloseIdleConnections() }

// statusError is an answer with an HTTP status that says no. Errors of queries are none: they come with status 200.
type statusError struct {
	status  int
	message string
}

// Error gives the status and what the server said to it.
func (e *statusError) Error() string {
	text := fmt.Sprintf("HTTP status %d %s", e.status, http.StatusText(e.status))
	if e.status >= 300 && e.status < 400 {
		return text + ": the address answers with a redirect, so give the final address"
	}
	if e.message != "" {
		text += ": " + e.message
	}
	return text
}

// errGarbage is an answer that no Trino server gives.
var errGarbage = errors.New("the answer is none of a Trino server")

// call sends one request and reads its answer into out, which may be nil. uri is a path, or an address that the server gave: of
// it only the path is used, since a server behind a proxy may know itself by another name, and credentials go to nobody else.
func (e *Engine) call(ctx context.Context, method, uri string, header http.Header, body string, out func(io.Reader) error) error {
	ctx, cancel := context.WithTimeout(ctx, pageWithin)
	defer cancel()
	target, err := e.base.Parse(uri)
	if err != nil {
		return fmt.Errorf("%w: %w", errGarbage, err)
	}
	target.Scheme, target.Host, target.User = e.base.Scheme, e.base.Host, nil
	var reader io.Reader
	if method == http.MethodPost {
		reader = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, target.String(), reader)
	if err != nil {
		return fmt.Errorf("%w: %w", errGarbage, err)
	}
	req.Header = header
	resp, err := e.client.Do(req)
	if u, ok := errors.AsType[*url.Error](err); ok {
		u.Err = secure.Explain(u.Err, "ca")
	}
	if err != nil {
		return err
	}
	defer func() {
		_, _ = io.CopyN(io.Discard, resp.Body, 4<<10) // so that the connection can be used again
		_ = resp.Body.Close()
	}()
	if resp.StatusCode >= 300 {
		return &statusError{resp.StatusCode, said(resp)}
	}
	if out == nil || resp.StatusCode == http.StatusNoContent {
		return nil
	}
	limited := &io.LimitedReader{R: resp.Body, N: maxAnswer}
	if err := out(limited); err != nil {
		if limited.N <= 0 {
			return fmt.Errorf("%w: it has more than %d MB", errGarbage, maxAnswer>>20)
		}
		return err
	}
	return nil
}

// said is the text of a refusal, unless it is a web page.
func said(resp *http.Response) string {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if kind != "text/plain" && kind != "application/json" {
		return ""
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	line, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n") // a stack follows
	return line
}

// decode reads one JSON value. Numbers keep their digits.
func decode(out any) func(io.Reader) error {
	return func(r io.Reader) error {
		d := json.NewDecoder(r)
		d.UseNumber()
		if err := d.Decode(out); err != nil {
			return unreadable(err)
		}
		return nil
	}
}

// unreadable tells an answer that is none from one that was cut short.
func unreadable(err error) error {
	var (
		syntax *json.SyntaxError
		typed  *json.UnmarshalTypeError
	)
	if errors.As(err, &syntax) || errors.As(err, &typed) || errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: %w", errGarbage, err)
	}
	return err
}

// statement sends a request of the statement protocol.
func (e *Engine) statement(ctx context.Context, method, uri string, header http.Header, body string) (results, error) {
	var r results
	err := e.call(ctx, method, uri, header, body, pageOf(&r))
	if err == nil && r.ID == "" {
		err = fmt.Errorf("%w: it names no query", errGarbage)
	}
	return r, err
}
