package executor

import (
	"fmt"
	"time"

	"github.com/pointsman/pointsman/pkg/config"
	"github.com/pointsman/pointsman/pkg/engines"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/telemetry"
)

// group is the executor's consumer group.
const group = "executor"

// Config is the configuration of the executor.
type Config struct {
	Telemetry telemetry.Config      `yaml:"telemetry"`
	Kafka     stream.Config         `yaml:"kafka"`
	Group     stream.ConsumerConfig `yaml:"group"`
	Engines   []EngineConfig        `yaml:"engines" doc:"The clusters that attempts can run on, by the names that decisions give them."`
	Attempts  AttemptConfig         `yaml:"attempts"`
	Caps      CapConfig             `yaml:"caps"`
	Results   ResultConfig          `yaml:"results"`
}

// EngineConfig is one cluster.
type EngineConfig struct {
	Name     string        `yaml:"name" doc:"The cluster's name in decisions and signals."`
	Kind     string        `yaml:"kind" doc:"The kind of engine: clickhouse, flightsql, mysql, postgres, spark or trino."`
	Flavour  string        `yaml:"flavour" doc:"The server behind MySQL's protocol: mysql, mariadb, tidb, doris or starrocks. Empty means that the server is asked."`
	URL      string        `yaml:"url" doc:"Where it is, one server: http(s)://host:8123 or clickhouse(s)://host:9000, postgres://host:5432?sslmode=verify-full, mysql://host:3306?tls=true, http(s)://host:8080 (trino), sc://host:15002?tls=true (spark), grpc(+tls)://host:31337 (flightsql). Of several hosts each is an engine of its own."`
	User     string        `yaml:"user" doc:"User that queries run as."`
	Password config.Secret `yaml:"password" doc:"The user's password."`
	Database string        `yaml:"database" doc:"Database of queries that name no schema."`
	Group    string        `yaml:"group" doc:"Workload group that queries run in (mysql but for mariadb, which has none), or resource group that is observed (trino). A resource profile names another workload group by the setting workload_group."`
	Slots    int           `yaml:"slots" doc:"Most attempts that this process runs there at once; further ones wait in line. While it runs it can be made smaller, and as large again as it was at the start."`
	// SharedSlots and Queues are caps for all executors together; of different values the newest holds for all.
	SharedSlots int                    `yaml:"sharedSlots" doc:"Most attempts there at once, all executors of the group together; 0 sets no such cap."`
	Queues      map[string]QueueConfig `yaml:"queues" doc:"Queues of the engine that decisions may name. A decision for a queue that is not here is run without settings of a queue."`
	Canary      string                 `yaml:"canary" doc:"Statement that proves that the storage answers; SELECT 1 touches none."`
	Limits      Limits                 `yaml:"limits" doc:"Limits and settings of every query."`
	// Resources refine Limits for decisions that name a resource profile.
	Resources map[string]Limits `yaml:"resources" doc:"Limits and settings by resource profile; what a profile leaves out is taken from limits."`
	// Larger orders profiles by what they give.
	Larger map[string]string `yaml:"larger" doc:"By resource profile, the larger one of this cluster that a read is tried with next when it ran out of memory."`
}

// Limits are what an engine enforces for one query.
type Limits struct {
	MaxMemory    config.ByteSize   `yaml:"maxMemory" doc:"Memory that one query may take; 0 leaves it to the engine."`
	MaxExecution time.Duration     `yaml:"maxExecution" doc:"Longest that one query may run; 0 means until its Task's deadline."`
	Settings     map[string]string `yaml:"settings" doc:"Engine settings sent with every query."`
}

// QueueConfig is one queue of an engine, as decisions name it.
type QueueConfig struct {
	Cap      int               `yaml:"cap" doc:"Most attempts in it at once, all executors of the group together; 0 sets no cap."`
	Settings map[string]string `yaml:"settings" doc:"Engine settings that put a query into the engine's own queue, sent with each query that was routed to this one: workload (clickhouse), workload_group (mysql), spark.scheduler.pool (spark), client_tags (trino), a header (flightsql). They go before those of limits and of resources."`
}

// CapConfig is what tenants may have at once, all executors of the group together. Of different values the newest holds for all.
type CapConfig struct {
	Tenant  int            `yaml:"tenant" doc:"Most attempts of one tenant at once, on all clusters and in all executors of the group together; 0 sets no cap."`
	Tenants map[string]int `yaml:"tenants" doc:"The same for tenants by name; 0 sets no cap for a tenant."`
	Reload  time.Duration  `yaml:"reload" doc:"How often the configuration is looked at for other caps and slots (caps.tenant, caps.tenants, engines[].sharedSlots, queues[].cap and slots), which are taken over without a restart; 0 never looks."`
}

