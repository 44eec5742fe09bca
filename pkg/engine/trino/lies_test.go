package trino_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/engine"
)

// TestAServerThatSaysItHasKilled: the server says yes to each DELETE. What counts is what it says of the query then, and that is waited for
// within a bound.
func TestAServerThatSaysItHasKilled(t *testing.T) {
	f := newFake(t, one, one, last)
	f.list = `[{"queryId": "deaf", "state": "RUNNING", "session": {"traceToken": "t-1/1"}, "queryStats": {"executionTime": "1.00s"}}]`
	f.set(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasPrefix(r.URL.Path, "/v1/query/deaf") {
			return false
		}
		if r.Method == http.MethodDelete {
			w.WriteHeader(http.StatusNoContent)
			return true
		}
		_, _ = w.Write([]byte(`{"queryId": "deaf", "state": "RUNNING", "finalQueryInfo": false, "queryStats": {"executionTime": "1.00s"}}`))
		return true
	})
	e := client(t, f)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	found, err := e.Kill(ctx, "t-1/1")
	require.True(t, found)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Greater(t, f.seen("DELETE /v1/query/deaf"), 1, "it is told again")
	run, err := e.Find(t.Context(), "t-1/1")
	require.NoError(t, err)
	require.Equal(t, engine.RunActive, run.State)
}
