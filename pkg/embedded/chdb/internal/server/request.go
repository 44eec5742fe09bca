package server

import (
	"crypto/subtle"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/pointsman/pointsman/pkg/embedded/chdb/internal/libchdb"
)

const codeAuthentication = 516

// request is what an HTTP request asks of the engine, apart from the statement.
type request struct {
	readOnly       bool // GET
	query          string
	queryID        string
	database       string
	format         string
	session        string
	sessionTimeout time.Duration
	sessionCheck   bool
	settings       []libchdb.Param
	params         []libchdb.Param
	external       []externalTable
	compress       bool   // ClickHouse's own framing of the result
	decompress     bool   // ClickHouse's own framing of the body
	method         string // of that framing
	acceptEncoding string
	protocol       uint64 // of Native results
	waitEnd        bool
	body           io.Reader
}

// notSettings are the URL parameters that are not settings. Those that only mean something to a
// clickhouse-server with users and quotas are accepted and ignored.
var notSettings = map[string]bool{
	"query": true, "query_id": true, "database": true, "default_format": true, "session_id": true, "session_timeout": true,
	"session_check": true, "compress": true, "decompress": true, "user": true, "password": true, "quota_key": true,
	"client_protocol_version": true, "wait_end_of_query": true, "buffer_size": true, "stacktrace": true, "role": true,
	"enable_http_compression": true, "close_session": true,
}

func (s *Server) newRequest(r *http.Request) (*request, error) {
	q := r.URL.Query()
	req := &request{
		readOnly: r.Method == http.MethodGet || r.Method == http.MethodHead,
		queryID:  firstOf(q.Get("query_id"), r.Header.Get("X-ClickHouse-Query-Id"), uuid.NewString()),
		method:   "LZ4",
		body:     r.Body,
	}
	if err := s.authenticate(r, q); err != nil {
		return req, err
	}
	if strings.ContainsRune(req.queryID, 0) {
		return req, exception(36, "BAD_ARGUMENTS", "A query id must not hold a zero byte")
	}
	if !req.readOnly && r.Method != http.MethodPost {
		return req, exception(48, "NOT_IMPLEMENTED", "Method %s is not supported: use GET or POST", r.Method)
	}
	body, err := decodeBody(r.Header.Get("Content-Encoding"), r.Body)
	if err != nil {
		return req, err
	}
	req.body = body
	if err := req.multipart(s, r, q); err != nil {
		return req, err
	}
	req.query = q.Get("query")
	req.database = firstOf(q.Get("database"), r.Header.Get("X-ClickHouse-Database"))
	req.format = firstOf(q.Get("default_format"), r.Header.Get("X-ClickHouse-Format"), "TabSeparated")
	req.session = q.Get("session_id")
	req.sessionCheck = isTrue(q.Get("session_check"))
	req.compress, req.decompress = isTrue(q.Get("compress")), isTrue(q.Get("decompress"))
	req.waitEnd = isTrue(q.Get("wait_end_of_query"))
	if q.Get("enable_http_compression") != "0" {
		req.acceptEncoding = r.Header.Get("Accept-Encoding")
	}
	if v := q.Get("client_protocol_version"); v != "" {
		if req.protocol, err = strconv.ParseUint(v, 10, 64); err != nil {
			return req, exception(36, "BAD_ARGUMENTS", "client_protocol_version is not a number: %s", v)
		}
	}
	if req.sessionTimeout, err = sessionTimeout(q.Get("session_timeout")); err != nil {
		return req, err
	}
	req.takeSettings(q)
	return req, nil
}

// takeSettings sorts the URL parameters that remain into settings and values of placeholders.
func (req *request) takeSettings(q url.Values) {
	for name, values := range q {
		value := values[len(values)-1]
		if param, ok := strings.CutPrefix(name, "param_"); ok {
			req.params = append(req.params, libchdb.Param{Name: param, Value: value})
			continue
		}
		if notSettings[name] || req.isExternal(name) {
			continue
		}
		if name == "network_compression_method" {
			req.method = strings.ToUpper(value)
		}
		req.settings = append(req.settings, libchdb.Param{Name: name, Value: value})
	}
	sort.Slice(req.settings, func(i, j int) bool { return req.settings[i].Name < req.settings[j].Name })
}

// authenticate compares the credentials in the order in which clickhouse-server looks for them.
func (s *Server) authenticate(r *http.Request, q url.Values) error {
	if s.cfg.User == "" && s.cfg.Password == "" {
		return nil
	}
	user, password := r.Header.Get("X-ClickHouse-User"), r.Header.Get("X-ClickHouse-Key")
	if user == "" && password == "" {
		if u, p, ok := r.BasicAuth(); ok {
			user, password = u, p
		} else {
			user, password = q.Get("user"), q.Get("password")
		}
	}
	user = firstOf(user, "default")
	sameUser := subtle.ConstantTimeCompare([]byte(user), []byte(firstOf(s.cfg.User, "default")))
	samePassword := subtle.ConstantTimeCompare([]byte(password), []byte(s.cfg.Password))
	if sameUser&samePassword != 1 {
		return exception(codeAuthentication, "AUTHENTICATION_FAILED", "%s: Authentication failed: password is incorrect, or there is no user with such name.", user)
	}
	return nil
}

func sessionTimeout(text string) (time.Duration, error) {
	if text == "" {
		return time.Minute, nil
	}
	seconds, err := strconv.Atoi(text)
	if err != nil || seconds < 0 || seconds > 3600 {
		return 0, exception(374, "INVALID_SESSION_TIMEOUT", "Invalid session timeout: %s", text)
	}
	return time.Duration(seconds) * time.Second, nil
}

func firstOf(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

func isTrue(v string) bool { return v == "1" || strings.EqualFold(v, "true") }

func itoa(n int) string { return fmt.Sprint(n) }
