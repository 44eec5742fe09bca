package contrast

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pointsman/pointsman/pkg/budget"
	"github.com/pointsman/pointsman/pkg/policy"
	"github.com/pointsman/pointsman/pkg/profile"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/route"
	"github.com/pointsman/pointsman/pkg/shape"
	"github.com/pointsman/pointsman/pkg/signal"
)

// value is what a made-up input is given for a fact: a number, a word, or nothing.
type value struct {
	number  float64
	word    string
	isWord  bool
	missing bool
}

// setter gives an input a fact. What rules call a fact is spread over the input's fields; this is the way back.
type setter struct {
	unit signal.Unit
	set  func(in *route.Input, v value)
}

// setters are the facts that an input can be given, by the names that rules use. Facts about pools are made by poolSetter.
var setters = map[string]setter{
	"estimated_bytes": {signal.Bytes, estimate(route.ScanBytes, signal.Bytes)},
	"estimated_memory_bytes": {signal.Bytes, func(in *route.Input, v value) {
		history(in, func(p *profile.Profile) {
			p.PeakMemoryBytes = nil
			if !v.missing {
				p.Runs, p.PeakMemoryBytes = max(p.Runs, 10), new(int64(v.number))
			}
		})
	}},
	"sla_ms": {signal.Millis, func(in *route.Input, v value) {
		in.Task.SLASeconds = nil
		if !v.missing {
			in.Task.SLASeconds = new(v.number / 1000)
		}
	}},
	"attempt":        {"", func(in *route.Input, v value) { in.Attempt = max(1, int(v.number)) }},
	"join_tables":    {"", func(in *route.Input, v value) { in.Shape.JoinTables = int(v.number); tables(in, int(v.number)) }},
	"table_count":    {"", func(in *route.Input, v value) { tables(in, int(v.number)) }},
	"subquery_depth": {"", func(in *route.Input, v value) { in.Shape.SubqueryDepth = int(v.number) }},
	"output_columns": {"", func(in *route.Input, v value) {
		in.Shape.OutputColumns = nil
		if !v.missing {
			in.Shape.OutputColumns = new(int(v.number))
		}
	}},
	"timeout_ms": {signal.Millis, func(in *route.Input, v value) {
		in.Task.TimeoutSeconds = nil
		if !v.missing {
			in.Task.TimeoutSeconds = new(v.number / 1000)
		}
	}},
	"priority": {"", func(in *route.Input, v value) { in.Task.Priority = int(v.number) }},
	"limit": {"", func(in *route.Input, v value) {
		in.Shape.Limit = nil
		if !v.missing {
			in.Shape.Limit = new(int64(v.number))
		}
		in.Shape.HasLimit = !v.missing
	}},
	"has_limit":               {signal.Flag, func(in *route.Input, v value) { in.Shape.HasLimit = v.number != 0 }},
	"selects_all_columns":     {signal.Flag, func(in *route.Input, v value) { in.Shape.Star = v.number != 0 }},
	"reflection_covers_query": {signal.Flag, estimate(route.ReflectionCovers, signal.Flag)},
	"has_window_over_large_partition": {signal.Flag, func(in *route.Input, v value) {
		in.Shape.Windows = []shape.Window{{Function: "row_number", Ordered: true}}
		estimate(route.LargeWindow, signal.Flag)(in, v)
	}},
	"has_window": {signal.Flag, func(in *route.Input, v value) {
		in.Shape.Windows = nil
		if v.number != 0 {
			in.Shape.Windows = []shape.Window{{Function: "row_number", Ordered: true}}
		}
	}},
	"has_udf": {signal.Flag, func(in *route.Input, v value) {
		in.Shape.UDFs = nil
		if v.number != 0 {
			in.Shape.UDFs = []string{"some_udf"}
		}
	}},
	"has_group_by": {signal.Flag, func(in *route.Input, v value) { in.Shape.GroupBy = v.number != 0 }},
	"read_only": {signal.Flag, func(in *route.Input, v value) {
		in.Shape.ReadOnly = v.number != 0
		if !in.Shape.ReadOnly && in.Shape.Statement == shape.Select {
			in.Shape.Statement = shape.Insert
		}
	}},
	"no_expensive_ops": {signal.Flag, func(in *route.Input, v value) {
		in.Shape.Windows, in.Shape.UDFs, in.Shape.JSON, in.Shape.Regex = nil, nil, 0, 0
		if v.number == 0 {
			in.Shape.Regex = 1
		}
	}},
	"parsed": {signal.Flag, func(in *route.Input, v value) {
		in.Shape.Source = shape.FromNone
		if v.number != 0 {
			in.Shape.Source = shape.FromTokens
		}
	}},
	"command": {"", func(in *route.Input, v value) { in.Shape.Command = v.word }},
	"statement": {"", func(in *route.Input, v value) {
		in.Shape.Statement = shape.Statement(v.word)
		in.Shape.ReadOnly = in.Shape.Statement == shape.Select || in.Shape.Statement == shape.Show || in.Shape.Statement == shape.Explain
	}},
	"tables": {"", func(in *route.Input, v value) {
		in.Shape.Tables = []shape.Table{shape.TableOf(strings.Split(v.word, "."))}
	}},
	"client_tag": {"", func(in *route.Input, v value) {
		in.Task.Tags = nil
		if v.word != "" {
			in.Task.Tags = []string{v.word}
		}
	}},
	"principal_class": {"", func(in *route.Input, v value) {
		in.Task.Session, in.Session = nil, nil
		if v.word != "" {
			in.Task.Session, in.Session = &query.Session{ID: "s", Class: query.SessionClass(v.word)}, &route.SessionAccount{}
		}
	}},
	"tenant":      {"", func(in *route.Input, v value) { in.Task.Tenant = v.word }},
	"user":        {"", func(in *route.Input, v value) { in.Task.User = v.word }},
	"dataset":     {"", func(in *route.Input, v value) { in.Task.Dataset = v.word }},
	"query_type":  {"", func(in *route.Input, v value) { in.Task.QueryType = v.word }},
	"dialect":     {"", func(in *route.Input, v value) { in.Task.Dialect = v.word }},
	"catalog":     {"", func(in *route.Input, v value) { in.Task.Catalog = v.word }},
	"schema":      {"", func(in *route.Input, v value) { in.Task.Schema = v.word }},
	"consistency": {"", func(in *route.Input, v value) { in.Task.Consistency = query.Consistency(v.word) }},
	"engine_hint": {"", func(in *route.Input, v value) { in.Task.EngineHint = v.word }},

	"history_runs": {"", func(in *route.Input, v value) {
		in.History.Asked = !v.missing
		history(in, func(p *profile.Profile) { p.Runs, p.Successes = int64(v.number), int64(v.number) })
	}},
	"history_memory_kills": {"", func(in *route.Input, v value) {
		in.History.Asked = !v.missing
		history(in, func(p *profile.Profile) { p.Runs, p.MemoryKills = max(p.Runs, int64(v.number)), int64(v.number) })
	}},
	usedQueries:   {"", usage(func(u *route.SessionAccount, n int64) { u.Usage.Queries = n })},
	usedBytes:     {signal.Bytes, usage(func(u *route.SessionAccount, n int64) { u.Usage.Bytes = n })},
	usedWallMs:    {signal.Millis, usage(func(u *route.SessionAccount, n int64) { u.Usage.WallMs = n })},
	tenantQueries: {"", tenant(func(a *route.TenantAccount, n int64) { a.Slices[0].Queries = n })},
	tenantBytes:   {signal.Bytes, tenant(func(a *route.TenantAccount, n int64) { a.Slices[0].Bytes = n })},
	tenantRunning: {"", tenant(func(a *route.TenantAccount, n int64) { a.Running = n })},
}

