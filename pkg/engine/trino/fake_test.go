package trino_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// fake answers like a coordinator whose queries do what a test says, page by page. What no real server can be brought to do is
// tested against it; how a real one behaves is not for it to say.
type fake struct {
	*httptest.Server

	mu     sync.Mutex
	pages  []string // of each query, by token; the last one ends it
	fault  func(w http.ResponseWriter, r *http.Request) bool
	calls  []string // method and path
	heads  []http.Header
	killed map[string]bool
	posted int
	begun  map[string]bool
	list   string // of /v1/query
}

func newFake(t *testing.T, pages ...string) *fake {
	f := &fake{pages: pages, killed: map[string]bool{}, begun: map[string]bool{}, list: "[]"}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

// set makes something happen to requests; it says true when it has answered.
func (f *fake) set(fault func(w http.ResponseWriter, r *http.Request) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault = fault
}

// seen counts requests whose method and path begin like this.
func (f *fake) seen(prefix string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, c := range f.calls {
		if strings.HasPrefix(c, prefix) {
			n++
		}
	}
	return n
}

// post is the header of the newest POST.
func (f *fake) post() http.Header {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, call := range slices.Backward(f.calls) {
		if strings.HasPrefix(call, "POST") {
			return f.heads[i]
		}
	}
	return nil
}

// ServeHTTP is the coordinator.
func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.calls = append(f.calls, r.Method+" "+r.URL.Path)
	f.heads = append(f.heads, r.Header.Clone())
	fault := f.fault
	f.mu.Unlock()
	if fault != nil && fault(w, r) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case r.Method == http.MethodPost:
		f.posted++
		f.answer(w, fmt.Sprintf("q%d", f.posted), -1)
	case len(parts) == 5 && r.Method == http.MethodGet: // v1/statement/queued/q1/0
		var token int
		_, _ = fmt.Sscan(parts[4], &token)
		f.begun[parts[3]] = true
		f.answer(w, parts[3], token)
	case r.Method == http.MethodDelete:
		f.killed[parts[len(parts)-1]] = true
		if len(parts) == 5 {
			f.killed[parts[3]] = true
		}
		w.WriteHeader(http.StatusNoContent)
	case r.URL.Path == "/v1/query":
		_, _ = w.Write([]byte(f.list))
	case len(parts) == 3 && parts[1] == "query":
		if !f.begun[parts[2]] {
			http.Error(w, "gone", http.StatusGone)
			return
		}
		state := "RUNNING"
		if f.killed[parts[2]] {
			state = "FAILED"
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"queryId": parts[2], "state": state, "finalQueryInfo": state == "FAILED"})
	default:
		http.NotFound(w, r)
	}
}

// answer gives one page. The address of the next one names a host that nobody can reach, as one behind a proxy might.
func (f *fake) answer(w http.ResponseWriter, id string, token int) {
	if f.killed[id] {
		fmt.Fprintf(w, `{"id": %q, "stats": {"state": "FAILED"}, "error": {"message": "Query was canceled", "errorCode": 3, "errorName": "USER_CANCELED", "errorType": "USER_ERROR"}}`, id)
		return
	}
	page := `"stats": {"state": "QUEUED", "progressPercentage": "NaN"}`
	if token >= 0 && token < len(f.pages) {
		page = f.pages[token]
	}
	next := ""
	if token < len(f.pages)-1 {
		next = fmt.Sprintf(`"nextUri": "http://coordinator.internal:1/v1/statement/queued/%s/%d", `, id, token+1)
	}
	fmt.Fprintf(w, `{"id": %q, %s%s}`, id, next, page)
}

const (
	running = `"stats": {"state": "RUNNING", "processedRows": 1}`
	column  = `"columns": [{"name": "n", "type": "bigint", "typeSignature": {"rawType": "bigint", "arguments": []}}], `
	one     = column + `"data": [[1]], ` + running
	last    = column + `"stats": {"state": "FINISHED", "processedRows": 2}`
)
