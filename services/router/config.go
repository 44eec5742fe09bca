package router

import (
	"errors"
	"time"

	"github.com/pointsman/pointsman/pkg/config"
	"github.com/pointsman/pointsman/pkg/history"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/telemetry"
)

// Config is the router's configuration.
type Config struct {
	Telemetry telemetry.Config `yaml:"telemetry"`
	Kafka     stream.Config    `yaml:"kafka"`
	HTTP      HTTPConfig       `yaml:"http"`
	Policy    PolicyConfig     `yaml:"policy"`
	Catalog   CatalogConfig    `yaml:"catalog"`
	History   history.Config   `yaml:"history"`
	Profiles  ProfilesConfig   `yaml:"profiles"`
	Budgets   BudgetsConfig    `yaml:"budgets"`
	Limits    LimitsConfig     `yaml:"limits"`
	Inputs    InputsConfig     `yaml:"inputs"`

	MaxAttempts int         `yaml:"maxAttempts" doc:"Most attempts of one task; after that it is rejected."`
	Group       GroupConfig `yaml:"group"`
}

// GroupConfig is how the router behaves in its consumer group.
type GroupConfig struct {
	OnLoss         stream.LossPolicy `yaml:"onLoss" doc:"What to do when records were deleted before they were read: stop or resume."`
	SessionTimeout time.Duration     `yaml:"sessionTimeout" doc:"Silence after which the group gives this router's partitions to another."`
}

// HTTPConfig is the listener of POST /v1/explain and GET /v1/budgets.
type HTTPConfig struct {
	Address string `yaml:"address" doc:"Address that serves POST /v1/explain and GET /v1/budgets to intake and operators; empty serves none."`
}

// PolicyConfig says where the policy is.
type PolicyConfig struct {
	File   string        `yaml:"file" doc:"Routing policy (YAML); empty takes the one that is built in."`
	Reload time.Duration `yaml:"reload" doc:"How often the file is looked at for a change; 0 never reloads it."`
}

// CatalogConfig says where the tables are, for scan estimates.
type CatalogConfig struct {
	Folder string        `yaml:"folder" doc:"Folder of Parquet tables, one sub-folder each; empty leaves scans unknown."`
	Schema string        `yaml:"schema" doc:"Schema under which queries name the folder's tables."`
	MaxAge time.Duration `yaml:"maxAge" doc:"How long sizes are used before the folder is read again."`
}

// ProfilesConfig says how the router asks history.
type ProfilesConfig struct {
	CacheSize      int           `yaml:"cacheSize" doc:"Most fingerprints whose profiles are kept in memory."`
	CacheTTL       time.Duration `yaml:"cacheTTL" doc:"How long a profile is used before history is asked again."`
	LookupDeadline time.Duration `yaml:"lookupDeadline" doc:"Longest that a batch waits for history; what is not there by then is unknown."`
}

// BudgetsConfig says how the accounts of sessions are kept. All routers have to agree on it.
type BudgetsConfig struct {
	Window      time.Duration `yaml:"window" doc:"How long a session's account is kept after it was last heard of; what the session asks later begins a new one. The same for all routers."`
	MaxSessions int           `yaml:"maxSessions" doc:"Most accounts of one partition; beyond that the sessions that have been silent longest lose theirs."`
}

// InputsConfig says what is kept for replay.
type InputsConfig struct {
	Enabled bool `yaml:"enabled" doc:"Keep what each decision depended on in the inputs topic, so that it can be replayed against another policy."`
}

// LimitsConfig bounds what a request may ask for.
type LimitsConfig struct {
	MaxSQL     config.ByteSize `yaml:"maxSQL" doc:"Largest SQL text."`
	MaxSLA     time.Duration   `yaml:"maxSLA" doc:"Longest SLA."`
	MaxTimeout time.Duration   `yaml:"maxTimeout" doc:"Longest timeout."`
}

func (c LimitsConfig) limits() query.Limits {
	return query.Limits{MaxSQLBytes: int(c.MaxSQL), MaxSLA: c.MaxSLA, MaxTimeout: c.MaxTimeout}
}

// Default is the configuration that works against the embedded parts on their usual ports.
func Default() Config {
	kafka := stream.DefaultConfig()
	kafka.ClientID = "pointsman-router"
	return Config{
		Telemetry: telemetry.Default("127.0.0.1:9402"), Kafka: kafka, HTTP: HTTPConfig{Address: "127.0.0.1:8402"},
		Policy: PolicyConfig{Reload: 2 * time.Second}, Catalog: CatalogConfig{Schema: "tpch", MaxAge: time.Minute},
		History:  history.DefaultConfig(),
		Profiles: ProfilesConfig{CacheSize: 10_000, CacheTTL: 2 * time.Second, LookupDeadline: 150 * time.Millisecond},
		Budgets:  BudgetsConfig{Window: time.Hour, MaxSessions: 10_000},
		Limits: LimitsConfig{
			MaxSQL: config.ByteSize(query.DefaultLimits.MaxSQLBytes), MaxSLA: query.DefaultLimits.MaxSLA, MaxTimeout: query.DefaultLimits.MaxTimeout,
		},
		Inputs: InputsConfig{Enabled: true}, MaxAttempts: 5, Group: GroupConfig{OnLoss: stream.LossResume, SessionTimeout: 45 * time.Second},
	}
}

// Validate checks the fields that stand alone.
func (c Config) Validate() error {
	if c.MaxAttempts < 1 {
		return config.Invalid("maxAttempts", "must be at least 1, is %d", c.MaxAttempts)
	}
	return nil
}

// Validate checks the section.
func (c GroupConfig) Validate() error {
	var errs []error
	if c.OnLoss != stream.LossStop && c.OnLoss != stream.LossResume {
		errs = append(errs, config.Invalid("onLoss", "%q is not stop or resume", c.OnLoss))
	}
	if c.SessionTimeout < time.Second {
		errs = append(errs, config.Invalid("sessionTimeout", "must be at least 1s, is %s", c.SessionTimeout))
	}
	return errors.Join(errs...)
}

// Validate checks the section.
func (c ProfilesConfig) Validate() error {
	switch {
	case c.CacheSize < 1:
		return config.Invalid("cacheSize", "must be at least 1, is %d", c.CacheSize)
	case c.CacheTTL <= 0:
		return config.Invalid("cacheTTL", "must be above 0, is %s", c.CacheTTL)
	case c.LookupDeadline <= 0:
		return config.Invalid("lookupDeadline", "must be above 0, is %s", c.LookupDeadline)
	}
	return nil
}

// Validate checks the section.
func (c BudgetsConfig) Validate() error {
	var errs []error
	if c.Window < time.Second {
		errs = append(errs, config.Invalid("window", "must be at least 1s, is %s", c.Window))
	}
	if c.MaxSessions < 1 {
		errs = append(errs, config.Invalid("maxSessions", "must be at least 1, is %d", c.MaxSessions))
	}
	return errors.Join(errs...)
}

// Validate checks the section.
func (c LimitsConfig) Validate() error {
	if c.MaxSQL <= 0 || c.MaxSLA <= 0 || c.MaxTimeout <= 0 {
		return config.Invalid("", "maxSQL, maxSLA and maxTimeout must be above 0")
	}
	return nil
}
