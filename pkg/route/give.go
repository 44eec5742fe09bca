package route

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pointsman/pointsman/pkg/budget"
	"github.com/pointsman/pointsman/pkg/policy"
	"github.com/pointsman/pointsman/pkg/profile"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/shape"
	"github.com/pointsman/pointsman/pkg/signal"
)

// made is the source of what Give makes up.
const made = "given"

// Give changes an input so that its rules see a fact as stated: it is the way back from what facts makes of an input. A fact that
// is not Known becomes missing where it can be. The input must have its Policy, and maps of its own. Facts hang together, so
// that a later one may undo an earlier: a statement that has a window is not one without expensive operations.
func Give(in *Input, name string, v policy.Fact) error {
	for id, spec := range policy.TaskFacts {
		if spec.Name == name {
			return gives[id](in, v)
		}
	}
	for i := range in.Policy.Pools {
		p := &in.Policy.Pools[i]
		for id, spec := range policy.PoolFacts {
			if p.Name+"_"+spec.Name == name {
				givePool(in, p, policy.PoolFact(id), v)
				return nil
			}
		}
	}
	for i := range in.Policy.Latches {
		if l := &in.Policy.Latches[i]; l.Name == name {
			if in.Latches == nil {
				in.Latches = map[string]policy.Latch{}
			}
			in.Latches[name] = policy.Latch{Known: v.Known, On: v.Number != 0, At: in.Now}
			return nil
		}
	}
	return fmt.Errorf("no such fact as %q", name)
}

func givePool(in *Input, p *policy.Pool, fact policy.PoolFact, v policy.Fact) {
	values := in.Signals[p.Name]
	if values == nil {
		values = map[signal.Name]signal.Value{}
		in.Signals[p.Name] = values
	}
	set := func(name signal.Name, n float64) {
		if v.Known {
			values[name] = signal.Of(n, "", made, in.Now)
		} else {
			delete(values, name)
		}
	}
	if fact != policy.PoolLoad {
		set(policy.SignalOf[fact], v.Number)
		return
	}
	slots, ok := values[signal.Slots].Get()
	if !ok {
		slots = float64(max(p.Slots, 1))
		set(signal.Slots, slots)
	}
	set(signal.Running, v.Number*slots)
	set(signal.Queued, 0)
}

