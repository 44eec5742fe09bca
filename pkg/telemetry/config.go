package telemetry

import (
	"errors"
	"log/slog"
	"net"
	"net/url"
	"time"

	"github.com/pointsman/pointsman/pkg/config"
)

// LogFormat is how log lines are written.
type LogFormat string

// The log formats.
const (
	LogText LogFormat = "text"
	LogJSON LogFormat = "json"
)

// TraceExporter is where spans go.
type TraceExporter string

// The trace exporters.
const (
	TraceNone   TraceExporter = "none"
	TraceStdout TraceExporter = "stdout"
	TraceOTLP   TraceExporter = "otlp"
)

// Config is the telemetry section of every service.
type Config struct {
	Log   LogConfig   `yaml:"log"`
	Admin AdminConfig `yaml:"admin"`
	Trace TraceConfig `yaml:"trace"`
}

// LogConfig says how a service logs.
type LogConfig struct {
	Level  slog.Level `yaml:"level" doc:"Lowest level that is written: DEBUG, INFO, WARN or ERROR. SQL text appears at DEBUG only."`
	Format LogFormat  `yaml:"format" doc:"text or json."`
}

// AdminConfig is the HTTP server for operators.
type AdminConfig struct {
	Address   string `yaml:"address" doc:"Address of /healthz, /readyz, /metrics and /version; empty for none."`
	Profiling bool   `yaml:"profiling" doc:"Serve /debug/pprof there too. It shows memory: keep the address private."`
}

// TraceConfig says where spans go.
type TraceConfig struct {
	Exporter    TraceExporter            `yaml:"exporter" doc:"none, stdout or otlp (OTLP over HTTP)."`
	Endpoint    string                   `yaml:"endpoint" doc:"URL of the OTLP collector, for example http://localhost:4318/v1/traces."`
	Headers     map[string]config.Secret `yaml:"headers" doc:"Headers sent to the collector."`
	SampleRatio float64                  `yaml:"sampleRatio" doc:"Share of the traces begun here that is kept, 0 to 1. A trace begun elsewhere follows its own flag."`
	Timeout     time.Duration            `yaml:"timeout" doc:"Longest one export may take."`
}

// Default is the telemetry of a service whose admin server listens on the address.
func Default(adminAddress string) Config {
	return Config{
		Log:   LogConfig{Level: slog.LevelInfo, Format: LogText},
		Admin: AdminConfig{Address: adminAddress},
		Trace: TraceConfig{Exporter: TraceNone, SampleRatio: 1, Timeout: 10 * time.Second},
	}
}

// Validate refuses unknown formats.
func (c LogConfig) Validate() error {
	if c.Format != LogText && c.Format != LogJSON {
		return config.Invalid("format", "must be %s or %s, is %q", LogText, LogJSON, c.Format)
	}
	return nil
}

// Validate refuses an address without a port.
func (c AdminConfig) Validate() error {
	if c.Address == "" {
		return nil
	}
	if _, _, err := net.SplitHostPort(c.Address); err != nil {
		return config.Invalid("address", "must be host:port: %w", err)
	}
	return nil
}

// Validate refuses an exporter that cannot work.
func (c TraceConfig) Validate() error {
	var errs []error
	switch c.Exporter {
	case TraceNone, TraceStdout:
	case TraceOTLP:
		if u, err := url.Parse(c.Endpoint); err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
			errs = append(errs, config.Invalid("endpoint", "must be an http or https URL when the exporter is %s", TraceOTLP))
		}
		if c.Timeout <= 0 {
			errs = append(errs, config.Invalid("timeout", "must be positive, is %s", c.Timeout))
		}
	default:
		errs = append(errs, config.Invalid("exporter", "must be %s, %s or %s, is %q", TraceNone, TraceStdout, TraceOTLP, c.Exporter))
	}
	if !(c.SampleRatio >= 0 && c.SampleRatio <= 1) { // NaN is neither
		errs = append(errs, config.Invalid("sampleRatio", "must be between 0 and 1, is %v", c.SampleRatio))
	}
	return errors.Join(errs...)
}
