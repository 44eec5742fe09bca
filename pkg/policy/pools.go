package policy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Pool is one cluster that can run attempts: an entry of `engines` in the YAML.
type Pool struct {
	// Name is the cluster's name, and what a rule's `route` means.
	Name string
	// Kind is the engine: clickhouse, trino, spark, …
	Kind     string
	Endpoint string
	Queue    string
	Resource string
	// Lanes are the queues and resource profiles of the cluster when it has several: each is a whole Pool, with what the
	// lane sets for itself. Empty when Queue and Resource above are all there is.
	Lanes []Pool
	// SignalKey is the name under which a lane may have signals of its own, cluster/queue; what is not there is the
	// cluster's. Empty for a pool without lanes.
	SignalKey string

	// MaxQueueWait removes the pool while its predicted wait is longer; zero means no limit.
	MaxQueueWait time.Duration
	// MaxBytesPerQuery and MaxMemoryPerQuery are hard limits; zero means unlimited.
	MaxBytesPerQuery  int64
	MaxMemoryPerQuery int64
	// Spills says that the engine spills to disk instead of failing when memory runs out.
	Spills bool
	// Slots is how many queries run at once; zero means unknown.
	Slots int
	// MaxConcurrentPerTenant caps the queries that one tenant has in the pool at once; zero means no cap.
	MaxConcurrentPerTenant int
	// SleepsAtZero says that the pool may have no replicas and is woken on demand, which takes about WakeTime.
	SleepsAtZero bool
	WakeTime     time.Duration
	// ReadmitSamples is in how many observations in a row the cluster must be healthy again, after it was not, before it gets
	// queries; below two there is no quarantine.
	ReadmitSamples int
	// Acquire is what it takes to get a session or an engine process, Delivery to hand the result over; zero where that is
	// part of the execution.
	Acquire, Delivery time.Duration
	// Startup and BytesPerSecond are the prior of execution time when there is no history.
	Startup        time.Duration
	BytesPerSecond int64
	// CostPerSecond weighs the pools against each other, in any one unit.
	CostPerSecond float64
	// ReadOnly pools take no statement that writes.
	ReadOnly bool
	// Replica says that the pool reads a copy, which may lag behind its source. MaxLag removes it while it lags further;
	// zero means no limit.
	Replica bool
	MaxLag  time.Duration
	// CommitTS says what the source's commit timestamps count; empty means that they can only be compared with each other.
	CommitTS CommitUnit
	// Dialects, Datasets, Catalogs and Tenants limit what the pool takes; empty means all.
	Dialects, Datasets, Catalogs, Tenants []string
	// LaneTenants, LaneUsers and LaneClasses are who may use a lane, beyond what Tenants says of the whole pool.
	LaneTenants, LaneUsers, LaneClasses []string
	// UDFs are the functions of its own that the engine has; nil means that any may be there, empty that there is none.
	UDFs []string
	// Lacks are the Features that the engine does not have.
	Lacks               []Feature
	SupportsReflections bool
}

// Targets are the lanes of the pool, or the pool itself when it has one only.
func (p *Pool) Targets() []Pool {
	if len(p.Lanes) > 0 {
		return p.Lanes
	}
	return []Pool{*p}
}

// CapsTenants reports whether any pool limits how many queries of one tenant it has at once.
func (p *Policy) CapsTenants() bool {
	for i := range p.Pools {
		if p.Pools[i].MaxConcurrentPerTenant > 0 || slices.ContainsFunc(p.Pools[i].Lanes, func(l Pool) bool { return l.MaxConcurrentPerTenant > 0 }) {
			return true
		}
	}
	return false
}

// CommitUnit is what commit timestamps count.
type CommitUnit string

// The units of commit timestamps, from 1970 on.
const (
	UnixSeconds CommitUnit = "unix_s"
	UnixMillis  CommitUnit = "unix_ms"
	UnixMicros  CommitUnit = "unix_us"
	UnixNanos   CommitUnit = "unix_ns"
)

// Time is the moment of a commit timestamp, or false when the unit does not count time.
func (u CommitUnit) Time(ts int64) (time.Time, bool) {
	switch u {
	case UnixSeconds:
		return time.Unix(ts, 0), true
	case UnixMillis:
		return time.UnixMilli(ts), true
	case UnixMicros:
		return time.UnixMicro(ts), true
	case UnixNanos:
		return time.Unix(0, ts), true
	default:
		return time.Time{}, false
	}
}

// Feature is a feature of SQL that an engine may lack.
type Feature string

// The features.
const (
	Windows   Feature = "window"
	Recursion Feature = "recursive"
	Regex     Feature = "regex"
	JSON      Feature = "json"
)

// poolPattern keeps the names of pools fit for names of facts, topics' keys and file names.
const poolPattern = `^[a-z][a-z0-9_-]*$`

var poolName = regexp.MustCompile(poolPattern)

// unmeasuredWake is how long waking takes of which nothing is said: not no time at all.
const unmeasuredWake = time.Minute