var gives = [...]func(*Input, policy.Fact) error{
	policy.EstimatedBytes:        giveEstimate(ScanBytes, signal.Bytes),
	policy.ReflectionCoversQuery: giveEstimate(ReflectionCovers, signal.Flag),
	policy.HasWindowOverLargePartition: func(in *Input, v policy.Fact) error {
		if v.Number != 0 && !in.Shape.HasWindow() {
			in.Shape.Windows = []shape.Window{{Function: "sum"}}
		}
		return giveEstimate(LargeWindow, signal.Flag)(in, v)
	},
	policy.EstimatedMemoryBytes: giveHistory(func(p *profile.Profile, v policy.Fact) {
		p.PeakMemoryBytes = nil
		if v.Known {
			p.PeakMemoryBytes = new(int64(v.Number))
		}
	}),
	policy.HistoryRuns: giveHistory(func(p *profile.Profile, v policy.Fact) {
		p.Runs, p.Successes = int64(v.Number), int64(v.Number)
	}),
	policy.HistoryMemoryKills: giveHistory(func(p *profile.Profile, v policy.Fact) {
		p.MemoryKills, p.SuccessesAfterKill = int64(v.Number), 0
		p.Runs = max(p.Runs, p.MemoryKills)
	}),

	policy.JoinTables: giveShape(func(s *shape.Shape, v policy.Fact) { s.JoinTables = int(v.Number) }),
	policy.TableCount: giveShape(func(s *shape.Shape, v policy.Fact) {
		s.Tables = s.Tables[:min(len(s.Tables), int(v.Number))]
		for len(s.Tables) < int(v.Number) {
			s.Tables = append(s.Tables, shape.Table{Name: fmt.Sprintf("t%d", len(s.Tables)+1)})
		}
	}),
	policy.SubqueryDepth: giveShape(func(s *shape.Shape, v policy.Fact) { s.SubqueryDepth = int(v.Number) }),
	policy.OutputColumns: giveShape(func(s *shape.Shape, v policy.Fact) {
		s.OutputColumns, s.Star = nil, !v.Known
		if v.Known {
			s.OutputColumns = new(int(v.Number))
		}
	}),
	policy.RowLimit: giveShape(func(s *shape.Shape, v policy.Fact) {
		s.Limit, s.HasLimit = nil, v.Known
		if v.Known {
			s.Limit = new(int64(v.Number))
		}
	}),
	policy.NoExpensiveOps: giveShape(func(s *shape.Shape, v policy.Fact) {
		if v.Number != 0 {
			s.Windows, s.UDFs, s.Regex, s.JSON = nil, nil, 0, 0
		} else if !s.Expensive() {
			s.Regex = 1
		}
	}),
	policy.HasWindow: giveShape(func(s *shape.Shape, v policy.Fact) {
		if s.Windows = nil; v.Number != 0 {
			s.Windows = []shape.Window{{Function: "sum"}}
		}
	}),
	policy.HasUDF: giveShape(func(s *shape.Shape, v policy.Fact) {
		if s.UDFs = nil; v.Number != 0 {
			s.UDFs = []string{"some_udf"}
		}
	}),
	policy.HasGroupBy: giveShape(func(s *shape.Shape, v policy.Fact) { s.GroupBy = v.Number != 0 }),
	policy.HasLimit: giveShape(func(s *shape.Shape, v policy.Fact) {
		if s.HasLimit = v.Number != 0; !s.HasLimit {
			s.Limit = nil
		}
	}),
	policy.SelectsAllColumns: giveShape(func(s *shape.Shape, v policy.Fact) {
		if s.Star = v.Number != 0; s.Star {
			s.OutputColumns = nil
		}
	}),
	policy.ReadOnly: giveShape(func(s *shape.Shape, v policy.Fact) {
		if s.ReadOnly = v.Number != 0; s.ReadOnly {
			s.Effect = shape.NoEffect
		} else {
			s.Effect = shape.Once
		}
	}),
	policy.Parsed: giveShape(func(s *shape.Shape, v policy.Fact) {
		if v.Number == 0 {
			*s = shape.Shape{Source: shape.FromNone}
		}
	}),
	policy.Statement: giveShape(func(s *shape.Shape, v policy.Fact) {
		s.Statement = shape.Statement(v.Word)
		if v.Word == policy.UnknownStatement {
			s.Statement = ""
		}
		s.ReadOnly, s.Effect = slices.Contains(readOnly, s.Statement), shape.Once
		if s.ReadOnly {
			s.Effect = shape.NoEffect
		}
	}),
	policy.Command: giveShape(func(s *shape.Shape, v policy.Fact) { s.Command = v.Word }),
	policy.Tables: giveShape(func(s *shape.Shape, v policy.Fact) {
		s.Tables = nil
		for _, name := range listed(v) {
			s.Tables = append(s.Tables, shape.TableOf(strings.Split(name, ".")))
		}
	}),

	policy.SLAMs:         giveTask(func(t *query.Task, v policy.Fact) { t.SLASeconds = seconds(v) }),
	policy.TimeoutMs:     giveTask(func(t *query.Task, v policy.Fact) { t.TimeoutSeconds = seconds(v) }),
	policy.Priority:      giveTask(func(t *query.Task, v policy.Fact) { t.Priority = int(v.Number) }),
	policy.ClientTag:     giveTask(func(t *query.Task, v policy.Fact) { t.Tags = listed(v) }),
	policy.Tenant:        giveTask(func(t *query.Task, v policy.Fact) { t.Tenant = v.Word }),
	policy.User:          giveTask(func(t *query.Task, v policy.Fact) { t.User = v.Word }),
	policy.Dataset:       giveTask(func(t *query.Task, v policy.Fact) { t.Dataset = v.Word }),
	policy.Catalog:       giveTask(func(t *query.Task, v policy.Fact) { t.Catalog = v.Word }),
	policy.DefaultSchema: giveTask(func(t *query.Task, v policy.Fact) { t.Schema = v.Word }),
	policy.Consistency:   giveTask(func(t *query.Task, v policy.Fact) { t.Consistency = query.Consistency(v.Word) }),
	policy.QueryType:     giveTask(func(t *query.Task, v policy.Fact) { t.QueryType = v.Word }),
	policy.Dialect:       giveTask(func(t *query.Task, v policy.Fact) { t.Dialect = v.Word }),
	policy.EngineHint:    giveTask(func(t *query.Task, v policy.Fact) { t.EngineHint = v.Word }),
	policy.AttemptNumber: func(in *Input, v policy.Fact) error { in.Attempt = max(1, int(v.Number)); return nil },
	policy.PrincipalClass: func(in *Input, v policy.Fact) error {
		session(in).Class = query.SessionClass(v.Word)
		return nil
	},

	policy.SessionBytesRemaining: giveUsage("max_bytes", func(a *SessionAccount, left, most int64) { a.Usage.Bytes = most - left },
		func(l *budget.Limits) int64 { return l.MaxBytes }),
	policy.SessionQueriesRemaining: giveUsage("max_queries", func(a *SessionAccount, left, most int64) { a.Usage.Queries = most - left },
		func(l *budget.Limits) int64 { return l.MaxQueries }),
	policy.SessionWallMsRemaining: giveUsage("max_wall_ms", func(a *SessionAccount, left, most int64) { a.Usage.WallMs = most - left },
		func(l *budget.Limits) int64 { return l.MaxWall.Milliseconds() }),
	policy.RuleTags: func(*Input, policy.Fact) error { return errors.New("rules set rule_tags, a request does not") },
}

