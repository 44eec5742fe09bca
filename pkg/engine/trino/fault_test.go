package trino_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/trino"
)

// client opens a fake with little patience.
func client(t *testing.T, f *fake) engine.Engine {
	t.Helper()
	return open(t, trino.Config{Name: "c", URL: f.URL, Database: "lake.web", RetryFor: 300 * time.Millisecond})
}

// read submits and reads to the end.
func read(ctx context.Context, e engine.Engine, q engine.Query) (n int, err error) {
	if q.ID == "" {
		q.ID = "t-1/1"
	}
	if q.SQL == "" {
		q.SQL = "SELECT n FROM t"
	}
	rows, err := e.Submit(ctx, q)
	if err != nil {
		return 0, err
	}
	for rows.Next() {
		n++
		if _, err := rows.Values(); err != nil {
			_ = rows.Close()
			return n, err
		}
	}
	return n, errors.Join(rows.Err(), rows.Close())
}

func phase(t *testing.T, err error, want engine.Phase, code string) {
	t.Helper()
	var e *engine.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, want, e.Phase, "%v", err)
	require.Equal(t, code, e.Code, "%v", err)
	require.NotContains(t, err.Error(), "/v1/statement/", "a page's address lets anybody read it")
}

func status(code int) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		http.Error(w, "no", code)
		return true
	}
}

// on applies a fault to requests whose method and path begin like this, the first so many times.
func on(prefix string, times int64, fault func(http.ResponseWriter, *http.Request) bool) func(http.ResponseWriter, *http.Request) bool {
	var n atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) bool {
		return strings.HasPrefix(r.Method+" "+r.URL.Path, prefix) && n.Add(1) <= times && fault(w, r)
	}
}

func hangUp(w http.ResponseWriter, r *http.Request) bool {
	_, _ = io.Copy(io.Discard, r.Body)
	if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
		_ = conn.Close()
	}
	return true
}

const (
	always = 1 << 30
	post   = "POST /v1/statement"
	first  = "GET /v1/statement/queued/q1/0"
	second = "GET /v1/statement/queued/q1/1"
)

func TestWhatIsLostBeforeTheFirstPageHasNotRun(t *testing.T) {
	for name, c := range map[string]struct {
		fault func(http.ResponseWriter, *http.Request) bool
		code  string
	}{
		"hung up":                     {on(post, always, hangUp), ""},
		"a proxy without a server":    {on(post, always, status(502)), "http_502"},
		"still starting":              {on(post, always, status(503)), "http_503"},
		"too many requests":           {on(post, always, status(429)), "http_429"},
		"a wrong password":            {on(post, always, status(401)), "http_401"},
		"a header that it won't have": {on(post, always, status(400)), "http_400"},
		"no Trino":                    {on(post, always, status(404)), "http_404"},
		"redirected":                  {on(post, always, status(307)), "http_307"},
		"garbage": {on(post, always, func(w http.ResponseWriter, _ *http.Request) bool {
			_, _ = w.Write([]byte("<html>welcome</html>"))
			return true
		}), ""},
		"an answer of something else": {on(post, always, func(w http.ResponseWriter, _ *http.Request) bool {
			_, _ = w.Write([]byte(`{"status": "ok"}`))
			return true
		}), ""},
		"nobody can say whether it runs already": {on("GET /v1/query", always, status(403)), "http_403"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, one, last)
			f.set(c.fault)
			rows, err := client(t, f).Submit(t.Context(), engine.Query{ID: "t-1/1", SQL: "SELECT 1"})
			if rows != nil { // require.Nil would let a nil pointer pass
				t.Fatal("whoever looks at the result instead of the error must find none")
			}
			phase(t, err, engine.NotSent, c.code)
			require.Zero(t, f.seen("GET /v1/statement"), "nothing was started")
			require.LessOrEqual(t, f.seen(post), 2)
		})
	}
}

func TestALostPostIsSentAgain(t *testing.T) {
	f := newFake(t, one, last)
	f.set(on(post, 1, hangUp))
	n, err := read(t.Context(), client(t, f), engine.Query{})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Equal(t, 2, f.seen(post))
}