// Validate checks the section.
func (c CapConfig) Validate() error {
	if c.Tenant < 0 || c.Reload < 0 {
		return config.Invalid("tenant", "and reload must not be negative")
	}
	for name, n := range c.Tenants {
		if n < 0 {
			return config.Invalid("tenants."+name, "must not be negative, is %d", n)
		}
	}
	return nil
}

// AttemptConfig is how attempts are made and made again.
type AttemptConfig struct {
	MaxAttempts   int           `yaml:"maxAttempts" doc:"Most attempts of one Task, on all clusters together. One that ended only because its executor went away does not count."`
	MaxRetries    int           `yaml:"maxRetries" doc:"Most attempts in a row on one target after its first. One that ended only because its executor went away does not count."`
	RetryShare    float64       `yaml:"retryShare" doc:"Retries that a cluster may get for each submission that is none, once retryReserve is spent. A retry beyond that becomes a failover, or the Task is routed anew."`
	RetryReserve  int           `yaml:"retryReserve" doc:"Retries that a cluster may get in a row whatever was submitted, per process."`
	BackoffFirst  time.Duration `yaml:"backoffFirst" doc:"Wait before the first retry on a target; it doubles, with jitter."`
	BackoffMax    time.Duration `yaml:"backoffMax" doc:"Longest wait before a retry."`
	CapacityWait  time.Duration `yaml:"capacityWait" doc:"Longest that an attempt waits for a sleeping pool before the Task is routed anew."`
	SignalAge     time.Duration `yaml:"signalAge" doc:"How old a signal may be to say that a pool sleeps; an older one counts as unknown, and the pool is tried."`
	GuardLeave    time.Duration `yaml:"guardLeave" doc:"How long after its claim a submission may leave. All executors of a group need the same value."`
	GuardSettle   time.Duration `yaml:"guardSettle" doc:"How long a submission that has left may take until a look-up sees it. All executors of a group need the same value."`
	LookUpTimeout time.Duration `yaml:"lookUpTimeout" doc:"How long an engine that does not answer is asked for a read of unknown fate before it is taken for gone; one that refuses connections is given a second. A write is asked for until its deadline."`
	StopTimeout   time.Duration `yaml:"stopTimeout" doc:"How long a stop waits until the engine says that a query is gone."`
	SeenAfter     time.Duration `yaml:"seenAfter" doc:"How long a submission goes unanswered until the engine is asked whether it runs."`
	Overrun       OverrunConfig `yaml:"overrun"`
	Grace         time.Duration `yaml:"grace" doc:"How long running attempts may finish when the process ends or a partition moves; after that they are left to the next owner: reads are stopped at the engine and run again, writes go on."`
}

// OverrunConfig is when a running attempt is stopped and its Task routed to another place. Only statements that may be run again
// are stopped, and only while another place is left for them.
type OverrunConfig struct {
	Every          time.Duration   `yaml:"every" doc:"How often the engine is asked for the progress of a running attempt, at first; of a long one it is asked less often, at most five times less. 0 watches nothing."`
	EstimateFactor float64         `yaml:"estimateFactor" doc:"How many times its estimated bytes an attempt may read; 0 sets no bound. Without an estimate there is no bound either."`
	EstimateFloor  config.ByteSize `yaml:"estimateFloor" doc:"Bytes that an attempt may read whatever was estimated."`
	SLAFactor      float64         `yaml:"slaFactor" doc:"How many times its SLA may have passed since a Task's submission while its attempt runs; the attempt itself must have run for as long as the SLA. 0 sets no bound."`
	Memory         bool            `yaml:"memory" doc:"Stop an attempt that takes more memory than maxMemory of its resource profile. It matters where the engine itself enforces no such limit."`
}

// Validate checks the section.
func (c OverrunConfig) Validate() error {
	switch {
	case c.Every < 0 || (c.Every > 0 && c.Every < 10*time.Millisecond):
		return config.Invalid("every", "must be 0, or at least 10ms, is %s", c.Every)
	case c.EstimateFactor != 0 && !(c.EstimateFactor >= 1):
		return config.Invalid("estimateFactor", "must be 0, or at least 1, is %v", c.EstimateFactor)
	case c.SLAFactor != 0 && !(c.SLAFactor >= 1):
		return config.Invalid("slaFactor", "must be 0, or at least 1, is %v", c.SLAFactor)
	case c.EstimateFloor < 0:
		return config.Invalid("estimateFloor", "must not be negative")
	}
	return nil
}

// ResultConfig is where results lie.
type ResultConfig struct {
	Folder string          `yaml:"folder" doc:"Folder for result files; intake serves them from there."`
	Inline config.ByteSize `yaml:"inline" doc:"Largest result that is carried in the outcome itself."`
	Max    config.ByteSize `yaml:"max" doc:"Size at which a result is cut short."`
	Keep   time.Duration   `yaml:"keep" doc:"How long a result file is kept."`
	Sweep  time.Duration   `yaml:"sweep" doc:"How often expired files are removed."`
}

