package profiler_test

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/event"
)

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(body)
}

func TestConsole(t *testing.T) {
	b := newBench(t)
	b.live(0, 20)
	big := outcome(1000)
	big.Stats.ReadBytes = new(int64(9007199254740993))
	big.Cluster = "big"
	b.send(event.TopicOutcomes, big.TaskID, event.TaskEnded, big)
	app, _ := b.start(b.cfg)
	b.caughtUp()
	base := "http://" + app.Console().String()

	status, body := get(t, base+"/v1/summary?since=1h")
	require.Equal(t, http.StatusOK, status, body)
	var s struct {
		Submitted string
		SLA       struct{ N, Hits string }
		Rescued   string
	}
	require.NoError(t, json.Unmarshal([]byte(body), &s))
	require.Equal(t, "20", s.Submitted)
	require.Equal(t, "21", s.SLA.N)
	require.Equal(t, "4", s.Rescued)
	require.Contains(t, body, `"9007199254740993"`, "K22: exact in a browser too")

	require.Eventually(t, func() bool {
		status, body = get(t, base+"/v1/queues?since="+time.Now().Add(-time.Hour).UTC().Format(time.RFC3339))
		return status == http.StatusOK && body != "[]\n"
	}, 10*time.Second, 50*time.Millisecond)
	for _, bad := range []string{"yesterday", "-1h", "2126-01-01T00:00:00Z"} {
		status, body = get(t, base+"/v1/summary?since="+bad)
		require.Equal(t, http.StatusBadRequest, status, body)
		require.Contains(t, body, "since")
	}
}