// What inputs are given besides the facts that rules test, under names that read well.
const (
	usedQueries = "queries used by the session"
	usedBytes   = "bytes used by the session"
	usedWallMs  = "time used by the session"

	tenantQueries = "queries of the tenant in its window"
	tenantBytes   = "bytes of the tenant in its window"
	tenantRunning = "queries of the tenant that run"
)

func estimate(name string, unit signal.Unit) func(*route.Input, value) {
	return func(in *route.Input, v value) {
		if v.missing {
			in.Estimates[name] = signal.Missing("made up")
			return
		}
		in.Estimates[name] = signal.Of(v.number, unit, "made up", in.Now)
	}
}

func usage(set func(*route.SessionAccount, int64)) func(*route.Input, value) {
	return func(in *route.Input, v value) {
		if in.Task.Session == nil {
			in.Task.Session = &query.Session{ID: "s", Class: query.Agent}
		}
		if in.Session == nil {
			in.Session = &route.SessionAccount{}
		}
		set(in.Session, int64(v.number))
	}
}

func tenant(set func(*route.TenantAccount, int64)) func(*route.Input, value) {
	return func(in *route.Input, v value) {
		in.Tenant = &route.TenantAccount{WindowMs: 3_600_000, Slices: []budget.Slice{{Leaves: in.Now.Add(time.Hour)}}}
		set(in.Tenant, int64(v.number))
	}
}

