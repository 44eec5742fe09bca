package row_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/history/row"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/signal"
)

var at = time.Date(2026, 11, 30, 9, 15, 0, 0, time.UTC)

var rec = row.Record{Topic: event.TopicRequests, Partition: 2, Offset: 41, At: at}

func okTask() query.Task { return query.Task{ID: "t", SQL: "SELECT 1", Tenant: "ten"} }

func okAttempt() event.Attempt {
	return event.Attempt{AttemptID: "t/1", TaskID: "t", Number: 1, Seq: 1, State: "running", At: at}
}

func okOutcome() event.Outcome {
	return event.Outcome{TaskID: "t", Tenant: "ten", Status: event.Succeeded, SubmittedAt: at.Add(-time.Second), FinishedAt: at, TotalMs: 1000}
}

func okDecision() event.RouteDecision {
	return event.RouteDecision{DecisionID: "t/1", TaskID: "t", Attempt: 1, Kind: event.Route, DecidedAt: at}
}

// K21: what does not fit its column is refused with the column's name; nothing wraps, nothing becomes a default.
func TestValuesThatDoNotFitAreNamed(t *testing.T) {
	farAway := time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	task := func(edit func(*query.Task)) error {
		v := okTask()
		edit(&v)
		_, err := row.FromTask(rec, v)
		return err
	}
	attempt := func(edit func(*event.Attempt)) error {
		v := okAttempt()
		edit(&v)
		_, err := row.FromAttempt(rec, v)
		return err
	}
	outcome := func(edit func(*event.Outcome)) error {
		v := okOutcome()
		edit(&v)
		_, err := row.FromOutcome(rec, v)
		return err
	}
	decision := func(edit func(*event.RouteDecision)) error {
		v := okDecision()
		edit(&v)
		_, err := row.FromDecision(rec, v)
		return err
	}
	for name, c := range map[string]struct {
		err    error
		column string
	}{
		"no tenant":               {task(func(t *query.Task) { t.Tenant = "" }), "tenant"},
		"submitted in 9999":       {task(func(t *query.Task) { t.SubmittedAt = &farAway }), "submitted_at"},
		"negative sla":            {task(func(t *query.Task) { t.SLASeconds = new(-1.0) }), "sla_ms"},
		"sla beyond any number":   {task(func(t *query.Task) { t.SLASeconds = new(1e300) }), "sla_ms"},
		"priority over 32 bits":   {task(func(t *query.Task) { t.Priority = 1 << 40 }), "priority"},
		"attempt number over 16":  {attempt(func(a *event.Attempt) { a.Number = 65536 }), "attempt"},
		"negative attempt number": {attempt(func(a *event.Attempt) { a.Number = -1 }), "attempt"},
		"negative seq":            {attempt(func(a *event.Attempt) { a.Seq = -1 }), "seq"},
		"negative epoch":          {attempt(func(a *event.Attempt) { a.Epoch = -1 }), "epoch"},
		"no state":                {attempt(func(a *event.Attempt) { a.State = "" }), "state"},
		"no time":                 {attempt(func(a *event.Attempt) { a.At = time.Time{} }), "at"},
		"before 1970":             {attempt(func(a *event.Attempt) { a.At = time.Unix(-1, 0) }), "at"},
		"negative bytes":          {attempt(func(a *event.Attempt) { a.Stats = &event.Stats{ReadBytes: new(int64(-1))} }), "read_bytes"},
		"negative memory":         {outcome(func(o *event.Outcome) { o.Stats.PeakMemoryBytes = new(int64(-5)) }), "peak_memory_bytes"},
		"outcome without tenant":  {outcome(func(o *event.Outcome) { o.Tenant = "" }), "tenant"},
		"outcome without status":  {outcome(func(o *event.Outcome) { o.Status = "" }), "status"},
		"finished in 9999":        {outcome(func(o *event.Outcome) { o.FinishedAt = farAway }), "finished_at"},
		"started in 9999":         {outcome(func(o *event.Outcome) { o.StartedAt = &farAway }), "started_at"},
		"negative sla of outcome": {outcome(func(o *event.Outcome) { o.SLAMs = -1 }), "sla_ms"},
		"deadline in 9999":        {decision(func(d *event.RouteDecision) { d.Deadline = farAway }), "deadline"},
		"decision without an id":  {decision(func(d *event.RouteDecision) { d.DecisionID = "" }), "decision_id"},
		"rank of a candidate":     {decision(func(d *event.RouteDecision) { d.Candidates = []event.Candidate{{Rank: 1 << 20}} }), "candidates.rank"},
		"negative sample": {decision(func(d *event.RouteDecision) {
			d.Candidates = []event.Candidate{{Estimate: &event.CandidateEstimate{Evidence: event.Evidence{N: -1}}}}
		}), "candidates.n"},
		"observation of no one":    {observation(signal.Observation{Source: "engine", At: at}), "cluster"},
		"observation without time": {observation(signal.Observation{Source: "engine", Cluster: "c"}), "at"},
	} {
		t.Run(name, func(t *testing.T) {
			var ce *row.ColumnError
			require.ErrorAs(t, c.err, &ce)
			require.Equal(t, c.column, ce.Column)
			require.NotEmpty(t, ce.Table)
		})
	}
	require.NoError(t, outcome(func(o *event.Outcome) { o.Status, o.Tenant = event.Rejected, "" }), "it may have been rejected for that")
	require.NoError(t, outcome(func(o *event.Outcome) { o.Status, o.Tenant = event.Cancelled, "" }), "it may have been taken back before it came")
	require.NoError(t, task(func(*query.Task) {}))
	require.NoError(t, attempt(func(*event.Attempt) {}))
	require.NoError(t, decision(func(*event.RouteDecision) {}))
}

