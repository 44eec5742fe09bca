package profiler

import (
	"errors"
	"fmt"
	"time"

	"github.com/pointsman/pointsman/pkg/config"
	"github.com/pointsman/pointsman/pkg/engines"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/history"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/telemetry"
)

// Config is the configuration of the profiler.
type Config struct {
	Telemetry telemetry.Config      `yaml:"telemetry"`
	Kafka     stream.Config         `yaml:"kafka"`
	Consumer  stream.ConsumerConfig `yaml:"consumer"`
	History   history.Config        `yaml:"history"`
	Migrate   bool                  `yaml:"migrate" doc:"Bring the history's schema up at the start."`
	Sink      SinkConfig            `yaml:"sink"`
	Rollups   RollupConfig          `yaml:"rollups"`
	Watch     WatchConfig           `yaml:"watch"`
	Load      LoadConfig            `yaml:"load"`
	Engines   []EngineConfig        `yaml:"engines" doc:"Clusters to watch."`
	HTTP      HTTPConfig            `yaml:"http"`
}

// SinkConfig says how events are gathered into inserts.
type SinkConfig struct {
	FlushEvery time.Duration   `yaml:"flushEvery" doc:"Longest that a record waits for others to be inserted with."`
	BatchRows  int             `yaml:"batchRows" doc:"Rows of one insert at which nobody waits any longer."`
	MaxBytes   config.ByteSize `yaml:"maxBytes" doc:"Records in memory that are not stored yet; over it reading stops, as it does when the history is down."`
	MaxBackoff time.Duration   `yaml:"maxBackoff" doc:"Longest pause between two tries of an insert."`
}

// RollupConfig says how often rollups are made anew.
type RollupConfig struct {
	Every     time.Duration `yaml:"every" doc:"Shortest time between two recomputes; they also never take more than a tenth of the time."`
	Reconcile time.Duration `yaml:"reconcile" doc:"How often hours are looked for that another profiler marked and did not get to."`
}

// WatchConfig says how engines are watched.
type WatchConfig struct {
	Every       time.Duration `yaml:"every" doc:"How often each engine is asked for its load."`
	CanaryEvery time.Duration `yaml:"canaryEvery" doc:"How often each engine has to prove that it can run a query."`
	Timeout     time.Duration `yaml:"timeout" doc:"Longest answer; an engine that takes longer is unhealthy."`
}

// LoadConfig says how the load that attempts tell of is published.
type LoadConfig struct {
	Every     time.Duration `yaml:"every" doc:"Shortest time between two signals of a cluster."`
	Heartbeat time.Duration `yaml:"heartbeat" doc:"Longest time between two signals of a cluster, changed or not."`
	LookBack  time.Duration `yaml:"lookBack" doc:"How far back attempts are read at the start."`
}

// EngineConfig is one cluster.
type EngineConfig struct {
	Name     string        `yaml:"name" doc:"Name of the cluster in decisions and signals."`
	Kind     string        `yaml:"kind" doc:"Kind of engine: clickhouse, flightsql, mysql, postgres, spark or trino."`
	Flavour  string        `yaml:"flavour" doc:"The server behind MySQL's protocol: mysql, mariadb, tidb, doris or starrocks. Empty means that the server is asked."`
	URL      string        `yaml:"url" doc:"Where it is, one server, as at the executor: http(s)://host:8123, clickhouse(s)://host:9000, postgres://host:5432?sslmode=verify-full, mysql://host:3306?tls=true, http(s)://host:8080 (trino), sc://host:15002?tls=true (spark), grpc(+tls)://host:31337 (flightsql)."`
	Addr     []string      `yaml:"addr" doc:"The older way to say url, of a ClickHouse server: host:port."`
	Protocol string        `yaml:"protocol" doc:"With addr: http or native; empty means http."`
	User     string        `yaml:"user" doc:"User name."`
	Password config.Secret `yaml:"password" doc:"Password of the user."`
	Database string        `yaml:"database" doc:"Database of the canary."`
	Group    string        `yaml:"group" doc:"Resource group that is observed (trino)."`
	Canary   string        `yaml:"canary" doc:"Statement that touches the engine's storage; empty means SELECT 1, which touches none."`
	Slots    *int          `yaml:"slots" doc:"Queries that run there at once; without it no wait is known before one was seen."`
}

