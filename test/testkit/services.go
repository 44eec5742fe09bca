package testkit

import (
	"context"
	"log/slog"
	"sync"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/pointsman/pointsman/pkg/telemetry"
	"github.com/pointsman/pointsman/pkg/telemetry/telemetrytest"
	"github.com/pointsman/pointsman/services/pointsman/stack"
)

// InProcess runs the five services in this process until the test ends. Spans are recorded; stop ends the services early.
func (w *World) InProcess() (st *stack.Stack, spans *tracetest.SpanRecorder, stop func()) {
	w.T.Helper()
	spans = tracetest.NewSpanRecorder()
	said := &telemetrytest.Buffer{}
	cfg := telemetry.Default("")
	cfg.Log.Level = slog.LevelWarn
	tel, err := telemetry.New(context.Background(), cfg, telemetry.Options{Service: "pointsman", Output: said, Processor: spans})
	require.NoError(w.T, err)
	st, err = stack.Start(context.Background(), w.Stack, tel)
	require.NoError(w.T, err)
	stop = sync.OnceFunc(func() {
		failed := st.Err()
		stopped := st.Stop(context.Background())
		if w.T.Failed() || failed != nil || stopped != nil {
			w.T.Logf("what the services logged:\n%s", tail(said.String(), 200))
		}
		require.NoError(w.T, failed, "no service may have failed")
		require.NoError(w.T, stopped)
		require.NoError(w.T, tel.Stop(context.Background()))
	})
	w.T.Cleanup(stop)
	return st, spans, stop
}
