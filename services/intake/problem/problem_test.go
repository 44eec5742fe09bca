package problem_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/services/intake/problem"
)

func TestEveryCodeHasAStatusAndATitle(t *testing.T) {
	require.NotEmpty(t, problem.Codes())
	for _, c := range problem.Codes() {
		p := problem.New(c, "")
		require.GreaterOrEqual(t, p.Status, 400, c)
		require.Equal(t, c.Status(), p.Status)
		require.NotEmpty(t, p.Title, c)
	}
	require.Equal(t, 500, problem.Code("made up").Status())
	require.Equal(t, problem.Internal, problem.New("made up", "").Code)
}

func TestWrite(t *testing.T) {
	w := httptest.NewRecorder()
	problem.New(problem.RateLimited, "slow down").After(1500 * time.Millisecond).About("t-1").Because(errors.New("secret")).Write(w)
	require.Equal(t, 429, w.Code)
	require.Equal(t, problem.ContentType, w.Header().Get("Content-Type"))
	require.Equal(t, "2", w.Header().Get("Retry-After"))
	require.NotContains(t, w.Body.String(), "secret")
	var got map[string]any
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &got))
	require.Equal(t, "urn:pointsman:problem:rate_limited", got["type"])
	require.Equal(t, "t-1", got["taskId"])

	w = httptest.NewRecorder()
	problem.New(problem.Unauthorized, "").Write(w)
	require.Contains(t, w.Header().Get("WWW-Authenticate"), "Bearer")
}

func TestOf(t *testing.T) {
	inner := problem.New(problem.NotFinished, "")
	require.Same(t, inner, problem.Of(fmt.Errorf("deep: %w", inner)))
	other := problem.Of(errors.New("password is hunter2"))
	require.Equal(t, 500, other.Status)
	require.NotContains(t, other.Error(), "hunter2")
	require.ErrorContains(t, errors.Unwrap(other), "hunter2")
}

func TestOfTaskListsEveryField(t *testing.T) {
	minus := -1.0
	err := query.Task{ID: "a/b", SLASeconds: &minus}.Validate(query.Limits{})
	p := problem.OfTask(err)
	require.Equal(t, 422, p.Status)
	var fields []string
	for _, f := range p.Errors {
		fields = append(fields, f.Field)
	}
	require.Equal(t, []string{"id", "sql", "tenant", "slaSeconds"}, fields)

	p = problem.OfTask(query.Task{Tenant: "t", SQL: "SELECT 1"}.Validate(query.Limits{MaxSQLBytes: 1}))
	require.Equal(t, 413, p.Status)
}

func TestOfJSON(t *testing.T) {
	for in, want := range map[string]problem.Code{
		`{"sql":1}`: problem.WrongType, `{`: problem.NotJSON, `[]`: problem.NotJSON, ``: problem.NotJSON,
	} {
		var task query.Task
		err := task.UnmarshalJSON([]byte(in))
		require.Error(t, err)
		p := problem.OfJSON(err)
		require.Equal(t, want, p.Code, in)
		require.Equal(t, 400, p.Status)
		require.NotEmpty(t, p.Detail)
	}
}
