package executor_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/config"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/failure"
	"github.com/pointsman/pointsman/services/executor"
)

// profiles gives the interactive cluster two resource profiles.
func profiles(c *executor.Config) {
	c.Engines[0].Resources = map[string]executor.Limits{"small": {MaxMemory: 1 << 20}, "large": {MaxMemory: 1 << 30}}
	c.Engines[0].Larger = map[string]string{"small": "large"}
}

func small(d *event.RouteDecision) { d.Resource = "small" }
func write(d *event.RouteDecision) { d.ReadOnly = false }
func alone(d *event.RouteDecision) { d.Fallbacks = nil }

// TestWhatFollowsAFailure is the way from the engine's code to the remedy, for every class that an engine's answer can have.
func TestWhatFollowsAFailure(t *testing.T) {
	for _, c := range []struct {
		name   string
		code   string
		down   bool
		ready  bool // a fresh signal calls the fallback ready
		edit   []func(*event.RouteDecision)
		cfg    func(*executor.Config)
		class  failure.Class
		remedy event.Remedy
		next   *event.Target
	}{
		{name: "wrong SQL", code: "62", class: failure.Semantic, remedy: event.RemedyFail},
		{name: "no rights", code: "497", class: failure.Permission, remedy: event.RemedyFail},
		{name: "killed by an operator", code: "394", class: failure.KilledByOperator, remedy: event.RemedyFail},
		{name: "result too large", code: "396", class: failure.ResultTooLarge, remedy: event.RemedyFail},
		{name: "over its memory, with a larger profile", code: "241", edit: []func(*event.RouteDecision){small}, cfg: profiles, class: failure.MemoryLimit, remedy: event.RemedyEnlarge, next: &event.Target{Engine: "clickhouse", Cluster: interactive, Queue: "default", Resource: "large"}},
		{name: "over its memory", code: "241", class: failure.MemoryLimit, remedy: event.RemedyFailover, next: &event.Target{Engine: "clickhouse", Cluster: batch, Queue: "default"}},
		{name: "over its memory, nothing else", code: "241", edit: []func(*event.RouteDecision){alone}, class: failure.MemoryLimit, remedy: event.RemedyReroute},
		{name: "a write over its memory", code: "241", edit: []func(*event.RouteDecision){small, write}, cfg: profiles, class: failure.MemoryLimit, remedy: event.RemedyFail},
		{name: "refused at the door", code: "202", class: failure.QueueFull, remedy: event.RemedyFailover, next: &event.Target{Engine: "clickhouse", Cluster: batch, Queue: "default"}},
		{name: "refused at the only door", code: "202", edit: []func(*event.RouteDecision){alone}, class: failure.QueueFull, remedy: event.RemedyRetry},
		{name: "refused at the only door, once too often", code: "202", edit: []func(*event.RouteDecision){alone}, cfg: func(c *executor.Config) { c.Attempts.RetryReserve = 0 }, class: failure.QueueFull, remedy: event.RemedyReroute},
		{name: "a write refused at the door", code: "202", edit: []func(*event.RouteDecision){write}, class: failure.QueueFull, remedy: event.RemedyRetry},
		{name: "no disk", code: "243", class: failure.Resources, remedy: event.RemedyFailover, next: &event.Target{Engine: "clickhouse", Cluster: batch, Queue: "default"}},
		{name: "a time limit", code: "159", class: failure.Timeout, remedy: event.RemedyFailover, next: &event.Target{Engine: "clickhouse", Cluster: batch, Queue: "default"}},
		{name: "a write over a time limit", code: "159", edit: []func(*event.RouteDecision){write}, class: failure.Timeout, remedy: event.RemedyFail},
		{name: "a code that nobody knows", code: "99999", class: failure.Internal, remedy: event.RemedyFailover, next: &event.Target{Engine: "clickhouse", Cluster: batch, Queue: "default"}},
		{name: "down, the fallback unknown", down: true, class: failure.ClusterDown, remedy: event.RemedyReroute},
		{name: "down, the fallback ready", down: true, ready: true, class: failure.ClusterDown, remedy: event.RemedyFailover, next: &event.Target{Engine: "clickhouse", Cluster: batch, Queue: "default"}},
		{name: "down under a write, nothing sent", down: true, ready: true, edit: []func(*event.RouteDecision){write}, class: failure.ClusterDown, remedy: event.RemedyReroute},
		{name: "the last attempt", code: "241", cfg: func(c *executor.Config) { c.Attempts.MaxAttempts = 1 }, class: failure.MemoryLimit, remedy: event.RemedyFail},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, 1)
			b.config = c.cfg
			b.servers[interactive].on("Q", behaviour{code: c.code, rows: 1})
			b.servers[interactive].setDown(c.down)
			b.start()
			if c.ready {
				b.pool(batch, 1, 1)
				time.Sleep(300 * time.Millisecond) // the signal is read
			}
			d := b.route("t1", "Q", c.edit...)
			b.decide(d)
			failed := b.change("t1/1", "failed")
			require.Equal(t, string(c.class), failed.Failure.Class)
			require.NotEmpty(t, failed.Failure.Hint)
			require.Equal(t, c.remedy, failed.Remedy)
			require.Equal(t, c.next, failed.Next)
			switch c.remedy {
			case event.RemedyFail:
				o := b.outcome("t1")
				require.Equal(t, event.Failed, o.Status)
				require.Equal(t, "as the script says", o.Failure.Message, "the engine's own words")
				require.Equal(t, c.code, o.Failure.Code)
				b.committed()
			case event.RemedyReroute:
				require.Equal(t, []event.Target{d.Target}, failed.Excluded)
				require.Equal(t, d.Task.SQL, failed.Decision.Task.SQL)
			default:
				next := b.changes("t1/2")
				require.Eventually(t, func() bool { next = b.changes("t1/2"); return len(next) > 0 }, patience, 10*time.Millisecond)
				if c.next != nil {
					require.Equal(t, *c.next, next[0].Target)
				} else {
					require.Equal(t, d.Target, next[0].Target)
				}
			}
			b.once()
		})
	}
}

