package scaler

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/pointsman/pointsman/pkg/capacity"
	"github.com/pointsman/pointsman/pkg/config"
	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engines"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/kube"
	"github.com/pointsman/pointsman/pkg/probe"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/telemetry"
)

// group is the scaler's consumer group, and the source of its signals.
const group = "scaler"

// Config is the configuration of the scaler.
type Config struct {
	Telemetry telemetry.Config      `yaml:"telemetry"`
	Kafka     stream.Config         `yaml:"kafka"`
	Group     stream.ConsumerConfig `yaml:"group"`
	HTTP      HTTPConfig            `yaml:"http"`
	Kube      kube.Config           `yaml:"kube"`
	Pools     []PoolConfig          `yaml:"pools" doc:"The pools that are scaled."`
	Timing    TimingConfig          `yaml:"timing"`
	Paused    bool                  `yaml:"paused" doc:"Write nothing to the custom resource, neither up nor down; signals go on."`
}

// HTTPConfig is the server that shows the pools.
type HTTPConfig struct {
	Address string `yaml:"address" doc:"Address of GET /v1/pools; empty for none."`
}

// PoolConfig is one pool.
type PoolConfig struct {
	Name         string `yaml:"name" doc:"The cluster's name in decisions and signals."`
	ComputeGroup string `yaml:"computeGroup" doc:"Unique id of the compute group in the custom resource."`
	Min          int    `yaml:"min" doc:"Fewest replicas; 0 lets the pool sleep."`
	Max          int    `yaml:"max" doc:"Most replicas: a small cap."`
	Step         int    `yaml:"step" doc:"Replicas of one step between min and max."`

	IdleAfter    time.Duration `yaml:"idleAfter" doc:"How long the pool must have had nothing to do before it is put to sleep."`
	DrainFor     time.Duration `yaml:"drainFor" doc:"How long the pool is announced as going before it is taken away."`
	WakeWindow   time.Duration `yaml:"wakeWindow" doc:"How long after a raise a queue says nothing: it is the backlog of the start itself."`
	WakeTimeout  time.Duration `yaml:"wakeTimeout" doc:"How long a pool may take to become ready before the step where it is stuck is reported."`
	UnknownFor   time.Duration `yaml:"unknownFor" doc:"How long an engine that says nothing of its load can hold a pool that our tasks have left."`
	HoldUnknown  time.Duration `yaml:"holdUnknown" doc:"How long a ready pool stays announced as ready while a check has no answer."`
	RaiseOnQueue bool          `yaml:"raiseOnQueue" doc:"Raise by a step when the queue stays long. More nodes do not help a pool whose queries are bound by the memory of one."`

	Engine EngineConfig `yaml:"engine"`
	Probe  ProbeConfig  `yaml:"probe"`
}

// EngineConfig is how the pool's engine is asked.
type EngineConfig struct {
	Kind     string        `yaml:"kind" doc:"The kind of engine: clickhouse, flightsql, mysql, postgres, spark or trino."`
	Flavour  string        `yaml:"flavour" doc:"The server behind MySQL's protocol: mysql, mariadb, tidb, doris or starrocks. Empty means that the server is asked."`
	URL      string        `yaml:"url" doc:"Where it is, one server: http(s)://host:8123 or clickhouse(s)://host:9000, postgres://host:5432?sslmode=verify-full, mysql://host:9030?tls=true, http(s)://host:8080 (trino), sc://host:15002?tls=true (spark), grpc(+tls)://host:31337 (flightsql)."`
	User     string        `yaml:"user" doc:"User that checks run as."`
	Password config.Secret `yaml:"password" doc:"The user's password."`
	Database string        `yaml:"database" doc:"Database of the canary."`
	Canary   string        `yaml:"canary" doc:"Statement that touches storage and proves that a query can run; SELECT 1 touches none."`
}

// ProbeConfig is how readiness is checked.
type ProbeConfig struct {
	Every     time.Duration `yaml:"every" doc:"How often a ready pool is checked."`
	WakeEvery time.Duration `yaml:"wakeEvery" doc:"How often a pool that is waking up is checked."`
	Limits    probe.Limits  `yaml:"limits"`
}

// TimingConfig is how often the scaler looks, and how far back.
type TimingConfig struct {
	Every        time.Duration `yaml:"every" doc:"How often a pool is planned when nothing happens; a task that comes or goes is planned for at once."`
	QueueEvery   time.Duration `yaml:"queueEvery" doc:"How often the queue is read; three of four readings above zero raise the pool."`
	PublishEvery time.Duration `yaml:"publishEvery" doc:"How often signals are published when nothing changes."`
	LookBack     time.Duration `yaml:"lookBack" doc:"How far back the topics are read at the start; a task that was decided earlier and still runs is seen at the engine."`
	Grace        time.Duration `yaml:"grace" doc:"How long after its deadline a task without an outcome still counts."`
	Verify       time.Duration `yaml:"verify" doc:"How long it may take to prove that nothing was missed before a pool is put to sleep; without proof it stays."`
}

