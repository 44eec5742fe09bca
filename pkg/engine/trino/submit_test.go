package trino_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/trino"
)

func TestWhatASubmissionCarries(t *testing.T) {
	f := newFake(t, one, last)
	e := open(t, trino.Config{Name: "c", URL: f.URL, Database: "lake.web", ClientTags: []string{"etl"}})
	_, err := read(t.Context(), e, engine.Query{
		ID: "task-7/2", Database: "orders", MaxMemoryBytes: 1000, MaxExecution: 1500 * time.Millisecond,
		Settings: map[string]string{"time_zone_id": "Asia/Tokyo", "lake.filter": "a=b,c d", trino.ClientTags: "narrow,deep"},
	})
	require.NoError(t, err)
	h := f.post()
	for name, want := range map[string]string{
		"X-Trino-User": "pm", "X-Trino-Source": "pointsman", "X-Trino-Catalog": "lake", "X-Trino-Schema": "orders",
		"X-Trino-Trace-Token": "task-7/2", "X-Trino-Client-Tags": "etl,narrow,deep,task-7/2", "X-Trino-Client-Capabilities": "PARAMETRIC_DATETIME",
		"Authorization": "",
	} {
		require.Equal(t, want, h.Get(name), name)
	}
	require.Equal(t, []string{
		"lake.filter=a%3Db%2Cc%20d", "query_max_execution_time=1500ms", "query_max_memory=1000B", "query_max_memory_per_node=1000B", "time_zone_id=Asia%2FTokyo",
	}, h.Values("X-Trino-Session"))

	for database, want := range map[string][2]string{"": {"lake", "web"}, "other.thing": {"other", "thing"}, "other.": {"other", ""}} {
		_, err := read(t.Context(), e, engine.Query{Database: database})
		require.NoError(t, err)
		require.Equal(t, want, [2]string{f.post().Get("X-Trino-Catalog"), f.post().Get("X-Trino-Schema")}, database)
	}
	for _, q := range []engine.Query{{Settings: map[string]string{"a=b": "c"}}, {Settings: map[string]string{"": "c"}}, {Database: "a\nX-Trino-User: root"}} {
		before := f.seen(post)
		_, err := read(t.Context(), e, q)
		var failed *engine.Error
		require.ErrorAs(t, err, &failed)
		require.Equal(t, engine.NotSent, failed.Phase)
		require.NotEmpty(t, failed.Code)
		require.Equal(t, before, f.seen(post))
	}
}

func TestOpen(t *testing.T) {
	for name, c := range map[string]trino.Config{
		"no scheme":                {URL: "localhost:8080", User: "u"},
		"another scheme":           {URL: "ftp://localhost:8080", User: "u"},
		"a path":                   {URL: "http://localhost:8080/ui", User: "u"},
		"a user in the url":        {URL: "http://u:secret@localhost:8080", User: "u"},
		"no user":                  {URL: "http://localhost:8080"},
		"a password in the clear":  {URL: "http://localhost:8080", User: "u", Password: "secret"},
		"a url that can't be read": {URL: "http://u:secret@local host", User: "u"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := trino.Open(c)
			require.Error(t, err)
			require.NotContains(t, err.Error(), "secret")
		})
	}
}

func TestLists(t *testing.T) {
	f := newFake(t)
	e := client(t, f)
	entry := func(id, state, more string) string {
		return fmt.Sprintf(`{"queryId": %q, "state": %q, "session": {"traceToken": "t-1/1"}, "queryStats": {"executionTime": "2.00s", "rawInputPositions": 5, "physicalInputDataSize": "10B"%s}}`, id, state, more)
	}
	for name, c := range map[string]struct {
		list string
		want engine.RunState
	}{
		"nothing":                                   {`[]`, engine.RunUnknown},
		"one that runs":                             {`[` + entry("a", "RUNNING", "") + `]`, engine.RunActive},
		"one that waits":                            {`[` + entry("a", "QUEUED", "") + `]`, engine.RunActive},
		"one that commits":                          {`[` + entry("a", "FINISHING", "") + `]`, engine.RunActive},
		"one that failed, one that runs":            {`[` + entry("a", "FAILED", "") + `,` + entry("b", "RUNNING", "") + `]`, engine.RunActive},
		"one that failed":                           {`[` + entry("a", "FAILED", "") + `]`, engine.RunFailed},
		"one that failed, and one that went well":   {`[` + entry("b", "FINISHED", "") + `,` + entry("c", "FAILED", "") + `]`, engine.RunFinished},
		"another attempt whose id begins like ours": {strings.ReplaceAll(`[`+entry("a", "RUNNING", "")+`]`, "t-1/1", "t-1/11"), engine.RunUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			f.mu.Lock()
			f.list = c.list
			f.mu.Unlock()
			run, err := e.Find(t.Context(), "t-1/1")
			require.NoError(t, err)
			require.Equal(t, c.want, run.State)
			require.Equal(t, name == "one that waits", run.Waiting)
		})
	}
	for _, list := range []string{`{}`, `[`, `[{]`, `nothing`, `[{"queryStats": {"executionTime": 7}}]`, ``} {
		f.mu.Lock()
		f.list = list
		f.mu.Unlock()
		_, err := e.Find(t.Context(), "t-1/1")
		require.Error(t, err, "what can't be read says nothing of whether it runs: %s", list)
	}
}

// TestOwnQueriesAreAskedForByTheirID: a list of all queries for each look would be dear.
func TestOwnQueriesAreAskedForByTheirID(t *testing.T) {
	f := newFake(t, one, one, last)
	e := client(t, f)
	rows, err := e.Submit(t.Context(), engine.Query{ID: "t-1/1", SQL: "SELECT n FROM t"})
	require.NoError(t, err)
	lists := f.seen("GET /v1/query") - f.seen("GET /v1/query/")
	run, err := e.Find(t.Context(), "t-1/1")
	require.NoError(t, err)
	require.Equal(t, engine.RunActive, run.State)
	require.Equal(t, 1, f.seen("GET /v1/query/q1"))
	require.Equal(t, lists, f.seen("GET /v1/query")-f.seen("GET /v1/query/"))
	require.NoError(t, rows.Close())
	asked := f.seen("GET /v1/query/q1")
	_, err = e.Find(t.Context(), "t-1/1")
	require.NoError(t, err)
	require.Equal(t, asked, f.seen("GET /v1/query/q1"), "what is over is nobody's own")
}
