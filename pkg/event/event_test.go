package event_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/event"
)

func TestUnknownFieldsAndEnumValuesSurvive(t *testing.T) {
	for name, c := range map[string]struct {
		into any
		in   string
	}{
		"decision": {&event.RouteDecision{}, `{"decisionId":"t/1","taskId":"t","attempt":1,"kind":"defer","decidedAt":"2026-11-30T09:15:00Z","deadline":"2026-11-30T09:25:00Z","engine":"e","cluster":"c","queue":"q","zeta":1}`},
		"attempt":  {&event.Attempt{}, `{"attemptId":"t/1","taskId":"t","number":1,"seq":1,"state":"parked","at":"2026-11-30T09:15:00Z","engine":"e","cluster":"c","zeta":{"big":9007199254740993}}`},
		"outcome":  {&event.Outcome{}, `{"taskId":"t","status":"paused","engine":"e","cluster":"c","attempts":1,"rerouted":false,"submittedAt":"2026-11-30T09:15:00Z","finishedAt":"2026-11-30T09:15:01Z","totalMs":1000,"stats":{"readBytes":9007199254740993},"slaMs":10000,"slaHit":true,"zeta":null}`},
		"cancel":   {&event.Cancel{}, `{"taskId":"t","zeta":"x"}`},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, json.Unmarshal([]byte(c.in), c.into))
			out, err := event.Marshal(c.into)
			require.NoError(t, err)
			require.Equal(t, c.in, string(out))
		})
	}
}

func TestTypes(t *testing.T) {
	require.Equal(t, event.Type("pointsman.attempt.failed.v1"), event.AttemptType("failed"))
	require.True(t, event.AttemptType("anything").IsAttempt())
	require.False(t, event.TaskEnded.IsAttempt())
	require.Equal(t, event.DecisionRejected, event.RouteDecision{Kind: event.Reject}.Type())
	require.Equal(t, "trino/a/q", event.Target{Engine: "trino", Cluster: "a", Queue: "q"}.String())
}
