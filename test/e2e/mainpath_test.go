package e2e_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/test/e2e/scenario"
	"github.com/pointsman/pointsman/test/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// TestMainPath plays a first day on the five services in one process, and judges it from outside.
func TestMainPath(t *testing.T) {
	w := testkit.New(t, testkit.Options{})
	st, spans, stop := w.InProcess()
	api := testkit.NewAPI(t, st.Intake.Addr().String())
	traces, ids := scenario.Trace(t, w, api)
	ids = append(ids, scenario.MainPath(t, w, api)...)
	if !t.Failed() {
		t.Log(w.Judge(ids, scenario.Patience))
	}
	stop()
	said := map[string]map[string]bool{}
	for _, span := range spans.Ended() {
		trace := span.SpanContext().TraceID().String()
		for _, attr := range span.Resource().Attributes() {
			if attr.Key == "service.name" {
				if said[trace] == nil {
					said[trace] = map[string]bool{}
				}
				said[trace][attr.Value.AsString()] = true
			}
		}
	}
	for i, services := range [][]string{{"intake", "router", "executor"}, {"router", "executor"}} {
		for _, service := range services {
			require.True(t, said[traces[i]][service], "%s has spans in the trace that the producer began: %v", service, said[traces[i]])
		}
	}
}

// TestMainPathInProcesses plays the same day on five processes whose clocks show Indian time, half an hour off every whole-hour zone:
// the instants and hours in ClickHouse are those of the topics all the same.
func TestMainPathInProcesses(t *testing.T) {
	w := testkit.New(t, testkit.Options{})
	f := w.Fleet(testkit.FleetOptions{Env: []string{"TZ=Asia/Kolkata"}, Traces: true})
	f.Start(testkit.Services...)
	api := testkit.NewAPI(t, f.Of("intake")[0].HTTP)
	traces, ids := scenario.Trace(t, w, api)
	ids = append(ids, scenario.MainPath(t, w, api)...)
	if !t.Failed() {
		t.Log(w.Judge(ids, scenario.Patience))
	}
	require.Eventually(t, func() bool { // spans are exported in batches
		return said(f, traces[0], "intake", "router", "executor") && said(f, traces[1], "router", "executor")
	}, time.Minute, 500*time.Millisecond, "each service has spans in the trace that the producer began")
	f.Stop()
}

func said(f *testkit.Fleet, trace string, services ...string) bool {
	for _, service := range services {
		if !strings.Contains(f.Of(service)[0].Tail(1_000_000), trace) {
			return false
		}
	}
	return true
}
