package scenario

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/route"
	"github.com/pointsman/pointsman/services/intake"
	"github.com/pointsman/pointsman/test/testkit"
)

// Patience bounds the wait for one Task on a busy machine.
const Patience = 90 * time.Second

// Seed is the request of the first seed, as a producer would write it.
const Seed = `{"dataset":"orders","queryType":"aggregation","sql":"SELECT channel, SUM(payment_amount) FROM orders GROUP BY channel",` +
	`"tenant":"tenant_a","user":"user_1001","slaSeconds":10}`

// small is a request that the interactive pool answers in milliseconds.
func small(fields string) string {
	return `{"sql":"SELECT n_name FROM tpch.nation WHERE n_nationkey < 3 ORDER BY n_nationkey","tenant":"tenant_a","slaSeconds":20` + fields + `}`
}

// MainPath plays what a user meets, in the order of a first day. Each step leaves the system ready for the next one. It returns the
// ids of all Tasks.
func MainPath(t *testing.T, w *testkit.World, api *testkit.API) (ids []string) {
	day := &day{w: w, api: api}
	for _, step := range []struct {
		name string
		play func(t *testing.T)
	}{
		{"the seed's JSON on the topic gets an outcome", day.bareRecord},
		{"kcat is enough to be a producer", day.kcat},
		{"HTTP: wait, result, task, events, explain", day.http},
		{"killed by interactive's memory, succeeds on batch as attempt 2", day.rescue},
		{"later runs go to batch at once, because of history", day.history},
		{"an agent over its budget is told what to do", day.budget},
		{"a cancelled query is gone from the engine", day.cancel},
		{"a large result is a file", day.largeResult},
		{"a lost answer is looked up, and never submitted again", day.lostAnswer},
	} {
		if !t.Run(step.name, step.play) {
			break // the next one relies on it
		}
	}
	return day.ids
}

type day struct {
	w   *testkit.World
	api *testkit.API
	ids []string
}

// ran notes Tasks for the judgement at the end.
func (d *day) ran(ids ...string) { d.ids = append(d.ids, ids...) }

func (d *day) bareRecord(t *testing.T) {
	rec := d.w.Produce(&kgo.Record{Value: []byte(Seed)})[0]
	id := query.IDFromRecord(event.TopicRequests, rec.Partition, rec.Offset)
	d.ran(id)
	o := d.w.Log.Outcome(id, Patience)
	// The lakehouse of the demo has no such table: the engine says so, and that is the answer.
	require.Equal(t, event.Failed, o.Status)
	require.Equal(t, "semantic", o.Failure.Class)
	require.Equal(t, 1, o.Attempts, "what no engine can answer is tried once")
	require.Equal(t, "tenant_a", o.Tenant)
	require.EqualValues(t, 10_000, o.SLAMs)

	rec = d.w.Produce(&kgo.Record{Value: []byte(strings.ReplaceAll(Seed, "SELECT channel, SUM(payment_amount) FROM orders GROUP BY channel",
		"SELECT o_orderstatus, sum(o_totalprice) FROM tpch.orders GROUP BY o_orderstatus ORDER BY 1"))})[0]
	id = query.IDFromRecord(event.TopicRequests, rec.Partition, rec.Offset)
	d.ran(id)
	o = d.w.Log.Outcome(id, Patience)
	require.Equal(t, event.Succeeded, o.Status)
	require.EqualValues(t, 3, o.Result.Rows)
	require.Equal(t, "interactive", o.Cluster)
}

func (d *day) kcat(t *testing.T) {
	path, err := exec.LookPath("kcat")
	if err != nil {
		t.Skip("kcat is not installed")
	}
	seen := len(d.w.Log.Records(event.TopicRequests))
	cmd := exec.Command(path, "-P", "-b", d.w.Stack.Brokers[0], "-t", d.w.Kafka.Topic(event.TopicRequests))
	cmd.Stdin = strings.NewReader(Seed + "\n" + small(``) + "\n")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Eventually(t, func() bool { return len(d.w.Log.Records(event.TopicRequests)) == seen+2 }, Patience, 20*time.Millisecond)
	for _, rec := range d.w.Log.Records(event.TopicRequests)[seen:] {
		id := query.IDFromRecord(event.TopicRequests, rec.Partition, rec.Offset)
		d.ran(id)
		o := d.w.Log.Outcome(id, Patience)
		if string(rec.Value) == Seed {
			require.Equal(t, "semantic", o.Failure.Class)
			continue
		}
		require.Equal(t, event.Succeeded, o.Status)
		require.JSONEq(t, `[["ALGERIA"],["ARGENTINA"],["BRAZIL"]]`, string(o.Result.Inline))
	}
}

