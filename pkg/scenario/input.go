package scenario

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/fingerprint"
	"github.com/pointsman/pointsman/pkg/policy"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/route"
	"github.com/pointsman/pointsman/pkg/shape"
	"github.com/pointsman/pointsman/pkg/signal"
)

// moment is when all cases are decided: nothing may depend on the day.
var moment = time.Date(2026, 11, 30, 9, 15, 0, 0, time.UTC)

// Input makes the input of a case.
func Input(p *policy.Policy, c Case) (route.Input, error) {
	sql := cmp.Or(c.SQL, "SELECT 1")
	dialect, err := fingerprint.ParseDialect(cmp.Or(c.Request.Dialect, "auto"))
	if err != nil {
		dialect, _ = fingerprint.ParseDialect("auto")
	}
	q := c.Request
	task := query.Task{
		ID: "case", SQL: sql, Tenant: q.Tenant, User: q.User, Tags: q.Tags, Dataset: q.Dataset, QueryType: q.QueryType, Dialect: q.Dialect,
		Catalog: q.Catalog, Schema: q.Schema, EngineHint: q.EngineHint, ResourceHint: q.ResourceHint, SLASeconds: q.SLASeconds,
		TimeoutSeconds: q.TimeoutSeconds, Priority: q.Priority, SubmittedAt: &moment,
	}
	in := route.Input{
		Task: task, Attempt: 1 + len(c.Failed), Fingerprint: "case", Shape: shape.Of(sql, dialect), Policy: p, Now: moment, Seed: 1,
		Estimates: map[string]signal.Value{route.ScanBytes: signal.Missing("case")}, Signals: signal.Snapshot{},
	}
	in.History.Asked = true
	if q.Session != nil {
		in.Task.Session = &query.Session{ID: cmp.Or(q.Session.ID, "case"), Class: query.SessionClass(q.Session.Class)}
		in.Session = &route.SessionAccount{}
	}
	if c.Signals != "none" {
		idle(&in)
	}
	for _, pool := range c.Failed {
		known, ok := p.Pool(pool)
		if !ok {
			return in, fmt.Errorf("failed: there is no pool %q", pool)
		}
		in.Excluded = append(in.Excluded, event.Target{Engine: known.Kind, Cluster: pool})
	}
	return in, give(&in, c.Facts)
}

// idle lets all pools be seen healthy, ready and with nothing to do.
func idle(in *route.Input) {
	for _, pool := range in.Policy.Pools {
		values := map[signal.Name]signal.Value{}
		for name, n := range map[signal.Name]float64{
			signal.Healthy: 1, signal.Ready: 1, signal.Running: 0, signal.Queued: 0, signal.EstWaitMs: 0, signal.Slots: float64(max(1, pool.Slots)),
		} {
			values[name] = signal.Of(n, "", "case", in.Now)
		}
		in.Signals[pool.Name] = values
	}
}

// give gives the input the facts of a case. Those that others follow from come first.
func give(in *route.Input, facts map[string]any) error {
	names := make([]string, 0, len(facts))
	for name := range facts {
		names = append(names, name)
	}
	first := []string{"parsed", "statement", "principal_class", "tenant"}
	slices.SortFunc(names, func(a, b string) int {
		i, j := slices.Index(first, a), slices.Index(first, b)
		switch {
		case i >= 0 && j >= 0:
			return cmp.Compare(i, j)
		case i >= 0:
			return -1
		case j >= 0:
			return 1
		default:
			return cmp.Compare(a, b)
		}
	})
	for _, name := range names {
		v, err := fact(in.Policy, name, facts[name])
		if err == nil {
			err = route.Give(in, name, v)
		}
		if err != nil {
			return fmt.Errorf("facts.%s: %w", name, err)
		}
	}
	return nil
}

// fact reads the value of a fact as its kind wants it.
func fact(p *policy.Policy, name string, value any) (policy.Fact, error) {
	spec, err := p.Spec(name)
	if err != nil {
		return policy.Fact{}, err
	}
	if value == nil || value == "unknown" && spec.Name != "statement" {
		return policy.Fact{}, nil
	}
	switch v := value.(type) {
	case bool:
		if spec.Kind == policy.BoolKind {
			return policy.BoolFact(v), nil
		}
	case uint64:
		if spec.Kind == policy.NumberKind {
			return policy.NumberFact(float64(v)), nil
		}
	case int64:
		if spec.Kind == policy.NumberKind {
			return policy.NumberFact(float64(v)), nil
		}
	case float64:
		if spec.Kind == policy.NumberKind {
			return policy.NumberFact(v), nil
		}
	case string:
		switch spec.Kind {
		case policy.NumberKind:
			n, err := policy.ParseSize(v)
			return policy.NumberFact(float64(n)), err
		case policy.WordKind:
			return policy.WordFact(v), nil
		case policy.WordsKind:
			return policy.WordsFact(v), nil
		case policy.BoolKind:
		}
	case []any:
		if spec.Kind == policy.WordsKind {
			words := make([]string, len(v))
			for i, w := range v {
				words[i] = fmt.Sprint(w)
			}
			return policy.WordsFact(words...), nil
		}
	}
	return policy.Fact{}, fmt.Errorf("%v is no %s", value, spec.Kind)
}