func TestPagesAreAskedForAgain(t *testing.T) {
	for name, fault := range map[string]func(http.ResponseWriter, *http.Request) bool{
		"hung up":           hangUp,
		"a proxy restarts":  status(502),
		"too many requests": status(429),
		"cut in the middle": func(w http.ResponseWriter, _ *http.Request) bool {
			_, _ = w.Write([]byte(`{"id": "q1", "data": [[1], [`))
			panic(http.ErrAbortHandler)
		},
		"garbage once": func(w http.ResponseWriter, _ *http.Request) bool {
			_, _ = w.Write([]byte(`oops`))
			return true
		},
	} {
		for _, page := range []string{first, second} {
			t.Run(name+", "+page, func(t *testing.T) {
				f := newFake(t, one, one, last)
				f.set(on(page, 2, fault))
				n, err := read(t.Context(), client(t, f), engine.Query{SubmitBefore: time.Now().Add(time.Minute)})
				require.NoError(t, err)
				require.Equal(t, 2, n, "no row twice, and none lost")
				require.Equal(t, 1, f.seen(post))
			})
		}
	}
}

func TestAPageThatNeverComes(t *testing.T) {
	for name, c := range map[string]struct {
		fault func(http.ResponseWriter, *http.Request) bool
		phase engine.Phase
		code  string
	}{
		"hung up":                         {hangUp, engine.SentUnknown, ""},
		"a proxy without a server":        {status(502), engine.SentUnknown, "http_502"},
		"too many requests":               {status(429), engine.SentUnknown, "http_429"},
		"the server was started anew":     {status(404), engine.Answered, "http_404"},
		"the server has forgotten it":     {status(410), engine.Answered, "http_410"},
		"the credential has run out":      {status(403), engine.Answered, "http_403"},
		"the address leads elsewhere now": {status(307), engine.Answered, "http_307"},
	} {
		for _, page := range []string{first, second} {
			t.Run(name+", "+page, func(t *testing.T) {
				f := newFake(t, one, one, last)
				f.set(on(page, always, c.fault))
				began := time.Now()
				_, err := read(t.Context(), client(t, f), engine.Query{SubmitBefore: time.Now().Add(time.Second)})
				phase(t, err, c.phase, c.code)
				require.NotErrorIs(t, err, engine.ErrGuardExpired, "whoever reads that may send it again")
				require.Less(t, time.Since(began), 8*time.Second)
				if c.phase == engine.Answered {
					require.Positive(t, f.seen("DELETE /v1/query/q1"), "what nobody reads on is stopped")
				}
			})
		}
	}
}

func TestTheGuardIsOnTheFirstPageAlone(t *testing.T) {
	f := newFake(t, one, last)
	f.set(on(post, 1, func(http.ResponseWriter, *http.Request) bool {
		time.Sleep(150 * time.Millisecond)
		return false
	}))
	_, err := read(t.Context(), client(t, f), engine.Query{SubmitBefore: time.Now().Add(100 * time.Millisecond)})
	require.ErrorIs(t, err, engine.ErrGuardExpired)
	phase(t, err, engine.NotSent, "")
	require.Zero(t, f.seen("GET /v1/statement"))
	require.Positive(t, f.seen("DELETE /v1/statement/queued/q1"), "what was posted is taken back")

	// Rows may be read for as long as it takes.
	f = newFake(t, one, one, one, last)
	f.set(on(second, 1, func(http.ResponseWriter, *http.Request) bool {
		time.Sleep(200 * time.Millisecond)
		return false
	}))
	n, err := read(t.Context(), client(t, f), engine.Query{SubmitBefore: time.Now().Add(100 * time.Millisecond)})
	require.NoError(t, err)
	require.Equal(t, 3, n)
}