func (d *day) http(t *testing.T) {
	answer := d.api.Wait(small(`,"session":{"id":"s-1","class":"human"},"novelty":9007199254740993`))
	id := answer.TaskID
	d.ran(id)
	require.Equal(t, event.Succeeded, answer.Outcome.Status)
	require.JSONEq(t, `[["ALGERIA"],["ARGENTINA"],["BRAZIL"]]`, string(answer.Outcome.Result.Inline))
	require.Contains(t, string(answer.Task), `"novelty":9007199254740993`, "what this version does not know is passed on as it came")

	var result intake.InlineResult
	d.api.Must(200, "GET", "/v1/tasks/"+id+"/result", "").JSON(t, &result)
	require.EqualValues(t, 3, result.RowCount)
	lines := d.api.Must(200, "GET", "/v1/tasks/"+id+"/result", "", "Accept", "application/x-ndjson").Body
	require.Equal(t, "[\"ALGERIA\"]\n[\"ARGENTINA\"]\n[\"BRAZIL\"]\n", string(lines))

	var task intake.TaskAnswer
	d.api.Must(200, "GET", "/v1/tasks/"+id, "").JSON(t, &task)
	require.Len(t, task.Attempts, 1)
	require.Equal(t, "succeeded", task.Attempts[0].State)
	var decision event.RouteDecision
	require.NoError(t, json.Unmarshal(task.Decision, &decision))
	require.NotEmpty(t, decision.Reasons)
	require.NotEmpty(t, decision.Candidates, "the explanation is part of the decision")

	var types []string
	for _, e := range d.api.Follow(id) {
		types = append(types, e.Type)
	}
	require.Equal(t, []string{"accepted", "decision", "attempt"}, types[:min(len(types), 3)], "causes come before effects")
	require.Equal(t, "outcome", types[len(types)-1], "%v", types)

	words := d.api.Must(200, "POST", "/v1/explain", small(``), "Accept", "text/plain").Body
	require.Contains(t, string(words), "interactive")
	require.Contains(t, string(words), "batch", "the loser is explained too")
	require.Contains(t, string(words), "What would have changed it:")
	require.Contains(t, string(words), "transformations did not match")

	again := d.api.Must(http.StatusAccepted, "POST", "/v1/queries", small(``), "Idempotency-Key", "k-1")
	twice := d.api.Must(http.StatusAccepted, "POST", "/v1/queries", small(``), "Idempotency-Key", "k-1")
	require.Equal(t, "true", twice.Header.Get("Idempotency-Replayed"))
	var one, two intake.Accepted
	again.JSON(t, &one)
	twice.JSON(t, &two)
	require.Equal(t, one.TaskID, two.TaskID)
	d.ran(one.TaskID)
	require.Equal(t, event.Succeeded, d.w.Log.Outcome(one.TaskID, Patience).Status)
}

// wide is a request for more than the interactive pool's memory holds.
var wide = fmt.Sprintf(`{"sql":%q,"tenant":"tenant_a","slaSeconds":60}`, testkit.Wide)

func (d *day) rescue(t *testing.T) {
	answer := d.api.Wait(wide)
	d.ran(answer.TaskID)
	o := answer.Outcome
	require.Equal(t, event.Succeeded, o.Status, "%+v", o.Failure)
	require.Equal(t, 2, o.Attempts)
	require.True(t, o.Rerouted)
	require.Equal(t, "batch", o.Cluster)
	first := d.w.Log.Attempt(answer.TaskID, 1, "failed", Patience)
	require.Equal(t, "interactive", first.Cluster)
	require.Equal(t, "memory_limit", first.Failure.Class)
	require.Equal(t, "241", first.Failure.Code)
	require.Eventually(t, func() bool {
		return d.w.Count("SELECT count() FROM v_rescued WHERE task_id = {id:String}", named("id", answer.TaskID)) == 1
	}, Patience, 200*time.Millisecond, "and a plain SELECT shows it")
}

func (d *day) history(t *testing.T) {
	// The kill is in history a second or so after it happened; explain says when the router knows.
	require.Eventually(t, func() bool {
		var advice route.Explanation
		d.api.Must(200, "POST", "/v1/explain", wide).JSON(t, &advice)
		return advice.Decision.Cluster == "batch"
	}, Patience, 300*time.Millisecond)
	answer := d.api.Wait(wide)
	d.ran(answer.TaskID)
	require.Equal(t, event.Succeeded, answer.Outcome.Status)
	require.Equal(t, 1, answer.Outcome.Attempts)
	require.Equal(t, "batch", answer.Outcome.Cluster)
	require.Contains(t, answer.Outcome.Reasons, "history_memory_kill")
}