// Default is the configuration of a process that says nothing but which pools there are.
func Default() Config {
	kafka := stream.DefaultConfig()
	kafka.ClientID = "pointsman-scaler"
	g := stream.DefaultConsumerConfig(group, event.TopicDecisions)
	// The state comes from the topics, so nothing is lost with records that are gone. And a scaler that is gone should not
	// leave sleeping pools asleep for long.
	g.OnLoss, g.SessionTimeout, g.HeartbeatEvery = stream.LossResume, 10*time.Second, time.Second
	return Config{
		Telemetry: telemetry.Default("127.0.0.1:9404"),
		Kafka:     kafka,
		Group:     g,
		HTTP:      HTTPConfig{Address: "127.0.0.1:9414"},
		Kube:      kube.Config{URL: "http://127.0.0.1:8130", Namespace: "pointsman", Name: "lakehouse", Timeout: 5 * time.Second},
		Timing: TimingConfig{
			Every: time.Second, QueueEvery: 5 * time.Second, PublishEvery: 2 * time.Second, LookBack: 2 * time.Hour,
			Grace: 2 * time.Minute, Verify: 3 * time.Second,
		},
	}
}

// SetDefaults fills in what a pool of the list leaves out: seed figures of a pool of nodes that take minutes to come.
func (c *PoolConfig) SetDefaults() {
	c.Max, c.Step = 1, 1
	c.IdleAfter, c.DrainFor = 10*time.Minute, 3*time.Second
	c.WakeWindow, c.WakeTimeout = 4*time.Minute, 6*time.Minute
	c.UnknownFor, c.HoldUnknown = 15*time.Minute, 5*time.Second
	c.RaiseOnQueue = true
	c.Engine = EngineConfig{Kind: "clickhouse"}
	c.Probe = ProbeConfig{Every: 5 * time.Second, WakeEvery: time.Second, Limits: probe.DefaultLimits}
}

// spec is what pkg/capacity plans with.
func (c PoolConfig) spec() capacity.Spec {
	return capacity.Spec{
		Min: c.Min, Max: c.Max, Step: c.Step, IdleAfter: c.IdleAfter, DrainFor: c.DrainFor, WakeWindow: c.WakeWindow, UnknownFor: c.UnknownFor,
	}
}

// Validate reports the faults of a pool.
func (c PoolConfig) Validate() error {
	switch {
	case c.Name == "":
		return config.Invalid("name", "is missing")
	case c.ComputeGroup == "":
		return config.Invalid("computeGroup", "is missing")
	case c.WakeTimeout <= 0 || c.HoldUnknown < 0:
		return config.Invalid("wakeTimeout", "must be above 0, and holdUnknown not below")
	case c.Probe.Every <= 0 || c.Probe.WakeEvery <= 0:
		return config.Invalid("probe.every", "and probe.wakeEvery must be above 0")
	}
	if err := c.spec().Validate(); err != nil {
		return config.Invalid("min", "%w", err)
	}
	return nil
}

// Validate reports the faults of the timing.
func (c TimingConfig) Validate() error {
	if c.Every <= 0 || c.QueueEvery <= 0 || c.PublishEvery <= 0 || c.LookBack <= 0 || c.Grace < 0 || c.Verify <= 0 {
		return config.Invalid("every", "all times must be above 0, and grace not below")
	}
	return nil
}

// Validate reports what no section can see alone.
func (c Config) Validate() error {
	names, groups := map[string]bool{}, map[string]bool{}
	for i, p := range c.Pools {
		switch {
		case names[p.Name]:
			return config.Invalid(fmt.Sprintf("pools[%d].name", i), "%q is the name of another pool too", p.Name)
		case groups[p.ComputeGroup]:
			return config.Invalid(fmt.Sprintf("pools[%d].computeGroup", i), "%q is another pool's too", p.ComputeGroup)
		}
		names[p.Name], groups[p.ComputeGroup] = true, true
	}
	if c.HTTP.Address != "" {
		if _, _, err := net.SplitHostPort(c.HTTP.Address); err != nil {
			return config.Invalid("http.address", "must be host:port, is %q", c.HTTP.Address)
		}
	}
	return nil
}

// openEngine makes the client of a pool's engine. It does not dial: the pool may be asleep.
func openEngine(name string, c EngineConfig) (engine.Engine, error) {
	if c.Canary == "" {
		return nil, errors.New("pool " + name + ": the engine needs a canary that touches storage")
	}
	e, err := engines.Open(engines.Config{
		Name: name, Kind: c.Kind, Flavour: c.Flavour, URL: c.URL, User: c.User, Password: c.Password.Reveal(), Database: c.Database, Canary: c.Canary,
	})
	if err != nil {
		return nil, fmt.Errorf("pool %s: %w", name, err)
	}
	return e, nil
}