func TestAServerThatSaysNothing(t *testing.T) {
	silent := make(chan struct{})
	hang := func(_ http.ResponseWriter, r *http.Request) bool {
		_, _ = io.Copy(io.Discard, r.Body) // else the server does not see that its client has gone
		select {
		case <-silent:
		case <-r.Context().Done():
		}
		return true
	}
	for _, c := range []struct {
		prefix string
		want   engine.Phase
		code   string
	}{
		{post, engine.NotSent, ""}, {first, engine.Answered, "3"}, {second, engine.Answered, "3"},
	} {
		t.Run(c.prefix, func(t *testing.T) {
			f := newFake(t, one, one, last)
			f.set(on(c.prefix, always, hang))
			ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, errors.New("waited long enough"))
			defer cancel()
			_, err := read(ctx, client(t, f), engine.Query{})
			phase(t, err, c.want, c.code)
			require.ErrorContains(t, err, "waited long enough")
		})
	}
	t.Run("nor to a kill", func(t *testing.T) {
		f := newFake(t, one, one, last)
		f.set(func(w http.ResponseWriter, r *http.Request) bool {
			return (strings.HasPrefix(r.URL.Path, "/v1/statement/queued/q1/1") || strings.HasPrefix(r.URL.Path, "/v1/query/")) && hang(w, r)
		})
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		began := time.Now()
		_, err := read(ctx, client(t, f), engine.Query{})
		phase(t, err, engine.SentUnknown, "")
		require.Less(t, time.Since(began), 8*time.Second)
	})
	close(silent)
}

func TestRowsThatAreNone(t *testing.T) {
	for name, page := range map[string]string{
		"too few values":          column + `"data": [[]], ` + running,
		"too many values":         column + `"data": [[1, 2]], ` + running,
		"no columns":              `"data": [[1]], ` + running,
		"a value of another type": column + `"data": [["one"]], ` + running,
		"columns of nothing":      `"columns": [` + strings.Repeat(`{"name": "", "type": "unknown"},`, engine.MostColumns) + `{"name": "", "type": "unknown"}], ` + running,
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, page, last)
			_, err := read(t.Context(), client(t, f), engine.Query{})
			phase(t, err, engine.Answered, "")
			require.Positive(t, f.seen("DELETE /v1/query/q1"))
		})
	}
}

func TestErrorsOfTheServer(t *testing.T) {
	f := newFake(t, one, `"stats": {"state": "FAILED"}, "error": {"message": "it broke", "errorCode": 65558, "errorName": "REMOTE_HOST_GONE", "errorType": "INTERNAL_ERROR"}`)
	n, err := read(t.Context(), client(t, f), engine.Query{})
	require.Equal(t, 1, n)
	phase(t, err, engine.Answered, "65558")
	require.EqualError(t, err, "it broke")
	require.Zero(t, f.seen("DELETE"), "it is over")
}

func TestASecondOneOfTheSameAttemptIsNotStarted(t *testing.T) {
	f := newFake(t, one, last)
	f.list = `[{"queryId": "other", "state": "RUNNING", "session": {"traceToken": "t-9/1"}, "queryStats": {"executionTime": "1.00s"}},
		{"queryId": "twin", "state": "QUEUED", "session": {"clientTags": ["t-1/1"]}, "queryStats": {"executionTime": "1.00s", "progressPercentage": "NaN"}}]`
	_, err := read(t.Context(), client(t, f), engine.Query{})
	phase(t, err, engine.SentUnknown, "")
	require.ErrorContains(t, err, "twin")
	require.Zero(t, f.seen("GET /v1/statement"))
	require.Zero(t, f.seen("DELETE /v1/query/twin"), "the one that runs is not harmed")
	require.Equal(t, 1, f.seen("DELETE /v1/statement/queued/q1"), "what was posted is taken back")

	// A query without an id, such as the canary, is no twin of others without one.
	f.mu.Lock()
	f.list = `[{"queryId": "other", "state": "RUNNING", "session": {}, "queryStats": {"executionTime": "1.00s"}}]`
	f.mu.Unlock()
	rows, err := client(t, f).Submit(t.Context(), engine.Query{SQL: "SELECT 1"})
	require.NoError(t, err)
	require.NoError(t, rows.Close())
}

// TestAServerThatGoesAwayUnderAQuery: a refused connection is proof that a submission has not left only if it has not.
func TestAServerThatGoesAwayUnderAQuery(t *testing.T) {
	f := newFake(t, one, one, last)
	rows, err := client(t, f).Submit(t.Context(), engine.Query{ID: "t-1/1", SQL: "INSERT INTO t SELECT 1"})
	require.NoError(t, err)
	f.CloseClientConnections()
	f.Close()
	for rows.Next() {
	}
	phase(t, rows.Err(), engine.SentUnknown, "")
	require.NoError(t, rows.Close())

	_, err = client(t, f).Find(t.Context(), "t-1/1")
	phase(t, errors.Unwrap(err), engine.NotSent, "")
}
