package executor

import (
	"maps"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engines"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/services/executor/line"
)

// cluster is a place to run attempts, with the line in front of it.
type cluster struct {
	cfg    EngineConfig
	engine engine.Engine
	line   *line.Line
	budget *retryBudget
}

// OpenEngine makes the client of a configured engine. Nothing is sent before it is used.
func OpenEngine(cfg EngineConfig) (engine.Engine, error) { return engines.Open(cfg.client()) }

func newCluster(cfg EngineConfig, attempts AttemptConfig, e engine.Engine) *cluster {
	return &cluster{
		cfg: cfg, engine: e, line: line.New(max(cfg.Slots, 1)), budget: newRetryBudget(attempts.RetryShare, attempts.RetryReserve),
	}
}

// limits are those of a resource profile, with what it leaves out taken from the cluster's. The settings of a queue go before
// both: where a query was sent is part of the decision.
func (c EngineConfig) limits(t event.Target) Limits {
	l := c.Limits
	r := c.Resources[t.Resource]
	if r.MaxMemory > 0 {
		l.MaxMemory = r.MaxMemory
	}
	if r.MaxExecution > 0 {
		l.MaxExecution = r.MaxExecution
	}
	settings := map[string]string{}
	for _, s := range []map[string]string{l.Settings, r.Settings, c.Queues[t.Queue].Settings} {
		maps.Copy(settings, s)
	}
	l.Settings = settings
	return l
}

// Variants are the limits and settings that queries get here, by what they are for: each queue and each resource profile, and
// those that every query has. Those that set nothing are left out.
func (c EngineConfig) Variants() map[string]Limits {
	out := map[string]Limits{"limits": c.limits(event.Target{})}
	for name := range c.Queues {
		out["queue "+name] = c.limits(event.Target{Queue: name})
	}
	for name := range c.Resources {
		out["resources "+name] = c.limits(event.Target{Resource: name})
	}
	maps.DeleteFunc(out, func(_ string, l Limits) bool { return len(l.Settings) == 0 && l.MaxMemory == 0 })
	return out
}

// client is the configuration of the engine's client.
func (c EngineConfig) client() engines.Config {
	return engines.Config{
		Name: c.Name, Kind: c.Kind, Flavour: c.Flavour, URL: c.URL, User: c.User, Password: c.Password.Reveal(), Database: c.Database,
		Group: c.Group, Canary: c.Canary, Queries: c.Slots,
	}
}