// HTTPConfig is the console's server.
type HTTPConfig struct {
	Address string `yaml:"address" doc:"Address of the console; empty for none."`
}

// Default is the configuration of a profiler beside the embedded broker and history.
func Default() Config {
	return Config{
		Telemetry: telemetry.Default("127.0.0.1:9405"),
		Kafka:     stream.DefaultConfig(),
		Consumer:  consumerDefaults(),
		History:   history.DefaultConfig(),
		Migrate:   true,
		Sink:      SinkConfig{FlushEvery: time.Second, BatchRows: 10_000, MaxBytes: 64 * config.MiB, MaxBackoff: 10 * time.Second},
		Rollups:   RollupConfig{Every: time.Second, Reconcile: time.Minute},
		Watch:     WatchConfig{Every: time.Second, CanaryEvery: 5 * time.Second, Timeout: 2 * time.Second},
		Load:      LoadConfig{Every: 250 * time.Millisecond, Heartbeat: 2 * time.Second, LookBack: time.Hour},
		HTTP:      HTTPConfig{Address: "127.0.0.1:8085"},
	}
}

// group is the profiler's consumer group.
const group = "profiler"

func consumerDefaults() stream.ConsumerConfig {
	c := stream.DefaultConsumerConfig(group, event.TopicRequests, event.TopicDecisions, event.TopicAttempts, event.TopicOutcomes, event.TopicSignals)
	c.MaxSpan = 4000 // what waits here besides the sink's MaxBytes, per partition, when the history is down
	return c
}

// Validate checks the section.
func (c SinkConfig) Validate() error {
	errs := []error{positive("flushEvery", c.FlushEvery), positive("maxBackoff", c.MaxBackoff)}
	if c.BatchRows < 1 {
		errs = append(errs, config.Invalid("batchRows", "must be at least 1, is %d", c.BatchRows))
	}
	if c.MaxBytes < config.MiB {
		errs = append(errs, config.Invalid("maxBytes", "must be at least 1 MiB, is %s", c.MaxBytes))
	}
	return errors.Join(errs...)
}

// Validate checks the section.
func (c RollupConfig) Validate() error {
	return errors.Join(positive("every", c.Every), positive("reconcile", c.Reconcile))
}

// Validate checks the section.
func (c WatchConfig) Validate() error {
	return errors.Join(positive("every", c.Every), positive("canaryEvery", c.CanaryEvery), positive("timeout", c.Timeout))
}

// Validate checks the section.
func (c LoadConfig) Validate() error {
	return errors.Join(positive("every", c.Every), positive("heartbeat", c.Heartbeat), positive("lookBack", c.LookBack))
}

// Validate checks one engine.
func (c EngineConfig) Validate() error {
	var errs []error
	if c.Name == "" {
		errs = append(errs, config.Invalid("name", "is missing"))
	}
	if c.URL != "" && len(c.Addr) > 0 {
		errs = append(errs, config.Invalid("addr", "url says it already"))
	}
	if err := engines.Check(c.client()); err != nil {
		errs = append(errs, config.Invalid(engines.Key(err), "%w", err))
	}
	if c.Slots != nil && *c.Slots < 0 {
		errs = append(errs, config.Invalid("slots", "%d is negative", *c.Slots))
	}
	return errors.Join(errs...)
}

// Validate checks what no section can: that no cluster is named twice.
func (c Config) Validate() error {
	seen := map[string]bool{}
	var errs []error
	for i, e := range c.Engines {
		if seen[e.Name] {
			errs = append(errs, config.Invalid(fmt.Sprintf("engines[%d].name", i), "%q is there twice", e.Name))
		}
		seen[e.Name] = true
	}
	return errors.Join(errs...)
}

func positive(key string, d time.Duration) error {
	if d <= 0 {
		return config.Invalid(key, "must be above 0, is %s", d)
	}
	return nil
}
