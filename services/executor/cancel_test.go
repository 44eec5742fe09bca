package executor_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/services/executor"
)

func cancelOf(id string) event.RouteDecision {
	now := time.Now().UTC()
	return event.RouteDecision{
		DecisionID: id + "/cancel", TaskID: id, Kind: event.PassCancel, DecidedAt: now, Deadline: now.Add(time.Hour),
		Cancel: &event.Cancel{TaskID: id, Tenant: "tenant_a", User: "u", Reason: "changed my mind"},
	}
}

func TestCancelWhileRunning(t *testing.T) {
	b := newBench(t, 1)
	b.servers[interactive].on("LONG", behaviour{hold: make(chan struct{})})
	b.start()
	b.decide(b.route("t1", "LONG"))
	b.change("t1/1", "running")
	b.decide(cancelOf("t1"))
	o := b.outcome("t1")
	require.Equal(t, event.Cancelled, o.Status)
	require.Contains(t, o.Failure.Message, "changed my mind")
	require.True(t, b.servers[interactive].wasKilled("t1/1"))
	require.Equal(t, "cancelled", b.change("t1/1", "cancelled").State)
	b.committed()
	b.once()
}

func TestCancelOfAnotherTenantIsIgnored(t *testing.T) {
	b := newBench(t, 1)
	hold := make(chan struct{})
	b.servers[interactive].on("LONG", behaviour{hold: hold, rows: 1})
	b.start()
	b.decide(b.route("t1", "LONG"))
	b.change("t1/1", "running")
	c := cancelOf("t1")
	c.Cancel.Tenant = "tenant_b"
	b.decide(c)
	time.Sleep(100 * time.Millisecond)
	close(hold)
	require.Equal(t, event.Succeeded, b.outcome("t1").Status)
	b.committed()
}

func TestCancelBeforeTheTask(t *testing.T) {
	b := newBench(t, 1)
	b.start()
	b.decide(cancelOf("t1"))
	require.Equal(t, event.Cancelled, b.outcome("t1").Status)
	b.decide(b.route("t1", "SELECT"))
	b.committed()
	require.Empty(t, b.servers[interactive].counts(), "the Task has ended before it came")
	b.once()
}

func TestCancelInTheLineKeepsNoSlot(t *testing.T) {
	b := newBench(t, 1)
	b.config = func(c *executor.Config) { c.Engines[0].Slots = 1 }
	hold := make(chan struct{})
	b.servers[interactive].on("LONG", behaviour{hold: hold})
	b.servers[interactive].on("SELECT", behaviour{rows: 1})
	b.start()
	b.decide(b.route("first", "LONG"))
	b.change("first/1", "running")
	b.decide(b.route("gone", "SELECT"))
	require.Eventually(t, func() bool {
		c := b.changes("gone/1")
		return len(c) == 2 && c[1].QueuePosition == 1
	}, patience, 10*time.Millisecond, "its place is told")
	b.decide(b.route("next", "SELECT"))
	b.decide(cancelOf("gone"))
	require.Equal(t, event.Cancelled, b.outcome("gone").Status)
	close(hold)
	require.Equal(t, event.Succeeded, b.outcome("next").Status)
	require.Zero(t, b.servers[interactive].count("gone/1"))
	b.committed()
}
