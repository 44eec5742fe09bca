package executor_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/services/executor"
)

// A decision for a queue is run with that queue's settings, also where they say otherwise than the resource profile; those of the place that
// it fails over to are that place's own.
func TestAQueueIsSettings(t *testing.T) {
	b := newBench(t, 1)
	b.config = func(c *executor.Config) {
		c.Engines[0].Limits.Settings = map[string]string{"threads": "2", "workload": "none"}
		c.Engines[0].Resources = map[string]executor.Limits{"large": {Settings: map[string]string{"workload": "anything", "spill": "1"}}}
		c.Engines[0].Queues = map[string]executor.QueueConfig{"etl": {Settings: map[string]string{"workload": "etl"}}}
		c.Engines[1].Queues = map[string]executor.QueueConfig{"etl": {Cap: 5, Settings: map[string]string{"workload": "night"}}}
	}
	b.servers[interactive].on("Q", behaviour{rows: 1})
	b.servers[batch].on("Q", behaviour{rows: 1})
	b.start()
	b.decide(b.route("etl", "Q", func(d *event.RouteDecision) { d.Queue, d.Resource = "etl", "large" }))
	require.Equal(t, event.Succeeded, b.outcome("etl").Status)
	require.Equal(t, map[string]string{"threads": "2", "spill": "1", "workload": "etl"}, b.servers[interactive].settingsOf("etl/1"))

	b.decide(b.route("unheard", "Q", func(d *event.RouteDecision) { d.Queue = "unheard of" }))
	require.Equal(t, event.Succeeded, b.outcome("unheard").Status)
	require.Equal(t, map[string]string{"threads": "2", "workload": "none"}, b.servers[interactive].settingsOf("unheard/1"))

	b.servers[interactive].on("GREEDY", behaviour{code: "241"})
	b.servers[batch].on("GREEDY", behaviour{rows: 1})
	b.decide(b.route("elsewhere", "GREEDY", func(d *event.RouteDecision) { d.Queue, d.Fallbacks[0].Queue = "etl", "etl" }))
	require.Equal(t, event.Succeeded, b.outcome("elsewhere").Status)
	require.Equal(t, map[string]string{"workload": "night"}, b.servers[batch].settingsOf("elsewhere/2"))
}
