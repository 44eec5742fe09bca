package faults_test

import (
	"testing"

	"github.com/pointsman/pointsman/pkg/engine/flightsql/flightsqltest"
	"github.com/pointsman/pointsman/services/executor"
)

// TestFaultMatrixFlightSQL is the matrix on a server of Flight SQL over the embedded engine that can be asked for an attempt.
func TestFaultMatrixFlightSQL(t *testing.T) {
	if testing.Short() {
		t.Skip("half a minute")
	}
	n, lanes := 40, 10
	if *count > 0 {
		n, lanes = *count, *lanesOf
	}
	e, behind := embedded(t)
	server := flightsqltest.Start(t, flightsqltest.Config{Engine: behind.URL()})
	killEngine := e.kill
	e.name, e.kind, e.addr, e.requests = "Flight SQL", "flightsql", server.Addr(), newCalls
	e.sessions, e.tickets = true, true // the connection is there before its statement leaves
	e.url = func(addr string) string { return "grpc://" + addr }
	e.config = executor.EngineConfig{Kind: "flightsql"}
	e.resources["few"] = executor.Limits{Settings: map[string]string{"max_rows_to_group_by": "1000"}}
	e.first, e.more = 1<<18, 1<<19
	for i := range e.broken {
		if e.broken[i].resource == "few" {
			e.broken[i].sql = "SELECT count() FROM (SELECT number FROM numbers(100000) GROUP BY number)"
		}
	}
	e.kill = func() { server.Restart(t, killEngine) }
	matrix(t, e, n, lanes, *count > 0)
}
