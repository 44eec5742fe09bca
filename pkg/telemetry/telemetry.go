package telemetry

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Options are what the configuration does not say.
type Options struct {
	Service string    // name in logs, traces and health
	Output  io.Writer // of logs and spans; nil for standard error and standard output

	// For tests, in place of what the configuration says.
	Logger    *slog.Logger
	Processor sdktrace.SpanProcessor
}

// Telemetry is passed down to whatever logs, measures or traces.
type Telemetry struct {
	Log      *slog.Logger         // with the service's name on every line
	Registry *prometheus.Registry // shared by all services of the process
	Health   *Health              // of this service

	service   string
	base      *slog.Logger
	processor sdktrace.SpanProcessor
	ratio     float64
	provider  trace.TracerProvider
	owner     bool
}

// New builds the telemetry of a process. It opens no port: see ServeAdmin.
func New(ctx context.Context, cfg Config, opts Options) (*Telemetry, error) {
	logs, spans := opts.Output, opts.Output
	if opts.Output == nil {
		logs, spans = os.Stderr, os.Stdout
	}
	base := opts.Logger
	if base == nil {
		base = NewLogger(logs, cfg.Log)
	}
	processor := opts.Processor
	if processor == nil {
		var err error
		if processor, err = newProcessor(ctx, cfg.Trace, spans, base); err != nil {
			return nil, fmt.Errorf("starting telemetry: %w", err)
		}
	}
	root := &Telemetry{Registry: newRegistry(), base: base, processor: processor, ratio: cfg.Trace.SampleRatio}
	t := root.For(opts.Service)
	t.owner = true
	return t, nil
}

// Discard is a telemetry that nobody sees.
func Discard() *Telemetry {
	root := &Telemetry{Registry: newRegistry(), base: slog.New(slog.DiscardHandler)}
	return root.For("")
}

// For is the telemetry of one of several services in a process: outputs and registry are shared, the name, the health
// and the resource of its spans are its own.
func (t *Telemetry) For(service string) *Telemetry {
	log := t.base
	if service != "" {
		log = log.With(KeyService, service)
	}
	return &Telemetry{
		Log:       log,
		Registry:  t.Registry,
		Health:    NewHealth(service),
		service:   service,
		base:      t.base,
		processor: t.processor,
		ratio:     t.ratio,
		provider:  newProvider(service, t.processor, t.ratio),
	}
}

// Tracer makes spans; the name is the package that makes them.
func (t *Telemetry) Tracer(name string) trace.Tracer { return t.provider.Tracer(name) }

// TracerProvider is for libraries that make their own spans.
func (t *Telemetry) TracerProvider() trace.TracerProvider { return t.provider }

// Propagator carries trace context in headers of records and requests.
func (t *Telemetry) Propagator() propagation.TextMapPropagator { return propagator }

// flushTimeout bounds Stop: the last spans are not worth a slow exit.
const flushTimeout = 5 * time.Second

// Stop sends what spans are left, and logs if that fails: a collector that is away is no failure of the service.
// Only the Telemetry that New has returned does something, since the others share its outputs.
func (t *Telemetry) Stop(ctx context.Context) error {
	if !t.owner || t.processor == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	err := t.processor.Shutdown(ctx)
	if ctx.Err() != nil {
		t.Log.WarnContext(ctx, "the last traces were not sent", Err(err))
		return nil
	}
	if err != nil {
		return fmt.Errorf("flushing traces: %w", err)
	}
	return nil
}