// laneOptions are what may differ from queue to queue of an engine.
var laneOptions = []option[Pool]{
	textOption("queue", "The queue inside the engine.", func(p *Pool) *string { return &p.Queue }).withDefault("default"),
	textOption("resource", "The resource profile to ask for.", func(p *Pool) *string { return &p.Resource }).withDefault("default"),
	spanOption("max_queue_wait_ms", "The pool is out while its predicted wait is longer; 0 is no limit.", func(p *Pool) *time.Duration { return &p.MaxQueueWait }),
	sizeOption("max_bytes_per_query", "The most that a query may scan there.", func(p *Pool) *int64 { return &p.MaxBytesPerQuery }).withDefault("unlimited"),
	sizeOption("max_memory_per_query", "The memory at which the engine ends a query.", func(p *Pool) *int64 { return &p.MaxMemoryPerQuery }).withDefault("unlimited"),
	truthOption("spills", "The engine spills to disk instead of failing when memory runs out.", func(p *Pool) *bool { return &p.Spills }).withDefault("false"),
	countOption("slots", "How many queries run at once; unknown when it is left out.", 1, 1e6, func(p *Pool) *int { return &p.Slots }),
	countOption("max_concurrent_per_tenant", "How many queries of one tenant may be there at once; no cap when it is left out.", 1, 1e6, func(p *Pool) *int { return &p.MaxConcurrentPerTenant }),
	spanOption("acquire_ms", "What it takes to get a session or an engine process, when nothing has measured it.", func(p *Pool) *time.Duration { return &p.Acquire }),
	spanOption("startup_ms", "Fixed time of every query, when there is no history.", func(p *Pool) *time.Duration { return &p.Startup }),
	sizeOption("bytes_per_second", "How fast it scans, when there is no history.", func(p *Pool) *int64 { return &p.BytesPerSecond }),
	numberOption("cost_per_second", "What a second costs, in any one unit for all pools.", 0, 1e9, func(p *Pool) *float64 { return &p.CostPerSecond }).withDefault("1"),
}

// queueOptions are the keys of an entry of `queues`.
var queueOptions = append([]option[Pool]{
	wordsOption("tenants", "The tenants that may use the queue; all when it is left out.", func(p *Pool) *[]string { return &p.LaneTenants }),
	wordsOption("users", "The users that may use the queue; all when it is left out.", func(p *Pool) *[]string { return &p.LaneUsers }),
	choicesOption("classes", "The classes of sessions that may use the queue; all when it is left out.",
		[]string{"human", "batch", "agent"}, func(p *Pool) *[]string { return &p.LaneClasses }),
}, laneOptions...)

var poolOptions = append([]option[Pool]{
	textOption("kind", "The engine: clickhouse, trino, spark, doris, …", func(p *Pool) *string { return &p.Kind }).must(),
	textOption("endpoint", "Where the engine listens; for people and other programs, the router does not connect.", func(p *Pool) *string { return &p.Endpoint }),
	{
		key: "queues", about: "The queues and resource profiles of the engine when it has several; each begins with what the engine says.",
		form: listForm("a list of queues", schemaOf(describe(queueOptions))),
		read: func(r *reader, f field, _ *Pool) { r.queues = &f },
	},
	truthOption("sleeps_at_zero", "The pool may have no replicas and is woken on demand.", func(p *Pool) *bool { return &p.SleepsAtZero }).withDefault("false"),
	spanOption("wake_ms", "How long waking takes when nothing has measured it.", func(p *Pool) *time.Duration { return &p.WakeTime }).withDefault("60000"),
	countOption("readmit_samples", "In how many observations in a row the cluster must be healthy again, after it was not, before it gets queries.",
		1, 1000, func(p *Pool) *int { return &p.ReadmitSamples }).withDefault("1"),
	spanOption("delivery_ms", "What it takes to hand the result over, where that is not part of the execution.", func(p *Pool) *time.Duration { return &p.Delivery }),
	truthOption("read_only", "The pool takes no statement that writes.", func(p *Pool) *bool { return &p.ReadOnly }).withDefault("false"),
	truthOption("replica", "The pool reads a copy, which may lag behind its source.", func(p *Pool) *bool { return &p.Replica }).withDefault("false"),
	spanOption("max_lag_ms", "The replica is out while it lags further; 0 is no limit.", func(p *Pool) *time.Duration { return &p.MaxLag }),
	choiceOption("commit_ts", "What the source's commit timestamps count, so that a lag in time can be held against one; left out, only the position that the replica reports counts.",
		[]CommitUnit{UnixSeconds, UnixMillis, UnixMicros, UnixNanos}, func(p *Pool) *CommitUnit { return &p.CommitTS }),
	truthOption("supports_reflections", "The engine can answer from materialised aggregates.", func(p *Pool) *bool { return &p.SupportsReflections }).withDefault("false"),
	wordsOption("dialects", "The dialects it takes; all when it is left out.", func(p *Pool) *[]string { return &p.Dialects }),
	wordsOption("datasets", "The data sets it can read; all when it is left out.", func(p *Pool) *[]string { return &p.Datasets }),
	wordsOption("catalogs", "The catalogs it can read; all when it is left out.", func(p *Pool) *[]string { return &p.Catalogs }),
	wordsOption("tenants", "The tenants that may use it; all when it is left out.", func(p *Pool) *[]string { return &p.Tenants }),
	udfsOption(),
	choicesOption("lacks", "The features of SQL that the engine does not have.", []Feature{Windows, Recursion, Regex, JSON}, func(p *Pool) *[]Feature { return &p.Lacks }),
}, laneOptions...)

