package executor_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/failure"
)

// TestAnEngineThatKeepsAHistory: a new owner learns from the engine how what it took over has ended.
func TestAnEngineThatKeepsAHistory(t *testing.T) {
	over := func(s *server, id string, run engine.Run) {
		s.kill(id)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.history[id] = run
	}
	failed := func(code string) engine.Run {
		return engine.Run{State: engine.RunFailed, Failure: &engine.Error{Engine: "clickhouse", Code: code, Phase: engine.Answered, Err: errors.New("as the history has it")}}
	}
	for _, c := range []struct {
		name     string
		write    bool
		run      *engine.Run // nil leaves it running
		status   event.Status
		class    failure.Class
		attempts int
	}{
		{"a read that runs on is stopped, and its end in the history is no failure", false, nil, event.Succeeded, "", 2},
		{"a read that the earlier owner has stopped", false, &engine.Run{State: engine.RunCancelled}, event.Succeeded, "", 2},
		{"a read that has finished, whose result nobody has", false, &engine.Run{State: engine.RunFinished}, event.Succeeded, "", 2},
		{"a read that was wrong", false, new(failed("62")), event.Failed, failure.Semantic, 1},
		{"a read that somebody has killed", false, new(failed("394")), event.Failed, failure.KilledByOperator, 1},
		{"a write that has finished", true, &engine.Run{State: engine.RunFinished}, event.Succeeded, "", 1},
		{"a write that failed", true, new(failed("241")), event.Failed, failure.MemoryLimit, 1},
		{"a write that was stopped", true, &engine.Run{State: engine.RunCancelled}, event.Failed, failure.SubmitUnknown, 1},
		{"a write that failed, of which the engine says no more", true, &engine.Run{State: engine.RunFailed}, event.Failed, failure.Internal, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, 1)
			s := b.servers[interactive]
			s.history = map[string]engine.Run{}
			s.on("LONG", behaviour{hold: make(chan struct{})})
			a := b.start()
			b.decide(b.route("t1", "LONG", func(d *event.RouteDecision) { d.ReadOnly = !c.write }))
			b.change("t1/1", "running")
			a.crash()
			s.on("LONG", behaviour{rows: 1})
			if c.run != nil {
				over(s, "t1/1", *c.run)
			}
			b.start()
			o := b.outcome("t1")
			require.Equal(t, c.status, o.Status, "%+v", o.Failure)
			require.Equal(t, c.attempts, o.Attempts)
			if c.class != "" {
				require.Equal(t, string(c.class), o.Failure.Class)
			}
			b.once()
		})
	}
}

// TestAnEngineWithAQueue: an attempt that waits at the engine is not one that runs, and its time there is not execution.
func TestAnEngineWithAQueue(t *testing.T) {
	b := newBench(t, 1)
	wait, hold := make(chan struct{}), make(chan struct{})
	b.servers[interactive].on("QUEUED", behaviour{rows: 1, wait: wait, hold: hold})
	b.start()
	b.decide(b.route("t1", "QUEUED"))
	b.change("t1/1", "queued")
	time.Sleep(200 * time.Millisecond)
	require.NotContains(t, b.states("t1/1"), "running")
	close(wait)
	b.change("t1/1", "running")
	close(hold)
	require.Equal(t, event.Succeeded, b.outcome("t1").Status)
	require.Equal(t, []string{"submitting", "queued", "running"}, b.states("t1/1")[2:5])
}

// TestACancelOfWhatWaitsAtTheEngine gives the place in the engine's queue back.
func TestACancelOfWhatWaitsAtTheEngine(t *testing.T) {
	b := newBench(t, 1)
	b.servers[interactive].on("QUEUED", behaviour{wait: make(chan struct{}), hold: make(chan struct{})})
	b.start()
	b.decide(b.route("t1", "QUEUED"))
	b.change("t1/1", "queued")
	b.decide(cancelOf("t1"))
	require.Equal(t, event.Cancelled, b.outcome("t1").Status)
	require.True(t, b.servers[interactive].wasKilled("t1/1"))
}

// TestACrashWhileItWaitsAtTheEngine leaves it to the next owner.
func TestACrashWhileItWaitsAtTheEngine(t *testing.T) {
	b := newBench(t, 1)
	b.servers[interactive].on("QUEUED", behaviour{wait: make(chan struct{}), hold: make(chan struct{})})
	a := b.start()
	b.decide(b.route("t1", "QUEUED"))
	b.change("t1/1", "queued")
	a.crash()
	b.servers[interactive].on("QUEUED", behaviour{rows: 1})
	b.start()
	require.Equal(t, event.Succeeded, b.outcome("t1").Status)
	require.True(t, b.servers[interactive].wasKilled("t1/1"))
	b.once()
}