// readOnly are the statements that change nothing; others are given the effects of writes with their class.
var readOnly = []shape.Statement{shape.Select, shape.Show, shape.Explain}

func listed(v policy.Fact) []string {
	if v.Word != "" {
		return []string{v.Word}
	}
	return slices.Clone(v.Words)
}

func seconds(v policy.Fact) *float64 {
	if !v.Known {
		return nil
	}
	return new(v.Number / 1000)
}

func giveTask(set func(*query.Task, policy.Fact)) func(*Input, policy.Fact) error {
	return func(in *Input, v policy.Fact) error {
		set(&in.Task, v)
		return nil
	}
}

// giveShape changes what was read off the text; a text that nothing was read off is read now.
func giveShape(set func(*shape.Shape, policy.Fact)) func(*Input, policy.Fact) error {
	return func(in *Input, v policy.Fact) error {
		if !parsed(in) {
			in.Shape.Source = shape.FromTokens
		}
		set(&in.Shape, v)
		return nil
	}
}

func giveEstimate(name string, unit signal.Unit) func(*Input, policy.Fact) error {
	return func(in *Input, v policy.Fact) error {
		if in.Estimates == nil {
			in.Estimates = map[string]signal.Value{}
		}
		in.Estimates[name] = signal.Missing(made)
		if v.Known {
			in.Estimates[name] = signal.Of(v.Number, unit, made, in.Now)
		}
		return nil
	}
}

// giveHistory changes the fingerprint's profile on the first pool. A missing fact means that history could not be asked.
func giveHistory(set func(*profile.Profile, policy.Fact)) func(*Input, policy.Fact) error {
	return func(in *Input, v policy.Fact) error {
		if in.History.Asked = v.Known; !v.Known || len(in.Policy.Pools) == 0 {
			return nil
		}
		if in.History.Found == nil {
			in.History.Found = map[profile.Key]profile.Profile{}
		}
		first := &in.Policy.Pools[0]
		key := profile.Key{Fingerprint: in.Fingerprint, Engine: first.Kind, Cluster: first.Name}
		p := in.History.Found[key]
		p.Key, p.Window, p.AsOf = key, "7d", in.Now
		set(&p, v)
		in.History.Found[key] = p
		return nil
	}
}

// session is the Task's session; without one it gets an agent's, which is what budgets are for.
func session(in *Input) *query.Session {
	if in.Task.Session == nil {
		in.Task.Session = &query.Session{ID: made, Class: query.Agent}
	}
	if in.Session == nil {
		in.Session = &SessionAccount{}
	}
	return in.Task.Session
}

func giveUsage(key string, set func(a *SessionAccount, left, most int64), of func(*budget.Limits) int64) func(*Input, policy.Fact) error {
	return func(in *Input, v policy.Fact) error {
		if !v.Known {
			in.Session = nil
			return nil
		}
		session(in)
		l := in.limits()
		if l == nil || of(l) == 0 {
			return fmt.Errorf("the policy's budgets give sessions of class %q no %s, so that nothing can be left of it", in.Task.SessionClass(), key)
		}
		set(in.Session, int64(v.Number), of(l))
		return nil
	}
}