// udfsOption reads a list that may be empty: an engine with no functions of its own is not one of which nothing is said.
func udfsOption() option[Pool] {
	o := wordsOption("udfs", "The functions of its own that the engine has; an empty list is none, left out any may be there.",
		func(p *Pool) *[]string { return &p.UDFs })
	words := o.read
	o.read = func(r *reader, f field, p *Pool) {
		words(r, f, p)
		p.UDFs = append([]string{}, p.UDFs...)
	}
	return o
}

func (r *reader) pools(section field) []Pool {
	var out []Pool
	for _, f := range r.mapping(section.path, section.value) {
		p := Pool{Name: f.key, Queue: "default", Resource: "default", CostPerSecond: 1, WakeTime: unmeasuredWake}
		if !poolName.MatchString(p.Name) {
			r.fault(f.keyNode, f.path, "a pool's name must be lower-case letters, digits, _ and -")
		}
		if slices.Contains([]string{"reject", "auto"}, p.Name) {
			r.fault(f.keyNode, f.path, fmt.Sprintf("the name %q is taken: rules use it", p.Name))
		}
		r.queues = nil
		readOptions(r, f, "an engine", poolOptions, &p)
		if i := slices.IndexFunc(out, func(o Pool) bool { return inExpressions(o.Name) == inExpressions(p.Name) && o.Name != p.Name }); i >= 0 {
			r.fault(f.keyNode, f.path, fmt.Sprintf("expressions could not tell it from %q: they write - as _", out[i].Name))
		}
		if p.Kind == "" {
			r.fault(f.keyNode, f.path, "`kind` is missing: say which engine it is, e.g. kind: clickhouse")
		}
		if (p.MaxLag > 0 || p.CommitTS != "") && !p.Replica {
			r.fault(f.keyNode, f.path, "max_lag_ms and commit_ts are for copies: say `replica: true` as well")
		}
		if p.ReadmitSamples > 1 && p.SleepsAtZero {
			r.fault(f.keyNode, f.path, "readmit_samples is for pools that are always up: one that sleeps is not healthy while it does")
		}
		if r.queues != nil {
			p.Lanes = r.lanes(*r.queues, p)
		}
		out = append(out, p)
	}
	return out
}

// lanes reads the queues of a pool: each has what the pool has, but for what it sets itself.
func (r *reader) lanes(section field, pool Pool) []Pool {
	var out []Pool
	for _, item := range r.sequence(section) {
		lane := pool
		lane.Queue = ""
		readOptions(r, item, "a queue", queueOptions, &lane)
		switch {
		case lane.Queue == "":
			r.fault(item.value, item.path, "`queue` is missing: say which queue of the engine it is")
		case slices.ContainsFunc(out, func(p Pool) bool { return p.Queue == lane.Queue && p.Resource == lane.Resource }):
			r.fault(item.value, item.path, fmt.Sprintf("queue %q with resource %q stands here twice", lane.Queue, lane.Resource))
		}
		lane.SignalKey = lane.Name + "/" + lane.Queue
		out = append(out, lane)
	}
	if len(out) == 0 {
		r.fault(section.keyNode, section.path, "names no queue; leave it out when the engine has one only")
	}
	return out
}

// choicesOption is a word or a list of words out of a closed list.
func choicesOption[T any, S ~string](key, about string, choices []S, at func(*T) *[]S) option[T] {
	list := make([]string, len(choices))
	for i, c := range choices {
		list[i] = string(c)
	}
	one := map[string]any{"enum": list}
	return option[T]{
		key: key, about: about,
		form: form{name: "one or several of " + strings.Join(list, ", "), schema: map[string]any{
			"anyOf": []any{one, map[string]any{"type": "array", "items": one}},
		}},
		read: func(r *reader, f field, into *T) {
			*at(into) = nil
			for _, w := range r.words(f) {
				if !slices.Contains(choices, S(w)) {
					r.fault(f.value, f.path, fmt.Sprintf("%q is none of %s", w, strings.Join(list, ", ")))
				}
				*at(into) = append(*at(into), S(w))
			}
		},
	}
}

// listForm is a list of mappings.
func listForm(name string, item map[string]any) form {
	return form{name: name, schema: map[string]any{"type": "array", "minItems": 1, "items": item}}
}
