package faults_test

import (
	"slices"
	"testing"

	"github.com/pointsman/pointsman/pkg/engine/flightsql/flightsqltest"
	"github.com/pointsman/pointsman/services/executor"
)

// TestFaultMatrixFlightSQL is the matrix on a server of Flight SQL over the embedded engine that can be asked for an attempt.
func TestFaultMatrixFlightSQL(t *testing.T) {
	n, lanes := plannedFlights(t, 30)
	matrix(t, flights(t, "Flight SQL with pointsman's actions", false), n, lanes, *count > 0)
}

// TestFaultMatrixPlainFlightSQL is the matrix on one that knows the protocol and nothing else.
func TestFaultMatrixPlainFlightSQL(t *testing.T) {
	n, lanes := plannedFlights(t, 20)
	e := flights(t, "Flight SQL", true)
	e.blind = true
	e.broken = slices.DeleteFunc(e.broken, func(b broken) bool { // it has no limit of memory, and nobody else can kill there
		return b.class == "memory_limit" || b.class == operatorKill
	})
	matrix(t, e, n, lanes, *count > 0)
}

func plannedFlights(t *testing.T, few int) (n, lanes int) {
	t.Helper()
	if testing.Short() {
		t.Skip("ten seconds")
	}
	if *count > 0 {
		return *count, *lanesOf
	}
	return few, 10
}

func flights(t *testing.T, name string, plain bool) *target {
	t.Helper()
	e, behind := embedded(t)
	server := flightsqltest.Start(t, flightsqltest.Config{Engine: behind.URL(), Plain: plain})
	killEngine := e.kill
	e.name, e.kind, e.addr, e.requests = name, "flightsql", server.Addr(), newCalls
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
	e.broken = slices.DeleteFunc(e.broken, func(b broken) bool { return b.resource == "narrow" }) // its code is the one for other limits, too
	e.kill = func() { server.Restart(t, killEngine) }
	return e
}
