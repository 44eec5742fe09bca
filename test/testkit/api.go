package testkit

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/services/intake"
)

// API is a client of intake.
type API struct {
	t    testing.TB
	base string
}

// NewAPI makes a client of the intake at an address.
func NewAPI(t testing.TB, addr string) *API { return &API{t: t, base: "http://" + addr} }

// Answer is an HTTP answer, read to its end.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Do sends a request. headers are names and values in turn. An error means that no answer came.
func (a *API) Do(method, path, body string, headers ...string) (Answer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, a.base+path, strings.NewReader(body))
	require.NoError(a.t, err)
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return Answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	return Answer{resp.StatusCode, resp.Header, data}, err
}

// Must sends a request and requires a status.
func (a *API) Must(status int, method, path, body string, headers ...string) Answer {
	a.t.Helper()
	answer, err := a.Do(method, path, body, headers...)
	require.NoError(a.t, err)
	require.Equal(a.t, status, answer.Status, string(answer.Body))
	return answer
}

// JSON reads the body.
func (a Answer) JSON(t testing.TB, into any) {
	t.Helper()
	require.NoError(t, json.Unmarshal(a.Body, into), string(a.Body))
}

// Submit hands a request in and gives the Task's id.
func (a *API) Submit(body string, headers ...string) string {
	a.t.Helper()
	var accepted intake.Accepted
	a.Must(http.StatusAccepted, "POST", "/v1/queries", body, headers...).JSON(a.t, &accepted)
	require.NotEmpty(a.t, accepted.TaskID)
	return accepted.TaskID
}

// Wait hands a request in and waits for its Outcome in the same request.
func (a *API) Wait(body string, headers ...string) intake.TaskAnswer {
	a.t.Helper()
	var answer intake.TaskAnswer
	a.Must(http.StatusOK, "POST", "/v1/queries?wait=60s", body, headers...).JSON(a.t, &answer)
	require.NotNil(a.t, answer.Outcome)
	return answer
}

// Event is one event of a stream.
type Event struct {
	ID, Type string
	Data     json.RawMessage
}

// Follow reads a Task's event stream to its end.
func (a *API) Follow(id string) (out []Event) {
	a.t.Helper()
	body := a.Must(http.StatusOK, "GET", "/v1/tasks/"+id+"/events", "", "Accept", "text/event-stream").Body
	var e Event
	lines := bufio.NewScanner(bytes.NewReader(body))
	lines.Buffer(nil, 8<<20)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "id":
			e.ID = value
		case "event":
			e.Type = value
		case "data":
			e.Data = append(e.Data, value...)
		case "":
			if len(e.Data) > 0 {
				out = append(out, e)
			}
			e = Event{}
		}
	}
	require.NoError(a.t, lines.Err())
	return out
}
