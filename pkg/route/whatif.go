package route

import (
	"maps"
	"slices"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/policy"
	"github.com/pointsman/pointsman/pkg/profile"
	"github.com/pointsman/pointsman/pkg/signal"
)

// WithFlip is the input after one change that a decision says would have mattered to a candidate. The input itself, and what it
// refers to, stay as they are.
func WithFlip(in Input, c *event.Candidate, f event.Flip) Input {
	to, _ := f.To.Get()
	switch f.What {
	case FlipQueue:
		in = withSignal(in, c.Target, signal.EstWaitMs, to)
	case FlipRun:
		exec, _ := c.Estimate.ExecMs.Get()
		slow := in.Signals.Get(c.Cluster, signal.SlowDown, in.Now, in.Policy.Defaults.SignalMaxAge).Or(1)
		in = withSignal(in, c.Target, signal.SlowDown, slow*to/exec)
	case FlipSLA:
		seconds := to / 1000
		in.Task.SLASeconds = &seconds
	case FlipSuccess:
		in.History.Found = maps.Clone(in.History.Found)
		key := profile.Key{Fingerprint: in.Fingerprint, Engine: c.Engine, Cluster: c.Cluster}
		p := in.History.Found[key]
		p.Runs, p.MemoryKills = p.Successes+p.TimeStops, 0
		in.History.Found[key] = p
	case FlipCost:
		in.Policy = withPool(in.Policy, c.Target, func(p *policy.Pool) { p.CostPerSecond = to })
	case FlipQueries:
		in = withSignal(withSignal(in, c.Target, signal.Running, to), c.Target, signal.Queued, 0)
	case FlipHint:
		in.Task.EngineHint = c.Cluster
		if in.Task.ResourceHint != "" {
			in.Task.ResourceHint = c.Resource
		}
	case FlipHealth:
		in = withSignal(withSignal(in, c.Target, signal.Ready, to), c.Target, signal.Healthy, to)
	}
	return in
}

// withSignal observes a fact anew, and forgets what the router has sent there since the last time.
func withSignal(in Input, t event.Target, name signal.Name, to float64) Input {
	key := t.Cluster
	for i := range in.Policy.Pools {
		for j := range in.Policy.Pools[i].Lanes {
			if l := &in.Policy.Pools[i].Lanes[j]; l.Name == t.Cluster && l.Queue == t.Queue && l.Resource == t.Resource {
				key = l.SignalKey
			}
		}
	}
	in.Signals = in.Signals.Clone()
	if in.Signals[key] == nil {
		in.Signals[key] = map[signal.Name]signal.Value{}
	}
	in.Signals[key][name] = signal.Of(to, "", "what if", in.Now)
	in.Inflight = maps.Clone(in.Inflight)
	delete(in.Inflight, t.Cluster)
	return in
}

// withPool is the policy with one lane changed.
func withPool(p *policy.Policy, t event.Target, change func(*policy.Pool)) *policy.Policy {
	out := *p
	out.Pools = slices.Clone(p.Pools)
	for i := range out.Pools {
		pool := &out.Pools[i]
		if pool.Name != t.Cluster {
			continue
		}
		pool.Lanes = slices.Clone(pool.Lanes)
		for j := range pool.Lanes {
			if pool.Lanes[j].Queue == t.Queue && pool.Lanes[j].Resource == t.Resource {
				change(&pool.Lanes[j])
			}
		}
		if len(pool.Lanes) == 0 {
			change(pool)
		}
	}
	return &out
}

// Counterfactual is one change that would have mattered, and what would have become of the Task then.
type Counterfactual struct {
	event.Target
	Flip event.Flip `json:"flip"`
	// GoesTo is where the Task would have gone; the zero Target if it would have been rejected.
	GoesTo event.Target `json:"goesTo"`
	Text   string       `json:"text"`
}

// whatIf applies each loser's smallest change to the input, and decides again.
func whatIf(in Input, d *event.RouteDecision) []Counterfactual {
	in.Policy = withoutLot(in.Policy)
	var out []Counterfactual
	for i := range d.Candidates {
		c := &d.Candidates[i]
		if c.LostBy == nil || c.LostBy.Flip == nil {
			continue
		}
		then := decide(WithFlip(in, c, *c.LostBy.Flip))
		text := nameOf(d, c.Target) + " " + flipText(c.LostBy.Flip)
		switch {
		case then.Kind != event.Route:
			text += "; then it would be rejected"
		case then.Target == c.Target:
			text += "; then it would go there"
		case then.Target == d.Target:
			text += "; the factors that follow would still speak for " + nameOf(d, d.Target)
		default:
			text += "; then it would go to " + nameOf(d, then.Target)
		}
		out = append(out, Counterfactual{Target: c.Target, Flip: *c.LostBy.Flip, GoesTo: then.Target, Text: text + "."})
	}
	return out
}

// withoutLot is the policy without exploration: what would have been is a question of ranks.
func withoutLot(p *policy.Policy) *policy.Policy {
	out := *p
	out.Exploration = policy.Exploration{}
	return &out
}
