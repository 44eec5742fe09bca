package migrate

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/migrations"
)

func TestMacros(t *testing.T) {
	files, err := fs.Sub(migrations.ClickHouse, "clickhouse")
	require.NoError(t, err)
	for _, cluster := range []string{"", "replicas"} {
		r := rendered{files, strings.NewReplacer("{{ON_CLUSTER}}", onCluster(cluster), "{{ENGINE_PREFIX}}", enginePrefix(cluster))}
		data, err := fs.ReadFile(r, "00001_events.sql")
		require.NoError(t, err)
		require.NotContains(t, string(data), "{{")
		if cluster == "" {
			require.Contains(t, string(data), "ENGINE = ReplacingMergeTree(version)")
			require.NotContains(t, string(data), "ON CLUSTER")
			continue
		}
		require.Contains(t, string(data), "ENGINE = ReplicatedReplacingMergeTree(version)")
		require.Contains(t, string(data), "CREATE TABLE IF NOT EXISTS outcomes  ON CLUSTER 'replicas'")
	}
}
