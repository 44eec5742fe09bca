package telemetry

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/pointsman/pointsman/pkg/telemetry/buildinfo"
)

// newProcessor builds the way that spans leave the process, nil when they don't.
func newProcessor(ctx context.Context, cfg TraceConfig, out io.Writer, log *slog.Logger) (sdktrace.SpanProcessor, error) {
	var exporter sdktrace.SpanExporter
	var err error
	switch cfg.Exporter {
	case TraceStdout:
		exporter, err = stdouttrace.New(stdouttrace.WithWriter(out))
	case TraceOTLP:
		headers := map[string]string{}
		for name, value := range cfg.Headers {
			headers[name] = value.Reveal()
		}
		exporter, err = otlptracehttp.New(ctx,
			otlptracehttp.WithEndpointURL(cfg.Endpoint), otlptracehttp.WithHeaders(headers), otlptracehttp.WithTimeout(cfg.Timeout))
	default:
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("building the %s trace exporter: %w", cfg.Exporter, err)
	}
	return sdktrace.NewBatchSpanProcessor(&saidExporter{SpanExporter: exporter, log: log}), nil
}

// saidExporter logs when exporting begins to fail and when it works again. OpenTelemetry itself would send every
// error to a handler that is global.
type saidExporter struct {
	sdktrace.SpanExporter
	log *slog.Logger

	mu     sync.Mutex
	failed bool
}

func (e *saidExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case err != nil && !e.failed:
		e.log.WarnContext(ctx, "traces cannot be exported; they are dropped until it works again", Err(err))
	case err == nil && e.failed:
		e.log.InfoContext(ctx, "traces are exported again")
	}
	e.failed = err != nil
	return nil
}

func newProvider(service string, processor sdktrace.SpanProcessor, ratio float64) trace.TracerProvider {
	if processor == nil {
		return noop.NewTracerProvider() // passes on the trace that a caller began
	}
	return sdktrace.NewTracerProvider(
		sdktrace.WithSpanProcessor(processor),
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(ratio))),
		sdktrace.WithResource(resource.NewSchemaless(
			attribute.String("service.namespace", "pointsman"),
			attribute.String("service.name", service),
			attribute.String("service.version", buildinfo.Read().Version),
		)),
	)
}

// propagator is W3C trace context and baggage, the one that producers outside can be expected to speak.
var propagator = propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
