package telemetry_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/propagation"
	"go.uber.org/goleak"

	"github.com/pointsman/pointsman/pkg/config"
	"github.com/pointsman/pointsman/pkg/telemetry"
	"github.com/pointsman/pointsman/pkg/telemetry/telemetrytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConfigLoads(t *testing.T) {
	type service struct {
		Telemetry telemetry.Config `yaml:"telemetry"`
	}
	def := service{telemetry.Default("127.0.0.1:0")}
	got, err := config.Load(def, config.Options{Set: []string{
		"telemetry.log.level=DEBUG", "telemetry.log.format=json", "telemetry.trace.exporter=otlp",
		"telemetry.trace.endpoint=http://collector:4318/v1/traces", "telemetry.trace.headers.authorization=x",
	}})
	require.NoError(t, err)
	require.Equal(t, telemetry.LogJSON, got.Config.Telemetry.Log.Format)
	for set, want := range map[string]string{
		"telemetry.log.level=LOUD":          `telemetry.log.level: slog: level string "LOUD"`,
		"telemetry.log.format=xml":          `telemetry.log.format: must be text or json, is "xml"`,
		"telemetry.admin.address=9090":      "telemetry.admin.address: must be host:port",
		"telemetry.trace.exporter=zipkin":   "telemetry.trace.exporter: must be none, stdout or otlp",
		"telemetry.trace.exporter=otlp":     "telemetry.trace.endpoint: must be an http or https URL",
		"telemetry.trace.sampleRatio=1.5":   "telemetry.trace.sampleRatio: must be between 0 and 1",
		"telemetry.trace.sampleRatio=NaN":   "telemetry.trace.sampleRatio: must be between 0 and 1",
		"telemetry.trace.sampleRatio=-0.01": "telemetry.trace.sampleRatio: must be between 0 and 1",
	} {
		_, err := config.Load(def, config.Options{Set: []string{set}})
		require.ErrorContains(t, err, want)
	}
}

func TestServicesOfOneProcessShareOutputsNotNames(t *testing.T) {
	tel, spans := telemetrytest.New(t, "pointsman")
	router := tel.For("router")
	require.Same(t, tel.Registry, router.Registry)
	require.NotSame(t, tel.Health, router.Health)
	_, span := router.Tracer("route").Start(t.Context(), "decide")
	span.End()
	_, span = tel.Tracer("up").Start(t.Context(), "start")
	span.End()
	require.NoError(t, router.Stop(t.Context()), "the outputs belong to the process")
	var names []string
	for _, s := range spans.Ended() {
		for _, a := range s.Resource().Attributes() {
			if a.Key == "service.name" {
				names = append(names, a.Value.AsString()+" "+s.Name())
			}
		}
	}
	require.Equal(t, []string{"router decide", "pointsman start"}, names)
}

func TestLogLinesCarryTheTrace(t *testing.T) {
	var out telemetrytest.Buffer
	cfg := telemetry.Default("")
	cfg.Trace.Exporter = telemetry.TraceStdout
	cfg.Log.Format = telemetry.LogJSON
	tel, err := telemetry.New(t.Context(), cfg, telemetry.Options{Service: "router", Output: &out})
	require.NoError(t, err)
	ctx, span := tel.Tracer("route").Start(t.Context(), "decide")
	tel.Log.InfoContext(ctx, "routed")
	span.End()
	require.NoError(t, tel.Stop(t.Context()))
	id := span.SpanContext().TraceID().String()
	require.Contains(t, out.String(), `"service":"router","trace_id":"`+id+`"`)
	require.Contains(t, out.String(), `"Name":"decide"`, "stop flushes spans")
}

func TestTraceContextPassesThroughWithoutExporter(t *testing.T) {
	tel, err := telemetry.New(t.Context(), telemetry.Default(""), telemetry.Options{Service: "router", Output: new(telemetrytest.Buffer)})
	require.NoError(t, err)
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	ctx := tel.Propagator().Extract(t.Context(), propagation.MapCarrier{"traceparent": parent})
	ctx, span := tel.Tracer("route").Start(ctx, "decide")
	defer span.End()
	out := propagation.MapCarrier{}
	tel.Propagator().Inject(ctx, out)
	require.Equal(t, parent, out["traceparent"])
}

func TestMalformedTraceContextIsIgnored(t *testing.T) {
	tel, _ := telemetrytest.New(t, "router")
	ctx := tel.Propagator().Extract(t.Context(), propagation.MapCarrier{"traceparent": "not one"})
	_, span := tel.Tracer("route").Start(ctx, "decide")
	defer span.End()
	require.True(t, span.SpanContext().IsValid())
}

func TestOTLPExportAndItsFailure(t *testing.T) {
	var posts atomic.Int64
	var header atomic.Value
	broken := atomic.Bool{}
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header.Store(r.Header.Get("X-Key"))
		if broken.Load() {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		posts.Add(1)
	}))
	defer collector.Close()
	cfg := telemetry.Default("")
	cfg.Trace.Exporter, cfg.Trace.Endpoint = telemetry.TraceOTLP, collector.URL+"/v1/traces"
	cfg.Trace.Headers = map[string]config.Secret{"X-Key": "k"}

	for _, fails := range []bool{false, true} {
		broken.Store(fails)
		var out telemetrytest.Buffer
		tel, err := telemetry.New(t.Context(), cfg, telemetry.Options{Service: "router", Output: &out})
		require.NoError(t, err)
		_, span := tel.Tracer("route").Start(t.Context(), "decide")
		span.End()
		require.NoError(t, tel.Stop(context.Background()), "a collector that is away is no fault of the service")
		require.Equal(t, fails, strings.Contains(out.String(), "traces cannot be exported"), out.String())
	}
	require.Equal(t, int64(1), posts.Load())
	require.Equal(t, "k", header.Load())
}

func TestStopDoesNotWaitForACollectorThatHangs(t *testing.T) {
	release := make(chan struct{})
	collector := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer collector.Close()
	defer close(release)
	cfg := telemetry.Default("")
	cfg.Trace.Exporter, cfg.Trace.Endpoint = telemetry.TraceOTLP, collector.URL
	var out telemetrytest.Buffer
	tel, err := telemetry.New(t.Context(), cfg, telemetry.Options{Service: "router", Output: &out})
	require.NoError(t, err)
	_, span := tel.Tracer("route").Start(t.Context(), "decide")
	span.End()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	require.NoError(t, tel.Stop(ctx))
	require.Contains(t, out.String(), "the last traces were not sent")
}

func TestMetricsShowTheBuild(t *testing.T) {
	tel := telemetry.Discard()
	families, err := tel.Registry.Gather()
	require.NoError(t, err)
	names := map[string]bool{}
	for _, f := range families {
		names[f.GetName()] = true
	}
	require.True(t, names["pointsman_build_info"])
	require.True(t, names["go_goroutines"])
}

func TestLoggerOutlivesItsTest(t *testing.T) {
	var leaked func()
	t.Run("inner", func(t *testing.T) {
		log := telemetrytest.Logger(t)
		leaked = func() { log.Info("too late") }
	})
	require.NotPanics(t, leaked)
}

func decode(t *testing.T, body string) telemetry.Report {
	t.Helper()
	var r telemetry.Report
	require.NoError(t, json.Unmarshal([]byte(body), &r), body)
	return r
}
