package intake

import (
	"net"
	"net/url"
	"time"

	"github.com/pointsman/pointsman/pkg/config"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/telemetry"
	"github.com/pointsman/pointsman/services/intake/access"
	"github.com/pointsman/pointsman/services/intake/board"
)

// Config is the configuration of the intake.
type Config struct {
	Telemetry telemetry.Config   `yaml:"telemetry"`
	Kafka     stream.Config      `yaml:"kafka"`
	HTTP      HTTPConfig         `yaml:"http"`
	Auth      access.Config      `yaml:"auth"`
	RateLimit access.LimitConfig `yaml:"rateLimit"`
	Requests  RequestConfig      `yaml:"requests"`
	Tasks     TaskConfig         `yaml:"tasks"`
	Results   ResultConfig       `yaml:"results"`
	Explain   ExplainConfig      `yaml:"explain"`
}

// HTTPConfig is the server.
type HTTPConfig struct {
	Address    string          `yaml:"address" doc:"Address to listen on."`
	CertFile   string          `yaml:"certFile" doc:"Certificate; with keyFile it makes the server speak HTTPS."`
	KeyFile    string          `yaml:"keyFile" doc:"Key of the certificate."`
	MaxBody    config.ByteSize `yaml:"maxBody" doc:"Largest body that is read; more is answered with 413."`
	MaxWait    time.Duration   `yaml:"maxWait" doc:"Longest that ?wait= holds a request; more is cut to this."`
	MaxWaiting int             `yaml:"maxWaiting" doc:"Most requests that wait for an outcome or follow events at once."`
	Heartbeat  time.Duration   `yaml:"heartbeat" doc:"How often an event stream without events says that it lives."`
}

// RequestConfig is what a request may ask for, and how it is written.
type RequestConfig struct {
	MaxSQL         config.ByteSize `yaml:"maxSQL" doc:"Longest SQL text; more is answered with 413."`
	MaxSLA         time.Duration   `yaml:"maxSLA" doc:"Largest SLA that may be asked for."`
	MaxTimeout     time.Duration   `yaml:"maxTimeout" doc:"Largest timeout that may be asked for."`
	MaxClockSkew   time.Duration   `yaml:"maxClockSkew" doc:"How far a submission time in a request may be off this machine's clock; within it ours counts."`
	ProduceTimeout time.Duration   `yaml:"produceTimeout" doc:"How long the broker may take to acknowledge a request."`
	ConfirmTimeout time.Duration   `yaml:"confirmTimeout" doc:"How long it may take to read a request with an id or key of its own back, to see that it was the first."`
}

// TaskConfig is what is kept of Tasks.
type TaskConfig struct {
	LookBack time.Duration   `yaml:"lookBack" doc:"How far back the topics are read at the start."`
	KeepFor  time.Duration   `yaml:"keepFor" doc:"How long a task is kept after its last event."`
	MaxBytes config.ByteSize `yaml:"maxBytes" doc:"Memory for tasks, counted as the JSON of their events; the ones that changed longest ago go first."`
}

// ResultConfig is where results lie.
type ResultConfig struct {
	Folder string        `yaml:"folder" doc:"Folder that the executor writes result files to; empty serves inline results only."`
	Stall  time.Duration `yaml:"stall" doc:"How long a reader of a result file may take nothing before its connection is closed."`
}

// Validate reports the faults of the results section.
func (c ResultConfig) Validate() error {
	if c.Stall <= 0 {
		return config.Invalid("stall", "must be above 0, is %s", c.Stall)
	}
	return nil
}

// ExplainConfig is the router that explains.
type ExplainConfig struct {
	URL     string        `yaml:"url" doc:"The router's explain endpoint, e.g. http://127.0.0.1:8402/v1/explain; empty switches explain off."`
	Timeout time.Duration `yaml:"timeout" doc:"How long the router may take."`
}

// Default is the configuration of a machine that says nothing but how callers are known.
func Default() Config {
	kafka := stream.DefaultConfig()
	kafka.ClientID = "pointsman-intake"
	return Config{
		Telemetry: telemetry.Default("127.0.0.1:9401"),
		Kafka:     kafka,
		HTTP: HTTPConfig{
			Address: "127.0.0.1:8080", MaxBody: 4 * config.MiB, MaxWait: time.Minute, MaxWaiting: 2000, Heartbeat: 15 * time.Second,
		},
		RateLimit: access.LimitConfig{PerSecond: 200, Burst: 400},
		Requests: RequestConfig{
			MaxSQL: config.ByteSize(query.DefaultLimits.MaxSQLBytes), MaxSLA: query.DefaultLimits.MaxSLA,
			MaxTimeout: query.DefaultLimits.MaxTimeout, MaxClockSkew: 5 * time.Minute,
			ProduceTimeout: 5 * time.Second, ConfirmTimeout: 5 * time.Second,
		},
		Tasks:   TaskConfig{LookBack: time.Hour, KeepFor: board.DefaultKeepFor, MaxBytes: board.DefaultMaxBytes},
		Results: ResultConfig{Stall: time.Minute},
		Explain: ExplainConfig{URL: "http://127.0.0.1:8402/v1/explain", Timeout: 10 * time.Second},
	}
}

// Validate reports the faults of the server's section.
func (c HTTPConfig) Validate() error {
	switch {
	case (c.CertFile == "") != (c.KeyFile == ""):
		return config.Invalid("certFile", "goes together with keyFile")
	case c.MaxBody < config.KiB:
		return config.Invalid("maxBody", "must be at least 1 KiB, is %s", c.MaxBody)
	case c.MaxWait <= 0 || c.MaxWaiting < 1 || c.Heartbeat <= 0:
		return config.Invalid("maxWait", "maxWait, maxWaiting and heartbeat must be above 0")
	}
	if _, _, err := net.SplitHostPort(c.Address); err != nil {
		return config.Invalid("address", "must be host:port, is %q", c.Address)
	}
	return nil
}

// Validate reports the faults of the requests section.
func (c RequestConfig) Validate() error {
	if c.MaxSQL < 1 || c.MaxSLA <= 0 || c.MaxTimeout <= 0 || c.MaxClockSkew <= 0 || c.ProduceTimeout <= 0 || c.ConfirmTimeout <= 0 {
		return config.Invalid("maxSQL", "all bounds of requests must be above 0")
	}
	return nil
}

// Validate reports the faults of the tasks section.
func (c TaskConfig) Validate() error {
	if c.LookBack <= 0 || c.KeepFor <= 0 || c.MaxBytes < config.MiB {
		return config.Invalid("lookBack", "lookBack and keepFor must be above 0, maxBytes at least 1 MiB")
	}
	return nil
}

// Validate reports the faults of the explain section.
func (c ExplainConfig) Validate() error {
	if c.URL == "" {
		return nil
	}
	u, err := url.Parse(c.URL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return config.Invalid("url", "%q is no http or https address", c.URL)
	}
	if c.Timeout <= 0 {
		return config.Invalid("timeout", "must be above 0")
	}
	return nil
}

// limits are those of a Task.
func (c RequestConfig) limits() query.Limits {
	return query.Limits{MaxSQLBytes: int(c.MaxSQL), MaxSLA: c.MaxSLA, MaxTimeout: c.MaxTimeout}
}