func tables(in *route.Input, n int) {
	in.Shape.Tables = nil
	for i := range max(n, 0) {
		in.Shape.Tables = append(in.Shape.Tables, shape.Table{Name: "t" + strconv.Itoa(i+1)})
	}
}

// history changes the profiles of all pools that the input has any of.
func history(in *route.Input, edit func(*profile.Profile)) {
	for k, p := range in.History.Found {
		edit(&p)
		in.History.Found[k] = p
	}
}

// setter finds the setter of a fact by the name that rules use.
func (g *grid) setter(fact string) (setter, bool) {
	if s, ok := setters[fact]; ok {
		return s, true
	}
	if s, ok := g.remaining(fact); ok {
		return s, true
	}
	if g.latches[fact] {
		return setter{signal.Flag, func(in *route.Input, v value) {
			if in.Latches == nil {
				in.Latches = map[string]policy.Latch{}
			}
			in.Latches[fact] = policy.Latch{Known: !v.missing, On: v.number != 0, Since: in.Now, At: in.Now}
		}}, true
	}
	for _, p := range g.pools {
		rest, ok := strings.CutPrefix(fact, p.Name+"_")
		if !ok {
			continue
		}
		for id, spec := range policy.PoolFacts {
			if spec.Name == rest {
				return poolSetter(p, policy.PoolFact(id), spec), true
			}
		}
	}
	return setter{}, false
}

// remaining sets what a session has left by what it has used of the first policy's limit, or of the second's if the first has none.
func (g *grid) remaining(fact string) (setter, bool) {
	of := map[string]struct {
		used string
		most int64
	}{
		"session_queries_remaining": {usedQueries, g.session.MaxQueries},
		"session_bytes_remaining":   {usedBytes, g.session.MaxBytes},
		"session_wall_ms_remaining": {usedWallMs, g.session.MaxWall.Milliseconds()},
	}
	f, ok := of[fact]
	if !ok {
		return setter{}, false
	}
	used := setters[f.used]
	return setter{used.unit, func(in *route.Input, v value) {
		if v.missing {
			in.Task.Session, in.Session = nil, nil
			return
		}
		used.set(in, value{number: float64(f.most) - v.number})
	}}, true
}

// poolSetter sets the signal behind a fact about a pool. Load is set by what waits.
func poolSetter(p policy.Pool, id policy.PoolFact, spec policy.FactSpec) setter {
	unit := map[string]signal.Unit{"bytes": signal.Bytes, "ms": signal.Millis, "1/s": signal.PerSecond}[spec.Unit]
	if spec.Kind == policy.BoolKind {
		unit = signal.Flag
	}
	name := policy.SignalOf[id]
	return setter{unit, func(in *route.Input, v value) {
		n, name := v.number, name
		if id == policy.PoolLoad {
			name, n = signal.Queued, n*in.Signals[p.Name][signal.Slots].Or(1)
		}
		if v.missing {
			delete(in.Signals[p.Name], name)
			return
		}
		in.Signals[p.Name][name] = signal.Of(n, unit, "made up", in.Now)
	}}
}

// say writes a fact with its value for people.
func say(fact string, unit signal.Unit, v value) string {
	switch {
	case v.missing:
		return fact + " unknown"
	case v.isWord && v.word == "":
		return "no " + fact
	case v.isWord:
		return fact + " " + v.word
	case unit == signal.Bytes || unit == signal.Millis && v.number == float64(int64(v.number)):
		return fmt.Sprintf("%s %s", fact, exact(v.number, unit))
	default:
		return fact + " " + signal.Of(v.number, unit, "", time.Time{}).String()
	}
}

// exact writes a number next to a threshold so that it can be told from the threshold.
func exact(n float64, unit signal.Unit) string {
	short := signal.Of(n, unit, "", time.Time{}).String()
	long := strconv.FormatFloat(n, 'f', -1, 64) + " " + map[signal.Unit]string{signal.Bytes: "B", signal.Millis: "ms"}[unit]
	if len(long) <= len(short)+2 {
		return long
	}
	// Sizes are read by their head; what is one off is said to be.
	for _, off := range []float64{1, -1} {
		if round := n - off; round >= 1000 && float64(int64(round/1e6))*1e6 == round {
			return fmt.Sprintf("%s%+g", signal.Of(round, unit, "", time.Time{}), off)
		}
	}
	return short
}
