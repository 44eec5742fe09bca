package policy

import (
	"fmt"
	"regexp"
	"slices"
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

	// MaxQueueWait removes the pool while its predicted wait is longer; zero means no limit.
	MaxQueueWait time.Duration
	// MaxBytesPerQuery and MaxMemoryPerQuery are hard limits; zero means unlimited.
	MaxBytesPerQuery  int64
	MaxMemoryPerQuery int64
	// Spills says that the engine spills to disk instead of failing when memory runs out.
	Spills bool
	// Slots is how many queries run at once; zero means unknown.
	Slots int
	// SleepsAtZero says that the pool may have no replicas and is woken on demand, which takes about WakeTime.
	SleepsAtZero bool
	WakeTime     time.Duration
	// Startup and BytesPerSecond are the prior of execution time when there is no history.
	Startup        time.Duration
	BytesPerSecond int64
	// CostPerSecond weighs the pools against each other, in any one unit.
	CostPerSecond float64
	// ReadOnly pools take no statement that writes.
	ReadOnly bool
	// Dialects, Datasets and Tenants limit what the pool takes; empty means all.
	Dialects, Datasets, Tenants []string
	SupportsReflections         bool
}

// poolPattern keeps the names of pools fit for names of facts, topics' keys and file names.
const poolPattern = `^[a-z][a-z0-9_-]*$`

var poolName = regexp.MustCompile(poolPattern)

var poolOptions = []option[Pool]{
	textOption("kind", "The engine: clickhouse, trino, spark, doris, …", func(p *Pool) *string { return &p.Kind }).must(),
	textOption("endpoint", "Where the engine listens; for people and other programs, the router does not connect.", func(p *Pool) *string { return &p.Endpoint }),
	textOption("queue", "The queue inside the engine.", func(p *Pool) *string { return &p.Queue }).withDefault("default"),
	textOption("resource", "The resource profile to ask for.", func(p *Pool) *string { return &p.Resource }).withDefault("default"),
	spanOption("max_queue_wait_ms", "The pool is out while its predicted wait is longer; 0 is no limit.", func(p *Pool) *time.Duration { return &p.MaxQueueWait }),
	sizeOption("max_bytes_per_query", "The most that a query may scan there.", func(p *Pool) *int64 { return &p.MaxBytesPerQuery }).withDefault("unlimited"),
	sizeOption("max_memory_per_query", "The memory at which the engine ends a query.", func(p *Pool) *int64 { return &p.MaxMemoryPerQuery }).withDefault("unlimited"),
	truthOption("spills", "The engine spills to disk instead of failing when memory runs out.", func(p *Pool) *bool { return &p.Spills }).withDefault("false"),
	countOption("slots", "How many queries run at once; unknown when it is left out.", 1, 1e6, func(p *Pool) *int { return &p.Slots }),
	truthOption("sleeps_at_zero", "The pool may have no replicas and is woken on demand.", func(p *Pool) *bool { return &p.SleepsAtZero }).withDefault("false"),
	spanOption("wake_ms", "How long waking takes when nothing has measured it.", func(p *Pool) *time.Duration { return &p.WakeTime }),
	spanOption("startup_ms", "Fixed time of every query, when there is no history.", func(p *Pool) *time.Duration { return &p.Startup }),
	sizeOption("bytes_per_second", "How fast it scans, when there is no history.", func(p *Pool) *int64 { return &p.BytesPerSecond }),
	numberOption("cost_per_second", "What a second costs, in any one unit for all pools.", 0, 1e9, func(p *Pool) *float64 { return &p.CostPerSecond }).withDefault("1"),
	truthOption("read_only", "The pool takes no statement that writes.", func(p *Pool) *bool { return &p.ReadOnly }).withDefault("false"),
	truthOption("supports_reflections", "The engine can answer from materialised aggregates.", func(p *Pool) *bool { return &p.SupportsReflections }).withDefault("false"),
	wordsOption("dialects", "The dialects it takes; all when it is left out.", func(p *Pool) *[]string { return &p.Dialects }),
	wordsOption("datasets", "The data sets it can read; all when it is left out.", func(p *Pool) *[]string { return &p.Datasets }),
	wordsOption("tenants", "The tenants that may use it; all when it is left out.", func(p *Pool) *[]string { return &p.Tenants }),
}

func (r *reader) pools(section field) []Pool {
	var out []Pool
	for _, f := range r.mapping(section.path, section.value) {
		p := Pool{Name: f.key, Queue: "default", Resource: "default", CostPerSecond: 1}
		if !poolName.MatchString(p.Name) {
			r.fault(f.keyNode, f.path, "a pool's name must be lower-case letters, digits, _ and -")
		}
		if slices.Contains([]string{"reject", "auto"}, p.Name) {
			r.fault(f.keyNode, f.path, fmt.Sprintf("the name %q is taken: rules use it", p.Name))
		}
		readOptions(r, f, "an engine", poolOptions, &p)
		if p.Kind == "" {
			r.fault(f.keyNode, f.path, "`kind` is missing: say which engine it is, e.g. kind: clickhouse")
		}
		out = append(out, p)
	}
	return out
}
