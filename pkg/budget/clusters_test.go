package budget_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/budget"
)

func TestTenantsCountWhatRunsOnEachCluster(t *testing.T) {
	b := budget.NewTenants()
	for id, cluster := range map[string]string{"1": "trino", "2": "trino", "3": "spark"} {
		r := routed(id, now, 1)
		r.Cluster = cluster
		b.Routed(r, window)
		b.Routed(r, window)
	}
	require.Equal(t, map[string]int64{"trino": 2, "spark": 1}, b.Account("a", "", "", window, now).Clusters)
	b.Ended(budget.End{TaskID: "1"})
	b.Ended(budget.End{TaskID: "3", Void: true})
	seen := b.Account("a", "", "", window, now).Clusters
	require.Equal(t, map[string]int64{"trino": 1}, seen)
	seen["trino"] = 99
	require.Equal(t, map[string]int64{"trino": 1}, b.Account("a", "", "", window, now).Clusters, "an account is a copy: a decision keeps it")
}