func (d *day) budget(t *testing.T) {
	const most = 24 // of the shipped policy
	body := small(`,"session":{"id":"agent-1","class":"agent"}`)
	var last event.Outcome
	for n := 1; n <= most+1; n++ {
		answer := d.api.Wait(body)
		d.ran(answer.TaskID)
		last = *answer.Outcome
		if n <= most {
			require.Equal(t, event.Succeeded, last.Status, "query %d of the session", n)
		}
	}
	require.Equal(t, event.Rejected, last.Status)
	require.Equal(t, "session_query_budget", last.Rejection.Code)
	require.NotEmpty(t, last.Rejection.Message)
	require.NotEmpty(t, last.Rejection.Suggestion, "an agent has to know what would be let through")
	require.Contains(t, last.Rejection.Left, "queries")
	require.Zero(t, last.Attempts)
}

// sleeper runs for a minute and takes no processor.
const sleeper = `{"sql":"SELECT sum(sleepEachRow(0.5)) FROM numbers(120) SETTINGS max_block_size = 1","tenant":"tenant_a","timeoutSeconds":90}`

func (d *day) cancel(t *testing.T) {
	id := d.api.Submit(sleeper)
	d.ran(id)
	running := d.w.Log.Attempt(id, 1, "running", Patience)
	engine := d.w.Engine(running.Cluster)
	attempt := query.AttemptID(id, 1)
	require.Equal(t, 1, engine.Running(t, attempt), "the engine knows it by the attempt's id")
	began := time.Now()
	d.api.Must(http.StatusAccepted, "DELETE", "/v1/tasks/"+id+"?reason=changed+my+mind", "")
	o := d.w.Log.Outcome(id, Patience)
	require.Less(t, time.Since(began), 30*time.Second, "it ended because it was cancelled")
	require.Equal(t, event.Cancelled, o.Status)
	require.Equal(t, "cancelled_by_user", o.Failure.Class)
	require.Contains(t, o.Failure.Message, "changed my mind")
	require.Zero(t, engine.Running(t, attempt), "it is gone from the engine when the outcome says so")
}

func (d *day) largeResult(t *testing.T) {
	const rows = 20_000
	answer := d.api.Wait(fmt.Sprintf(`{"sql":"SELECT l_orderkey, l_linenumber, repeat(l_comment, 3) AS text FROM tpch.lineitem ORDER BY 1, 2 LIMIT %d","tenant":"tenant_a"}`, rows))
	d.ran(answer.TaskID)
	r := answer.Outcome.Result
	require.NotNil(t, r, "%+v", answer.Outcome)
	require.Empty(t, r.Inline)
	require.NotEmpty(t, r.File)
	require.Greater(t, r.Bytes, int64(1<<20))
	require.EqualValues(t, rows, r.Rows)
	require.False(t, r.Truncated)
	require.NotNil(t, r.ExpiresAt)
	body := d.api.Must(200, "GET", "/v1/tasks/"+answer.TaskID+"/result", "").Body
	lines := strings.Split(strings.TrimSuffix(string(body), "\n"), "\n")
	require.Len(t, lines, rows)
	for _, line := range []string{lines[0], lines[rows-1]} {
		var row []any
		require.NoError(t, json.Unmarshal([]byte(line), &row))
		require.Len(t, row, 3)
	}
	part := d.api.Must(http.StatusPartialContent, "GET", "/v1/tasks/"+answer.TaskID+"/result", "", "Range", "bytes=0-9").Body
	require.Equal(t, string(body[:10]), string(part))
}

// lostAnswer has the engine run a query whose answer never comes: nobody knows then whether it ran.
func (d *day) lostAnswer(t *testing.T) {
	d.w.Interactive.Break(func(attemptID string, _ int) testkit.Fault {
		return testkit.Fault{DropAnswer: strings.HasSuffix(attemptID, "/1")}
	})
	defer d.w.Interactive.Break(nil)
	answer := d.api.Wait(small(``))
	d.ran(answer.TaskID)
	require.Equal(t, event.Succeeded, answer.Outcome.Status, "%+v", answer.Outcome.Failure)
	require.Equal(t, 2, answer.Outcome.Attempts, "a read is made again as another attempt")
	sent := d.w.Sent()
	require.Equal(t, 1, sent[query.AttemptID(answer.TaskID, 1)])
	require.Equal(t, 1, sent[query.AttemptID(answer.TaskID, 2)])
}