// A cluster that fails all that it is sent gets no more retries than its budget allows, however many Tasks there are.
func TestRetriesAreBudgeted(t *testing.T) {
	b := newBench(t, 1)
	b.config = func(c *executor.Config) {
		c.Attempts.RetryReserve, c.Attempts.RetryShare, c.Attempts.MaxRetries = 3, 0.1, 2
	}
	b.servers[interactive].on("Q", behaviour{code: "202"})
	b.start()
	const tasks = 20
	ids := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r", "s", "u"}
	require.Len(t, ids, tasks)
	for _, id := range ids {
		b.decide(b.route(id, "Q", alone))
	}
	rerouted := func() int {
		n := 0
		for _, rec := range b.broker.Records(t, event.TopicAttempts) {
			var a event.Attempt
			require.NoError(t, json.Unmarshal(rec.Value, &a))
			if a.Remedy == event.RemedyReroute {
				n++
			}
		}
		return n
	}
	for began := time.Now(); rerouted() < tasks; time.Sleep(100 * time.Millisecond) {
		require.Less(t, time.Since(began), 2*patience, "every Task goes to the router in the end")
	}
	retries := len(b.servers[interactive].counts()) - tasks
	require.GreaterOrEqual(t, retries, 3)
	require.LessOrEqual(t, retries, 3+tasks/10+1, "the reserve, the share of the submissions, and one that asked at the same time")
	b.once()
}

func TestLargerProfiles(t *testing.T) {
	good := executor.EngineConfig{Name: "x", Kind: "clickhouse", Slots: 1, URL: "http://127.0.0.1:8123", Resources: map[string]executor.Limits{"s": {}, "m": {}, "l": {}}}
	for name, c := range map[string]struct {
		larger map[string]string
		fault  string
	}{
		"none":             {nil, ""},
		"a row":            {map[string]string{"s": "m", "m": "l"}, ""},
		"from the default": {map[string]string{"": "m"}, ""},
		"unknown":          {map[string]string{"s": "xl"}, "no resource profile"},
		"itself":           {map[string]string{"s": "s"}, "circle"},
		"a circle":         {map[string]string{"s": "m", "m": "s"}, "circle"},
		"into a circle":    {map[string]string{"s": "m", "m": "l", "l": "m"}, "circle"},
	} {
		e := good
		e.Larger = c.larger
		cfg := executor.Default()
		cfg.Engines = []executor.EngineConfig{e}
		err := config.Validate(cfg)
		if c.fault == "" {
			require.NoError(t, err, name)
		} else {
			require.ErrorContains(t, err, c.fault, name)
		}
	}
}