func observation(o signal.Observation) error {
	_, err := row.FromObservation(rec, o)
	return err
}

// K23: a clock that is off moves no row into another partition, makes no negative duration, and is flagged.
func TestClocksThatAreOff(t *testing.T) {
	for name, off := range map[string]time.Duration{
		"10 minutes ahead": 10 * time.Minute, "10 days ahead": 240 * time.Hour, "10 days behind": -240 * time.Hour, "10 minutes behind": -10 * time.Minute,
	} {
		t.Run(name, func(t *testing.T) {
			wrong := at.Add(off)
			task := okTask()
			task.SubmittedAt = &wrong
			r, err := row.FromTask(rec, task)
			require.NoError(t, err)
			require.Equal(t, at, r.SubmittedAt)
			require.Equal(t, wrong, *r.SubmittedAtEvent, "what was written is kept")
			require.True(t, r.Clamped)

			// The executor computes with the producer's time.
			o := okOutcome()
			o.SubmittedAt, o.TotalMs = wrong, at.Sub(wrong).Milliseconds()
			out, err := row.FromOutcome(rec, o)
			require.NoError(t, err)
			require.Equal(t, at, out.FinishedAt)
			require.False(t, out.SubmittedAt.After(out.FinishedAt))
			if off != -10*time.Minute { // this one can't be told from a Task that took ten minutes
				require.True(t, out.Clamped)
			}
			if off > 0 {
				require.Zero(t, out.TotalMs)
			}
		})
	}
	small := at.Add(20 * time.Second)
	a := okAttempt()
	a.At = small
	r, err := row.FromAttempt(rec, a)
	require.NoError(t, err)
	require.Equal(t, small, r.At, "a few seconds are everyday")
	require.False(t, r.Clamped)
	a.Stats = &event.Stats{ExecMs: new(int64(-3))}
	r, err = row.FromAttempt(rec, a)
	require.NoError(t, err)
	require.Zero(t, *r.Stats.ExecMs)
	require.True(t, r.Clamped)
}

// An Outcome that a new owner publishes again, hours after the first, is the same row.
func TestAnOldOutcomePublishedAgainIsTheSameRow(t *testing.T) {
	first, err := row.FromOutcome(rec, okOutcome())
	require.NoError(t, err)
	later := rec
	later.Offset, later.At = 99, at.Add(20*time.Hour)
	second, err := row.FromOutcome(later, okOutcome())
	require.NoError(t, err)
	require.Equal(t, first.FinishedAt, second.FinishedAt)
	require.Equal(t, first.SubmittedAt, second.SubmittedAt)
}

func TestIDs(t *testing.T) {
	task := okTask()
	task.ID = ""
	r, err := row.FromTask(rec, task)
	require.NoError(t, err)
	require.Equal(t, query.IDFromRecord(event.TopicRequests, 2, 41), r.Task.ID)
	task.IdempotencyKey = "k"
	r, err = row.FromTask(rec, task)
	require.NoError(t, err)
	require.Equal(t, query.IDFromKey("ten", "k"), r.Task.ID)
}

func TestEnds(t *testing.T) {
	for state, want := range map[string][3]bool{
		"running": {false, false, false}, "succeeded": {true, true, false}, "failed": {true, false, true}, "cancelled": {true, false, true}, "parked": {false, false, false},
	} {
		a := okAttempt()
		a.State, a.Failure = state, &event.Failure{Class: "memory_limit"}
		if state == "succeeded" {
			a.Failure = nil
		}
		r, err := row.FromAttempt(rec, a)
		require.NoError(t, err)
		require.Equal(t, want, [3]bool{r.Ended, r.OK, r.MemoryKill}, state)
	}
}

// Whatever JSON an event is decoded from, the mapping neither panics nor stores a time outside the tables' range.
func TestMappingHoldsForAnyEvent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := event.Outcome{
			TaskID: rapid.String().Draw(t, "id"), Status: event.Status(rapid.String().Draw(t, "status")), Tenant: rapid.String().Draw(t, "tenant"),
			Attempts: rapid.Int().Draw(t, "attempts"), TotalMs: rapid.Int64().Draw(t, "total"), SLAMs: rapid.Int64().Draw(t, "sla"),
			SubmittedAt: time.Unix(rapid.Int64Range(-1<<40, 1<<40).Draw(t, "submitted"), 0), FinishedAt: time.Unix(rapid.Int64Range(-1<<40, 1<<40).Draw(t, "finished"), 0),
		}
		r, err := row.FromOutcome(rec, o)
		if err != nil {
			return
		}
		require.False(t, r.SubmittedAt.After(r.FinishedAt))
		require.False(t, r.FinishedAt.After(at.Add(time.Minute)) || r.FinishedAt.Before(at.Add(-7*24*time.Hour)))
		require.EqualValues(t, o.Attempts, r.Attempts)
	})
}

func TestUnknownFieldsAreKept(t *testing.T) {
	var o event.Outcome
	require.NoError(t, json.Unmarshal([]byte(`{"taskId":"t","status":"succeeded","tenant":"ten","submittedAt":"2026-11-30T09:15:00Z","finishedAt":"2026-11-30T09:15:00Z","zeta":9007199254740993}`), &o))
	r, err := row.FromOutcome(rec, o)
	require.NoError(t, err)
	require.Equal(t, `{"zeta":9007199254740993}`, r.Extra)
}

func TestTier(t *testing.T) {
	for ms, want := range map[uint64]string{0: "", 1: "1s", 1000: "1s", 1001: "5s", 10_000: "10s", 59_999: "1m", 3_600_000: "1h", 3_600_001: "over 1h"} {
		require.Equal(t, want, row.Tier(ms), ms)
	}
}