// Default is the configuration of a process that says nothing but which engines there are.
func Default() Config {
	g := stream.DefaultConsumerConfig(group, "decisions")
	return Config{
		Telemetry: telemetry.Default("127.0.0.1:9403"),
		Kafka:     stream.DefaultConfig(),
		Group:     g,
		Attempts: AttemptConfig{
			MaxAttempts: 6, MaxRetries: 2, RetryShare: 0.2, RetryReserve: 20, BackoffFirst: 200 * time.Millisecond, BackoffMax: 10 * time.Second,
			CapacityWait: 2 * time.Minute, SignalAge: 30 * time.Second, GuardLeave: 5 * time.Second, GuardSettle: time.Second,
			LookUpTimeout: 10 * time.Second, StopTimeout: 10 * time.Second, SeenAfter: 150 * time.Millisecond, Grace: 5 * time.Second,
			Overrun: OverrunConfig{Every: time.Second, EstimateFactor: 5, EstimateFloor: 256 * config.MiB, SLAFactor: 2, Memory: true},
		},
		Caps:    CapConfig{Reload: 2 * time.Second},
		Results: ResultConfig{Folder: "results", Inline: config.MiB, Max: 1024 * config.MiB, Keep: 24 * time.Hour, Sweep: time.Minute},
	}
}

// SetDefaults fills in what an engine of the list leaves out.
func (c *EngineConfig) SetDefaults() {
	c.Kind, c.Slots = "clickhouse", 8
}

// Validate checks one engine.
func (c EngineConfig) Validate() error {
	switch {
	case c.Name == "":
		return config.Invalid("name", "is missing")
	case c.Slots < 1:
		return config.Invalid("slots", "must be at least 1, is %d", c.Slots)
	case c.SharedSlots < 0:
		return config.Invalid("sharedSlots", "must not be negative, is %d", c.SharedSlots)
	}
	for name, q := range c.Queues {
		if q.Cap < 0 {
			return config.Invalid("queues."+name+".cap", "must not be negative, is %d", q.Cap)
		}
	}
	if err := engines.Check(c.client()); err != nil {
		return config.Invalid(engines.Key(err), "%w", err)
	}
	for name := range c.Larger {
		next := name
		for range len(c.Larger) + 1 {
			if _, ok := c.Resources[next]; !ok && next != name {
				return config.Invalid("larger", "%q is no resource profile of this engine", next)
			}
			if next = c.Larger[next]; next == "" {
				break
			}
		}
		if next != "" {
			return config.Invalid("larger", "leads round in a circle from %q", name)
		}
	}
	return nil
}

// Validate checks what no section can see alone.
func (c Config) Validate() error {
	seen := map[string]bool{}
	for i, e := range c.Engines {
		if seen[e.Name] {
			return config.Invalid(fmt.Sprintf("engines[%d].name", i), "%q is the name of another engine too", e.Name)
		}
		seen[e.Name] = true
	}
	return nil
}

// Validate checks the section.
func (c AttemptConfig) Validate() error {
	switch {
	case c.MaxAttempts < 1:
		return config.Invalid("maxAttempts", "must be at least 1, is %d", c.MaxAttempts)
	case c.MaxRetries < 0:
		return config.Invalid("maxRetries", "must not be negative, is %d", c.MaxRetries)
	case !(c.RetryShare >= 0) || c.RetryReserve < 0:
		return config.Invalid("retryShare", "and retryReserve must not be negative")
	case c.BackoffFirst <= 0 || c.BackoffMax < c.BackoffFirst:
		return config.Invalid("backoffMax", "must be at least backoffFirst, and both above 0")
	case c.GuardLeave <= 0 || c.GuardSettle <= 0:
		return config.Invalid("guardLeave", "and guardSettle must be above 0")
	case c.CapacityWait <= 0 || c.LookUpTimeout <= 0 || c.StopTimeout <= 0 || c.SeenAfter <= 0 || c.Grace < 0:
		return config.Invalid("capacityWait", "and lookUpTimeout, stopTimeout and seenAfter must be above 0, grace not below")
	}
	return nil
}

// Validate checks the section.
func (c ResultConfig) Validate() error {
	switch {
	case c.Folder == "":
		return config.Invalid("folder", "is missing")
	case c.Inline < 0 || c.Max <= 0:
		return config.Invalid("max", "must be above 0, and inline not below")
	case c.Keep <= 0 || c.Sweep <= 0:
		return config.Invalid("keep", "and sweep must be above 0")
	}
	return nil
}
