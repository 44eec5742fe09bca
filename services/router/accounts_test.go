package router

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/policy"
	"github.com/pointsman/pointsman/pkg/query"
)

// TestWhatIsDecidedByIsCounted: a policy that decides by what a tenant has running or has used has that followed, or the tenant's
// queries would never be seen to end.
func TestWhatIsDecidedByIsCounted(t *testing.T) {
	for name, c := range map[string]struct {
		pool, more string
		on         bool
	}{
		"nothing": {"", "", false}, "a cap in a pool": {", max_concurrent_per_tenant: 2", "", true},
		"a quota": {"", "budgets: {tenant: {max_concurrent: 2}}", true}, "exploration": {"", "exploration: {share: 0.1}", true},
	} {
		p, err := policy.Load(name, []byte("engines: {a: {kind: x"+c.pool+"}}\nrules: [{name: default, route: auto}]\n"+c.more+"\n"))
		require.NoError(t, err)
		_, on := counted(p)
		require.Equal(t, c.on, on, name)
		require.Equal(t, quotaOf(p, query.Task{Tenant: "t"}).on, on, name)
	}
}
