package executor_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/failure"
	"github.com/pointsman/pointsman/pkg/signal"
	"github.com/pointsman/pointsman/services/executor"
)

func watchClosely(c *executor.Config) {
	c.Attempts.Overrun.Every, c.Attempts.Overrun.EstimateFloor = 20*time.Millisecond, 0
}

func estimating(bytes float64) func(*event.RouteDecision) {
	return func(d *event.RouteDecision) {
		d.Estimates = map[string]signal.Value{"scanBytes": signal.Of(bytes, signal.Bytes, "catalog", time.Now())}
	}
}

func slaOf(seconds float64) func(*event.RouteDecision) {
	return func(d *event.RouteDecision) {
		d.Task.SLASeconds = &seconds
		d.TaskDigest = d.Task.Digest()
	}
}

// An attempt that is over its bounds is stopped at the engine, its Task is kept, and the router is asked for another place.
func TestOverrunMovesTheTask(t *testing.T) {
	for _, c := range []struct {
		name     string
		does     behaviour
		edit     []func(*event.RouteDecision)
		class    failure.Class
		remedy   event.Remedy
		contains string
	}{
		{"it reads far more than was estimated", behaviour{read: 501}, []func(*event.RouteDecision){estimating(100)}, failure.EstimateOverrun, event.RemedyReroute, "100 were estimated"},
		{"its SLA can't be met, and the engine has just begun", behaviour{done: 0.1}, []func(*event.RouteDecision){slaOf(0.1)}, failure.SLAOverrun, event.RemedyReroute, "its SLA is 100ms"},
		{"its SLA can't be met", behaviour{}, []func(*event.RouteDecision){slaOf(0.1)}, failure.SLAOverrun, event.RemedyReroute, "its SLA is 100ms"},
		{"it takes more memory than its profile gives", behaviour{peak: 2 << 20}, nil, failure.MemoryLimit, event.RemedyFailover, "2097152 bytes of memory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, 1)
			b.config = func(cfg *executor.Config) {
				watchClosely(cfg)
				cfg.Engines[0].Limits.MaxMemory = 1 << 20
			}
			c.does.hold = make(chan struct{})
			b.servers[interactive].on("HEAVY", c.does)
			b.servers[batch].on("HEAVY", behaviour{rows: 1})
			b.start()
			d := b.route("t1", "HEAVY", c.edit...)
			b.decide(d)
			over := b.change("t1/1", "overrun")
			require.Equal(t, string(c.class), over.Failure.Class)
			require.Contains(t, over.Failure.Message, c.contains)
			require.NotEmpty(t, over.Failure.Hint)
			require.Equal(t, c.remedy, over.Remedy)
			require.True(t, b.servers[interactive].wasKilled("t1/1"), "it is stopped at the engine first")
			require.NotNil(t, over.Stats.ExecMs, "how long it ran before it was stopped is evidence")
			if c.does.read > 0 {
				require.Equal(t, c.does.read, *over.Stats.ReadBytes)
			}
			if c.remedy == event.RemedyReroute {
				require.Equal(t, interactive, over.Excluded[0].Cluster)
				require.NotNil(t, over.Decision.Task)
				d.DecisionID, d.Attempt, d.Cluster = "t1/2", 2, batch
				b.decide(d)
			}
			o := b.outcome("t1")
			require.Equal(t, event.Succeeded, o.Status)
			require.Equal(t, batch, o.Cluster)
			require.Equal(t, 2, o.Attempts)
			b.committed()
			b.once()
		})
	}
}

func TestWhatIsNotStopped(t *testing.T) {
	for _, c := range []struct {
		name string
		does behaviour
		edit []func(*event.RouteDecision)
		cfg  func(*executor.Config)
	}{
		{"without an estimate", behaviour{read: 1 << 40}, nil, nil},
		{"a stale estimate", behaviour{read: 1 << 40}, []func(*event.RouteDecision){func(d *event.RouteDecision) {
			old := signal.Of(100, signal.Bytes, "catalog", time.Now().Add(-time.Hour)).Aged(time.Now(), time.Minute)
			d.Estimates = map[string]signal.Value{"scanBytes": old}
		}}, nil},
		{"progress unknown", behaviour{}, []func(*event.RouteDecision){estimating(100)}, nil},
		{"within the factor", behaviour{read: 500}, []func(*event.RouteDecision){estimating(100)}, nil},
		{"below the floor", behaviour{read: 501}, []func(*event.RouteDecision){estimating(100)}, func(c *executor.Config) { c.Attempts.Overrun.EstimateFloor = 1000 }},
		{"a write", behaviour{read: 1 << 40}, []func(*event.RouteDecision){estimating(100), slaOf(0.01), func(d *event.RouteDecision) { d.ReadOnly = false }}, nil},
		{"nearly done, as the engine reckons", behaviour{done: 0.6}, []func(*event.RouteDecision){slaOf(0.01)}, nil},
		{"nowhere to go", behaviour{read: 1 << 40}, []func(*event.RouteDecision){estimating(100), slaOf(0.01), func(d *event.RouteDecision) { d.Fallbacks = nil }}, nil},
		{"no attempt left", behaviour{read: 1 << 40}, []func(*event.RouteDecision){estimating(100)}, func(c *executor.Config) { c.Attempts.MaxAttempts = 1 }},
		{"switched off", behaviour{read: 1 << 40}, []func(*event.RouteDecision){estimating(100), slaOf(0.01)}, func(c *executor.Config) { c.Attempts.Overrun.Every = 0 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, 1)
			b.config = func(cfg *executor.Config) {
				watchClosely(cfg)
				if c.cfg != nil {
					c.cfg(cfg)
				}
			}
			done := make(chan struct{})
			c.does.hold, c.does.rows = done, 1
			b.servers[interactive].on("HEAVY", c.does)
			b.start()
			b.decide(b.route("t1", "HEAVY", c.edit...))
			b.change("t1/1", "running")
			time.Sleep(200 * time.Millisecond) // ten looks, and more than any SLA here
			require.True(t, b.servers[interactive].active("t1/1"))
			close(done)
			o := b.outcome("t1")
			require.Equal(t, event.Succeeded, o.Status)
			require.Equal(t, interactive, o.Cluster)
			b.committed()
		})
	}
}
