package workload

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/fingerprint"
)

// The demo rests on it: runs that differ in their parameters are one class of query, and history is kept by class.
func TestFingerprintsArePerText(t *testing.T) {
	dialect, err := fingerprint.ParseDialect("clickhouse")
	require.NoError(t, err)
	classes := map[Kind]map[fingerprint.ID]bool{}
	for _, a := range generate(t, Options{Seed: 1}) {
		if classes[a.Kind] == nil {
			classes[a.Kind] = map[fingerprint.ID]bool{}
		}
		classes[a.Kind][fingerprint.Of(a.Task.SQL, dialect)] = true
	}
	require.Len(t, classes[Scan], 1)
	require.Len(t, classes[Runaway], 1)
	require.Len(t, classes[CAB], Templates)
	require.Len(t, classes[Dashboard], dashboardTiles)
	require.Len(t, classes[AgentStep], agentSteps)
	for id := range classes[Burst] {
		require.Contains(t, classes[Medium], id, "the burst's texts have a history")
	}
	for id := range classes[Tight] {
		require.Contains(t, classes[Medium], id)
	}
}
