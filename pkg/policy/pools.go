package policy

import (
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

var poolName = regexp.MustCompile(`^[a-z][a-z0-9_-]*$`)

func (r *reader) pools(section field) []Pool {
	var out []Pool
	for _, f := range r.mapping(section.path, section.value) {
		p := Pool{Name: f.key, Queue: "default", CostPerSecond: 1}
		if !poolName.MatchString(p.Name) {
			r.fault(f.keyNode, f.path, "a pool's name must be lower-case letters, digits, _ and -")
		}
		if slices.Contains([]string{"reject", "auto"}, p.Name) {
			r.fault(f.keyNode, f.path, "this name is taken: rules use it")
		}
		for _, o := range r.mapping(f.path, f.value) {
			r.poolOption(o, &p)
		}
		if p.Kind == "" {
			r.fault(f.keyNode, f.path, "`kind` is missing: say which engine it is, e.g. kind: clickhouse")
		}
		if p.Resource == "" {
			p.Resource = "default"
		}
		out = append(out, p)
	}
	return out
}

func (r *reader) poolOption(o field, p *Pool) {
	switch o.key {
	case "kind":
		p.Kind = r.text(o)
	case "endpoint":
		p.Endpoint = r.text(o)
	case "queue":
		p.Queue = r.text(o)
	case "resource":
		p.Resource = r.text(o)
	case "max_queue_wait_ms":
		p.MaxQueueWait = r.span(o)
	case "max_bytes_per_query":
		p.MaxBytesPerQuery = r.size(o)
	case "max_memory_per_query":
		p.MaxMemoryPerQuery = r.size(o)
	case "spills":
		p.Spills = r.truth(o)
	case "slots":
		p.Slots = int(r.within(o, 1, 1e6))
	case "sleeps_at_zero":
		p.SleepsAtZero = r.truth(o)
	case "wake_ms":
		p.WakeTime = r.span(o)
	case "startup_ms":
		p.Startup = r.span(o)
	case "bytes_per_second":
		p.BytesPerSecond = r.size(o)
	case "cost_per_second":
		p.CostPerSecond = r.within(o, 0, 1e9)
	case "read_only":
		p.ReadOnly = r.truth(o)
	case "supports_reflections":
		p.SupportsReflections = r.truth(o)
	case "dialects":
		p.Dialects = r.words(o)
	case "datasets":
		p.Datasets = r.words(o)
	case "tenants":
		p.Tenants = r.words(o)
	default:
		r.fault(o.keyNode, o.path, "unknown key of an engine")
	}
}
