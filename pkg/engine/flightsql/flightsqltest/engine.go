package flightsqltest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/metadata"

	adapter "github.com/pointsman/pointsman/pkg/engine/flightsql"
)

// engine speaks to the embedded engine over HTTP.
type engine struct {
	url  string
	http *http.Client
}

// query is a statement as the engine gets it.
type query struct {
	sql, id string
	params  url.Values
}

func newEngine(address string) engine {
	return engine{address, &http.Client{Transport: &http.Transport{DisableCompression: true}}}
}

func (e engine) close() { e.http.CloseIdleConnections() }

// queryOf takes limits and settings from the headers of a call. A setting of the engine has an underscore in its name.
func queryOf(ctx context.Context, sql string, plain bool) query {
	q := query{sql: sql, params: url.Values{}}
	md, _ := metadata.FromIncomingContext(ctx)
	for name, values := range md {
		value := values[0]
		switch {
		case plain && strings.HasPrefix(name, "pointsman-"):
		case name == "database":
			q.params.Set("database", value)
		case name == adapter.HeaderTimeLimit:
			ms, _ := strconv.ParseFloat(value, 64)
			q.params.Set("max_execution_time", strconv.FormatFloat(ms/1000, 'f', 3, 64))
		case name == adapter.HeaderMemory:
			q.params.Set("max_memory_usage", value)
		case name == adapter.HeaderReadOnly:
			q.params.Set("readonly", "2")
		case strings.Contains(name, "_"):
			q.params.Set(name, value)
		}
	}
	return q
}

// exception is what the engine says of an error.
type exception struct {
	code int
	text string
}

// Error is the engine's text.
func (e *exception) Error() string { return e.text }

var exceptionText = regexp.MustCompile(`^Code: (\d+)\. `)

func exceptionOf(text string) error {
	text = strings.TrimSpace(text)
	if m := exceptionText.FindStringSubmatch(text); m != nil {
		code, _ := strconv.Atoi(m[1])
		return &exception{code, text}
	}
	return errors.New(text)
}

func (e engine) post(ctx context.Context, sql string, params url.Values) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url+"/?"+params.Encode(), strings.NewReader(sql))
	if err != nil {
		return nil, err
	}
	answer, err := e.http.Do(request)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode == http.StatusOK {
		return answer, nil
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	return nil, exceptionOf(string(text))
}

// run starts a statement and gives its rows as a stream of Arrow.
func (e engine) run(ctx context.Context, q query) (*body, error) {
	params := url.Values{}
	maps.Copy(params, q.params)
	params.Set("query_id", q.id)
	params.Set("default_format", "ArrowStream")
	params.Set("output_format_arrow_compression_method", "none") // else a large result of a test is a small one
	answer, err := e.post(ctx, q.sql, params)                    //nolint:bodyclose // whoever reads the body closes it
	if err != nil {
		return nil, err
	}
	out := &body{Closer: answer.Body, in: answer.Body}
	if tag := answer.Header.Get("X-ClickHouse-Exception-Tag"); tag != "" {
		out.marker = []byte("\r\n__exception__\r\n" + tag + "\r\n")
	}
	var summary struct {
		Written int64 `json:"written_rows,string"`
	}
	if json.Unmarshal([]byte(answer.Header.Get("X-ClickHouse-Summary")), &summary) == nil {
		out.written = summary.Written
	}
	return out, nil
}

// body is an answer in which the engine may report an error in the middle.
type body struct {
	io.Closer
	in      io.Reader
	marker  []byte
	held    []byte
	end     error
	count   int64 // bytes that were read
	written int64
}

// Read gives what stands in front of an error, and then the error.
func (b *body) Read(p []byte) (int, error) {
	for {
		if n := b.ready(); n > 0 {
			n = copy(p, b.held[:n])
			b.held = b.held[n:]
			b.count += int64(n)
			return n, nil
		}
		if b.end != nil {
			if at := bytes.Index(b.held, b.marker); at == 0 && len(b.marker) > 0 {
				text, _, _ := strings.Cut(string(b.held[len(b.marker):]), "\r\n__exception__")
				return 0, exceptionOf(text)
			}
			return 0, b.end
		}
		buf := make([]byte, 64<<10)
		n, err := b.in.Read(buf)
		b.held, b.end = append(b.held, buf[:n]...), err
	}
}

// ready is how much of what is held is surely no part of an error.
func (b *body) ready() int {
	if len(b.marker) == 0 {
		return len(b.held)
	}
	if at := bytes.Index(b.held, b.marker); at >= 0 {
		return at
	}
	if b.end != nil {
		return len(b.held)
	}
	return len(b.held) - len(b.marker) + 1
}

// process is a running query of the engine.
type process struct {
	Elapsed float64 `json:"elapsed"`
	Rows    int64   `json:"read_rows,string"`
	Bytes   int64   `json:"read_bytes,string"`
	Memory  int64   `json:"peak_memory_usage,string"`
}

// processes are those of a query id.
func (e engine) processes(ctx context.Context, id string) ([]process, error) {
	var out []process
	err := e.ask(ctx, "SELECT elapsed, read_rows, read_bytes, peak_memory_usage FROM system.processes WHERE query_id = "+quote(id), func(d *json.Decoder) error {
		var p process
		err := d.Decode(&p)
		out = append(out, p)
		return err
	})
	return out, err
}

// running counts the engine's queries, without those that look at the engine itself.
func (e engine) running(ctx context.Context) (n int64, err error) {
	err = e.ask(ctx, "SELECT toString(countIf(query NOT LIKE '%system.processes%')) AS n FROM system.processes", func(d *json.Decoder) error {
		var row struct {
			N int64 `json:"n,string"`
		}
		err := d.Decode(&row)
		n = row.N
		return err
	})
	return n, err
}

func (e engine) ask(ctx context.Context, sql string, row func(*json.Decoder) error) error {
	answer, err := e.post(ctx, sql, url.Values{"default_format": {"JSONEachRow"}, "output_format_json_quote_64bit_integers": {"1"}})
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	for d := json.NewDecoder(answer.Body); d.More(); {
		if err := row(d); err != nil {
			return fmt.Errorf("reading what the engine says of itself: %w", err)
		}
	}
	return nil
}

// kill tells the engine to stop a query.
func (e engine) kill(ctx context.Context, id string) error {
	answer, err := e.post(ctx, "KILL QUERY WHERE query_id = "+quote(id)+" ASYNC", url.Values{})
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return errors.Join(err, answer.Body.Close())
}

// abandon kills a query whose reader has gone.
func (e engine) abandon(id string) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_ = e.kill(ctx, id) // the engine also sees that nobody reads any more
}

func quote(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
}
