// Package telemetrytest gives tests a telemetry: logs go to t.Log, spans are kept for the test to look at.
package telemetrytest

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/pointsman/pointsman/pkg/telemetry"
)

// Logger writes every level to t.Log. What is logged after the test has ended is dropped, because t.Log would panic.
func Logger(t testing.TB) *slog.Logger {
	t.Helper()
	return telemetry.NewLogger(writer(t), telemetry.LogConfig{Level: slog.LevelDebug, Format: telemetry.LogText})
}

// New is a telemetry that logs to t.Log and keeps spans in the recorder.
func New(t testing.TB, service string) (*telemetry.Telemetry, *tracetest.SpanRecorder) {
	t.Helper()
	spans := tracetest.NewSpanRecorder()
	cfg := telemetry.Default("")
	tel, err := telemetry.New(context.Background(), cfg, telemetry.Options{Service: service, Logger: Logger(t), Processor: spans})
	if err != nil {
		t.Fatalf("building a telemetry for the test: %v", err)
	}
	t.Cleanup(func() {
		if err := tel.Stop(context.Background()); err != nil {
			t.Errorf("stopping telemetry: %v", err)
		}
	})
	return tel, spans
}

// Buffer is a writer that can be read while others write to it.
type Buffer struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write appends.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// String is all that was written.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

type testWriter struct {
	t     testing.TB
	mu    sync.Mutex
	ended bool
}

func writer(t testing.TB) io.Writer {
	w := &testWriter{t: t}
	t.Cleanup(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.ended = true
	})
	return w
}

func (w *testWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended {
		w.t.Log(strings.TrimSuffix(string(p), "\n"))
	}
	return len(p), nil
}
